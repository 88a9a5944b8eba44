package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

const registryModule = "github.com/modelcontextprotocol/registry"

// RegistryDocuments are the server.json documents that the MCP registry's own tests use, at the version of
// registry/go.mod: those of its seed and the examples of its documentation.
func RegistryDocuments(tb testing.TB) []json.RawMessage {
	tb.Helper()
	dir, err := registrySource()
	if err != nil {
		skipOrFail(tb, "the source of the MCP registry", err)
	}
	var all []json.RawMessage
	seed, err := os.ReadFile(filepath.Join(dir, "data", "seed.json"))
	if err == nil {
		err = json.Unmarshal(seed, &all)
	}
	if err != nil {
		tb.Fatalf("the registry's seed: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "docs", "reference", "server-json", "generic-server-json.md"))
	if err != nil {
		tb.Fatalf("the registry's examples: %v", err)
	}
	for _, example := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1) {
		all = append(all, example[1])
	}
	return all
}

// registrySource is the registry's folder in the module cache.
func registrySource() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", registryModule)
	cmd.Dir = filepath.Join(root, "test", "peers", "registry")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if bad := json.Unmarshal(out, &m); err == nil {
		err = bad
	}
	if m.Error != "" {
		err = errors.New(m.Error)
	}
	return m.Dir, err
}

// errNoDatabase: the tests that need the registry itself are skipped then, also where everything else must be there. Its
// documents are tested all the same.
var errNoDatabase = errors.New("PostgreSQL is not installed")

// findPostgres returns the path of one of PostgreSQL's programs, which Debian does not put into PATH.
func findPostgres(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if len(found) == 0 {
		return "", errNoDatabase
	}
	return found[len(found)-1], nil
}

// buildRegistry builds the registry, if this machine has the database that it needs.
func buildRegistry(log io.Writer, retry bool) (string, error) {
	if _, err := findPostgres("initdb"); err != nil {
		return "", err
	}
	name := "registry"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	pins := []string{"registry/go.mod", "registry/go.sum"}
	dir, err := installOnce(log, retry, "registry", pins, func(ctx context.Context, from, dir string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, name), registryModule+"/cmd/registry")
		cmd.Dir = filepath.Join(from, "registry")
		cmd.Env = append(os.Environ(), "GOWORK=off")
		return cmd
	})
	return filepath.Join(dir, name), err
}

// StartRegistry starts the MCP registry itself on 127.0.0.1, with a database of its own that holds the given server.json
// documents, and gives its address. Both end with the test. It needs PostgreSQL on this machine.
func StartRegistry(tb testing.TB, documents []json.RawMessage) string {
	tb.Helper()
	program, err := buildRegistry(tb.Output(), false)
	switch {
	case errors.Is(err, errNoDatabase):
		tb.Skipf("NOT TESTED, because the MCP registry needs a database: %v", err)
	case err != nil:
		skipOrFail(tb, "the MCP registry", err)
	}
	dir, err := os.MkdirTemp("", "pg") // a socket's path must be short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	runAs, err := runUnprivileged(dir)
	if err != nil {
		skipOrFail(tb, "a database", err)
	}
	initdb, _ := findPostgres("initdb")
	server, err := findPostgres("postgres")
	if err != nil {
		skipOrFail(tb, "a database", err)
	}
	init := exec.Command(initdb, "-D", filepath.Join(dir, "data"), "-A", "trust", "-U", "registry", "--no-sync", "-E", "UTF8", "--locale=C")
	runAs(init)
	if out, err := init.CombinedOutput(); err != nil {
		skipOrFail(tb, "a database", fmt.Errorf("initdb: %w\n%s", err, firstLines(string(out))))
	}
	db := exec.Command(server, "-D", filepath.Join(dir, "data"), "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	runAs(db)
	startProgram(tb, db, os.Interrupt)
	seed := filepath.Join(tb.TempDir(), "seed.json")
	text, err := json.Marshal(documents)
	if err == nil {
		err = os.WriteFile(seed, text, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
	address := freeAddress(tb)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "MCP_REGISTRY_SERVER_ADDRESS="+address, "MCP_REGISTRY_SEED_FROM="+seed,
		"MCP_REGISTRY_DATABASE_URL=postgres://registry@/postgres?host="+dir+"&sslmode=disable",
		"MCP_REGISTRY_DATABASE_MIN_CONNECTIONS=1", "MCP_REGISTRY_ENABLE_REGISTRY_VALIDATION=false",
		"MCP_REGISTRY_JWT_PRIVATE_KEY="+strings.Repeat("0f", 32))
	output := startProgram(tb, cmd, os.Interrupt)
	url := "http://" + address
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get(url + "/v0.1/ping")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return url
			}
		}
		if time.Now().After(deadline) {
			tb.Fatalf("the registry does not answer: %v\n%s", err, output)
		}
	}
}

// startProgram starts a program that is ended with the test, and gives the start of what it says.
func startProgram(tb testing.TB, cmd *exec.Cmd, end os.Signal) *boundedOutput {
	tb.Helper()
	output := &boundedOutput{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // it ends with the cleanup
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(end)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	return output
}

// freeAddress returns a loopback address that was free a moment ago. Another program may take it before it is used; the test
// fails then.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
