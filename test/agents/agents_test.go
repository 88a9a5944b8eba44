// Package agents puts programs of other people in front of the gateway: the clients of both versions of the TypeScript SDK, the MCP
// inspector, and the clients of the Go SDK and of mcp-go, each against "mcpvisor serve" over HTTP and on lines, and against "mcpvisor
// connect". Servers of npm stand behind it, and what comes back must be what they answer without a gateway.
package agents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/servers/built"
)

// program is the command, built once for all tests.
var program string

func TestMain(m *testing.M) {
	if which := os.Getenv(ownServer); which != "" {
		os.Exit(serveOwn(which))
	}
	dir, err := os.MkdirTemp("", "agents")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "mcpvisor")
	rc := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(rc)
}

var build sync.Once

// command returns the path of the command.
func command(t *testing.T) string {
	t.Helper()
	build.Do(func() {
		if err := os.Rename(built.Program(t, "cmd/mcpvisor"), program); err != nil {
			t.Fatal(err)
		}
	})
	return program
}

// patience is how long a test waits for what other programs do.
const patience = time.Minute

// A place is a home of its own with a configuration, so that tests do not see each other's daemons.
type place struct {
	t         *testing.T
	dir, home string
	env       []string
}

func newPlace(t *testing.T, config string) *place {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: the processes are ended with signals")
	}
	root := t.TempDir()
	short, err := os.MkdirTemp("", "a") // the other one is too deep for a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: filepath.Join(root, "p"), home: filepath.Join(root, "home")}
	for _, dir := range []string{p.dir, p.home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.dir, "c.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.env = append(os.Environ(), "HOME="+p.home, "XDG_CONFIG_HOME="+p.home+"/config", "XDG_CACHE_HOME="+p.home+"/cache",
		"XDG_STATE_HOME="+p.home+"/state", "XDG_RUNTIME_DIR="+short)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	return p
}

// command returns the command with these arguments, as it is started in the place.
func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(command(p.t), args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// run runs the command in the place and returns what it prints.
func (p *place) run(args ...string) (string, error) {
	out, err := p.command(args...).CombinedOutput()
	return string(out), err
}

// serve starts the gateway over HTTP, for everybody, and returns its address. It ends with the test.
func (p *place) serve(args ...string) string {
	p.t.Helper()
	return p.serveWith(append([]string{"--no-token"}, args...)...)
}

// serveWith is serve with these arguments.
func (p *place) serveWith(args ...string) string {
	p.t.Helper()
	cmd := p.command(append([]string{"serve", "-c", "c.json", "--listen", "127.0.0.1:0", "--json"}, args...)...)
	cmd.Stderr = p.t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("serve: %v", err)
		}
	})
	var first struct{ URL string }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &first)
	}
	if err != nil || first.URL == "" {
		p.t.Fatalf("serve says %q, %v", line, err)
	}
	return first.URL
}

// A foreign client is one process of the TypeScript SDK.
type foreign struct {
	t      *testing.T
	in     io.WriteCloser
	mu     sync.Mutex // guards next, waiting and events
	next   int
	wait   map[int]chan reply
	events []event
	heard  chan struct{} // capacity 1: something was heard
}

type reply struct {
	ID    int
	Value json.RawMessage
	Error *struct {
		Code    any
		Message string
		Data    json.RawMessage
	}
}

type event struct {
	Event  string
	Params json.RawMessage
}

// newForeign starts a client, which is not connected.
func newForeign(t *testing.T, dir string) *foreign {
	t.Helper()
	ts := peers.TypeScriptClient(t)
	cmd := exec.Command(ts.Node, ts.Script)
	cmd.Dir, cmd.Stderr = dir, t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &foreign{t: t, in: in, wait: map[int]chan reply{}, heard: make(chan struct{}, 1)}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // it ends with its input
	})
	go func() { // it ends with the process
		lines := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			c.hear(line)
		}
	}()
	return c
}

func (c *foreign) hear(line []byte) {
	var e event
	var r reply
	if json.Unmarshal(line, &e) == nil && e.Event != "" {
		c.mu.Lock()
		c.events = append(c.events, e)
		c.mu.Unlock()
		select {
		case c.heard <- struct{}{}:
		default:
		}
		return
	}
	if json.Unmarshal(line, &r) != nil {
		return
	}
	c.mu.Lock()
	ch := c.wait[r.ID]
	delete(c.wait, r.ID)
	c.mu.Unlock()
	if ch != nil {
		ch <- r
	}
}

// members are those of a command.
type members map[string]any

// begin sends a command and returns where its reply comes.
func (c *foreign) begin(do string, m members) <-chan reply {
	c.t.Helper()
	ch := make(chan reply, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.wait[id] = ch
	c.mu.Unlock()
	all := members{"id": id, "do": do}
	for name, value := range m {
		all[name] = value
	}
	line, err := json.Marshal(all)
	if err == nil {
		_, err = c.in.Write(append(line, '\n'))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return ch
}

// await waits for a reply.
func (c *foreign) await(ch <-chan reply) reply {
	c.t.Helper()
	select {
	case r := <-ch:
		return r
	case <-time.After(patience):
		c.t.Fatal("the client does not reply")
		return reply{}
	}
}

// do performs a command that must succeed, and returns its value.
func (c *foreign) do(do string, m members) string {
	c.t.Helper()
	r := c.await(c.begin(do, m))
	if r.Error != nil {
		c.t.Fatalf("%s %v: %v %s %s", do, m, r.Error.Code, r.Error.Message, r.Error.Data)
	}
	return string(r.Value)
}

// text performs a command and returns its value, or its error as text.
func (c *foreign) text(do string, m members) string {
	c.t.Helper()
	r := c.await(c.begin(do, m))
	if r.Error != nil {
		return fmt.Sprintf("error %v %s %s", r.Error.Code, r.Error.Message, r.Error.Data)
	}
	return string(r.Value)
}

// hears waits until an event with a text was heard, and returns how many of its kind were.
func (c *foreign) hears(kind, text string) {
	c.t.Helper()
	late := time.After(patience)
	for {
		c.mu.Lock()
		for _, e := range c.events {
			if e.Event == kind && strings.Contains(string(e.Params), text) {
				c.mu.Unlock()
				return
			}
		}
		seen := fmt.Sprint(len(c.events), " events")
		c.mu.Unlock()
		select {
		case <-c.heard:
		case <-late:
			c.t.Fatalf("no event %s with %q came; %s", kind, text, seen)
		}
	}
}

// forget forgets the events that were heard.
func (c *foreign) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = nil
}
