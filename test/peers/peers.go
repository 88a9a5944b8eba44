package peers

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The servers of npm, by the name of their command.
const (
	// Everything speaks stdio, and "sse" and "streamableHttp" (its argument) on the port in PORT.
	Everything = "mcp-server-everything"
	// Filesystem wants the folders that it may touch as arguments.
	Filesystem = "mcp-server-filesystem"
	// Memory keeps its graph in the file that MEMORY_FILE_PATH names.
	Memory = "mcp-server-memory"
	// SequentialThinking has one tool.
	SequentialThinking = "mcp-server-sequential-thinking"
	// Postgres wants a database URL as its argument, and does not need the database to start.
	Postgres = "mcp-server-postgres"
)

// programs maps the commands to where their program stands.
var programs = map[string]string{
	Everything:         "@modelcontextprotocol/server-everything/dist/index.js",
	Filesystem:         "@modelcontextprotocol/server-filesystem/dist/index.js",
	Memory:             "@modelcontextprotocol/server-memory/dist/index.js",
	SequentialThinking: "@modelcontextprotocol/server-sequential-thinking/dist/index.js",
	Postgres:           "@modelcontextprotocol/server-postgres/dist/index.js",
}

// Servers are the installed servers of npm.
type Servers struct {
	node, npx, dir string
}

// NPM gives the servers of npm, and installs them first if need be.
func NPM(tb testing.TB) *Servers {
	tb.Helper()
	s, err := installNPMServers(tb.Output(), false)
	if err != nil {
		skipOrFail(tb, "the servers of npm", err)
	}
	return s
}

// Go gives the path of the Go SDK's everything-server: stdio, or streamable HTTP with -http ADDRESS [-stateless=false].
func Go(tb testing.TB) string {
	tb.Helper()
	path, err := buildGoServer(tb.Output(), false)
	if err != nil {
		skipOrFail(tb, "the Go SDK's everything-server", err)
	}
	return path
}

// EverythingServer gives the same path to a program that is no test, and installs the server first if need be, with reports to log.
func EverythingServer(log io.Writer) (string, error) { return buildGoServer(log, false) }

// skipOrFail skips a test that lacks its peer, and says so; in CI it fails it, because there the peers must be had.
func skipOrFail(tb testing.TB, what string, err error) {
	tb.Helper()
	if os.Getenv("CI") == "true" {
		tb.Fatalf("%s: %v", what, err)
	}
	tb.Skipf("NOT TESTED, because %s cannot be had: %v", what, err)
}

// Command is the command line of a server, run by node itself.
func (s *Servers) Command(server string, args ...string) (command string, argv []string) {
	script, ok := programs[server]
	if !ok {
		panic("peers: no server " + server)
	}
	return s.node, append([]string{filepath.Join(s.dir, "node_modules", filepath.FromSlash(script))}, args...)
}

// NPX is the command line that people write: npx, which starts a shell, which starts node. It downloads nothing.
func (s *Servers) NPX(server string, args ...string) (command string, argv []string) {
	return s.npx, append([]string{"--no", "--prefix", s.dir, "--", server}, args...)
}

// Bin is the script that npm made for a server.
func (s *Servers) Bin(server string) string {
	path := filepath.Join(s.dir, "node_modules", ".bin", server)
	if runtime.GOOS == "windows" {
		path += ".cmd"
	}
	return path
}

// Package is the folder that a package is installed below, for programs that look for it there, and its version.
func (s *Servers) Package(tb testing.TB, name string) (dir, version string) {
	tb.Helper()
	var p struct{ Version string }
	text, err := os.ReadFile(filepath.Join(s.dir, "node_modules", filepath.FromSlash(name), "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s.dir, p.Version
}
