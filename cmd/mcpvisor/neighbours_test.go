//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
)

// The tests below check that a command which names a server waits for no other server and starts none. The silent server may
// take an hour to connect, and a command that waited for it would not end within the bound of the test.

// named lists every command that takes the name of a server, with the words of a trial, in the order of the trials. read takes
// a URI, and names the server with a flag.
var named = []struct{ command, words string }{
	{"call", "good echo text=x"},
	{"call", "good:echo text=x"},
	{"call", "mcp__good__echo text=x"},
	{"ping", "good"},
	{"tools", "good"},
	{"resources", "good"},
	{"prompts", "good"},
	{"prompt", "good greet name=x"},
	{"complete", "good --prompt greet name A"},
	{"read", "text://hello --server good"},
	{"logs", "good"},
	{"why", "good"},
	{"get", "good"},
	{"diff", "good"},
	{"permissions test", "good:echo text=x"},
	{"permissions allow", "good:hello"},
	{"permissions ask", "good:hello"},
	{"permissions deny", "good:hello"},
	{"permissions remove", "good:hello"},
	{"login", "remote"},
	{"auth status", "remote"},
	{"logout", "remote"},
	{"reconnect", "good"},
	{"disable", "good"},
	{"enable", "good"},
	{"approve", "another"},
	{"add", "new --scope user -- fixture mcp-fixture good"},
	{"add-json", `newer {"command":"fixture","args":["mcp-fixture","good"]} --scope user`},
	{"remove", "new"},
}

// nameless lists every other command, with the reason why it may wait for all servers or needs none.
var nameless = map[string]string{
	"up": "starts all", "serve": "starts all", "list": "is about all", "reload": "is about the files", "search": "asks a registry",
	"import": "reads files", "clients": "edits files of other programs", "connect": "is about all", "down": "is about all",
	client.Command: "is no command for people", "audit": "reads files", "config": "reads files", "chaos": "has servers of its own",
	"version": "says what it is", "completion": "writes a script", guardian.Command: "is no command for people",
	guardian.DemoServerCommand: "is no command for people", "permissions": "reads files", "auth": "has other commands",
	"help": "explains", "init": "writes a file", "doctor": "looks at the machine",
}

// TestEveryCommandThatTakesANameIsKnown checks that each command is in one of the two lists, so that a new command is tried.
func TestEveryCommandThatTakesANameIsKnown(t *testing.T) {
	root := newRoot(&cli.Options{Streams: terminal.StandardStreams()})
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), root.Name()), " ")
		first, _, _ := strings.Cut(path, " ")
		tried := slices.ContainsFunc(named, func(n struct{ command, words string }) bool { return n.command == path })
		whole := nameless[path] != "" || nameless[first] != "" && first != "permissions" && first != "auth"
		if path != "" && !tried && !whole {
			t.Errorf("%s: try it beside the neighbours, or say why it names no server", path)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// street makes a project with a good server among bad ones. Each bad server that is started leaves a file in the folder
// started.
func street(t *testing.T) (p *place, started string) {
	p, started = newPlace(t, ""), t.TempDir()
	remote := httptest.NewServer(http.HandlerFunc(servePatient))
	t.Cleanup(remote.Close)
	type entry map[string]any
	good := entry{"command": "fixture", "args": []string{"mcp-fixture", "offers"}, "era": "legacy"}
	own := map[string]entry{"good": good, "remote": {"url": remote.URL, "type": "http"}}
	for name, fixture := range map[string][]string{
		"silent": {"silent"}, "dying": {"exits-at-once"}, "flapping": {"crash-after", "after=300ms"},
		"slow": {"slow-start", "after=1h"}, "refusing": {"refuses-initialize"}, "dropping": {"exits-after-list"},
	} {
		own[name] = entry{"command": "marks", "args": append([]string{filepath.Join(started, name), "mcp-fixture"}, fixture...),
			"connectTimeout": "1h", "era": "legacy"}
	}
	write := func(file string, servers map[string]entry) {
		text, err := json.Marshal(map[string]any{"mcpServers": servers})
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o700)
		}
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(p.home, "config", "mcpvisor", "mcp.json"), own)
	write(filepath.Join(p.dir, ".mcp.json"), map[string]entry{"another": good,
		"unapproved": {"command": "marks", "args": []string{filepath.Join(started, "unapproved"), "mcp-fixture", "good"}}})
	return p, started
}

// passes runs every command of named, each within two minutes, and calls after behind each.
func (p *place) passes(after func(command string)) {
	root := newRoot(&cli.Options{Streams: terminal.StandardStreams()})
	for _, n := range named {
		words := strings.Fields(n.command + " " + n.words)
		if c, _, err := root.Find(words); err == nil && c.Flags().Lookup("wait") != nil {
			words = slices.Insert(words, len(strings.Fields(n.command)), "--wait", "1h")
		}
		bound, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(bound, "mcpvisor", words...)
		cmd.Dir, cmd.Env = p.dir, p.env
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // its servers end with it
		out, err := cmd.CombinedOutput()
		if err != nil {
			p.t.Errorf("%s: %v, %v\n%s", strings.Join(words, " "), err, bound.Err(), out)
		}
		cancel()
		after(strings.Join(words, " "))
	}
}

// TestWhoNamesAServerStartsNoOther checks that no bad server was started by any of the commands.
func TestWhoNamesAServerStartsNoOther(t *testing.T) {
	p, started := street(t)
	p.passes(func(command string) {
		if others, _ := os.ReadDir(started); len(others) > 0 {
			t.Errorf("%s has started %v", command, others)
		}
	})
}

// TestWhoNamesAServerOfARunningUpWaitsForNoOther checks that the same commands end in time when a running up answers them.
func TestWhoNamesAServerOfARunningUpWaitsForNoOther(t *testing.T) {
	p, _ := street(t)
	up := p.start("up")
	for bound := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		cmd := p.command("ping", "good")
		if out, err := cmd.CombinedOutput(); err == nil && strings.Contains(string(out), "using the ") {
			break
		} else if time.Now().After(bound) {
			t.Fatalf("no mcpvisor up answers: %s", out)
		}
	}
	p.passes(func(string) {})
	up.signal(syscall.SIGINT)
	up.ends()
}
