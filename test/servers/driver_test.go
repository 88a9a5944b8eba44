package servers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

func TestMain(m *testing.M) {
	if servers.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// bound is generous: it separates "never" from "slowly on a loaded machine".
const bound = 20 * time.Second

// soon bounds the time in which a test watches that nothing happens.
const soon = 150 * time.Millisecond

// fixture is a running server and the simplest client that can tell what it does.
type fixture struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   chan string // lines of standard output without their end; closed at its end
	err   *tail
	ended chan struct{}
	code  int
}

type tail struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func start(t *testing.T, kind string, parameters ...string) *fixture {
	t.Helper()
	command, args := servers.Command(kind, parameters...)
	f := &fixture{
		t: t, cmd: exec.Command(command, args...), out: make(chan string, 100), err: &tail{}, ended: make(chan struct{}),
	}
	var err error
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	// A pipe of our own, because Wait closes the one of StdoutPipe before everything has been read.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f.cmd.Stdout, f.cmd.Stderr = w, f.err
	f.cmd.WaitDelay = time.Second // a grandchild may hold standard error
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	stop := make(chan struct{})
	go func() {
		defer close(f.out)
		br := bufio.NewReaderSize(r, 1<<20)
		for {
			line, err := br.ReadString('\n')
			if line != "" {
				select {
				case f.out <- strings.TrimSuffix(line, "\n"):
				case <-stop:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(f.ended)
		_ = f.cmd.Wait() // the exit code says all that a test asks
		f.code = f.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = f.cmd.Process.Kill()
		<-f.ended
		close(stop)
		r.Close()
	})
	return f
}

func (f *fixture) send(line string) {
	f.t.Helper()
	if _, err := io.WriteString(f.in, line+"\n"); err != nil {
		f.t.Fatalf("writing to the fixture: %v", err)
	}
}

func (f *fixture) request(id int, method, params string) {
	f.t.Helper()
	f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
}

func (f *fixture) line() string {
	f.t.Helper()
	select {
	case l, ok := <-f.out:
		if !ok {
			f.t.Fatalf("standard output ended; standard error: %s", f.err)
		}
		return l
	case <-time.After(bound):
		f.t.Fatalf("no line in %v; standard error: %s", bound, f.err)
	}
	return ""
}

type answer struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

// answerTo skips everything before the answer to a request.
func (f *fixture) answerTo(id int) answer {
	f.t.Helper()
	for {
		var a answer
		if json.Unmarshal([]byte(f.line()), &a) == nil && string(a.ID) == fmt.Sprint(id) && a.Method == "" {
			return a
		}
	}
}

func (f *fixture) initialize() answer {
	f.t.Helper()
	f.request(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},`+
		`"clientInfo":{"name":"test","version":"1"}}`)
	a := f.answerTo(1)
	f.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return a
}

type tool struct {
	Name        string
	Description string
}

func (f *fixture) list(id int, cursor string) (tools []json.RawMessage, next *string) {
	f.t.Helper()
	f.request(id, "tools/list", cursor)
	a := f.answerTo(id)
	var l struct {
		Tools      []json.RawMessage
		NextCursor *string
	}
	if err := json.Unmarshal(a.Result, &l); err != nil {
		f.t.Fatalf("tools/list gave %s %s: %v", a.Result, a.Error, err)
	}
	return l.Tools, l.NextCursor
}

func names(tools []json.RawMessage) []string {
	out := []string{}
	for _, raw := range tools {
		var t tool
		if json.Unmarshal(raw, &t) != nil {
			t.Name = "unreadable"
		}
		out = append(out, t.Name)
	}
	return out
}

func (f *fixture) call(id int, name, args string) answer {
	f.t.Helper()
	f.request(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
	return f.answerTo(id)
}

// text is the text of a call's result.
func (f *fixture) text(id int, name, args string) string {
	f.t.Helper()
	a := f.call(id, name, args)
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(a.Result, &r); err != nil || len(r.Content) == 0 {
		f.t.Fatalf("call of %s gave result %.200s error %s", name, a.Result, a.Error)
	}
	return r.Content[0].Text
}

func (f *fixture) exits(code int) {
	f.t.Helper()
	select {
	case <-f.ended:
		if f.code != code {
			f.t.Errorf("exit code %d, want %d; standard error: %s", f.code, code, f.err)
		}
	case <-time.After(bound):
		f.t.Errorf("still runs after %v", bound)
	}
}

func (f *fixture) lives() {
	f.t.Helper()
	select {
	case <-f.ended:
		f.t.Errorf("ended with code %d, want it to live; standard error: %s", f.code, f.err)
	case <-time.After(soon):
	}
}

// quiet checks that the fixture says nothing.
func (f *fixture) quiet() {
	f.t.Helper()
	select {
	case l, ok := <-f.out:
		f.t.Errorf("got %.200q (open: %v), want silence", l, ok)
	case <-time.After(soon):
	}
}
