//go:build unix

package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/proxy"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

const roleVariable = "PROXY_TEST_ROLE"

// bound is for what must end at all. It is a deadline, not a measurement.
const bound = 20 * time.Second

// TestMain makes this binary the servers of the tests.
func TestMain(m *testing.M) {
	switch role, arg, _ := strings.Cut(os.Getenv(roleVariable), ":"); role {
	case "":
		os.Exit(m.Run())
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "server":
		serve(os.Stdin, os.Stdout)
	case "exit":
		var code int
		_, _ = fmt.Sscan(arg, &code)
		fmt.Println("last words, without")
		os.Stdout.WriteString("an end")
		os.Exit(code)
	case "signal":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stubborn": // it ends on SIGTERM only, and says so
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		fmt.Println("asked")
		os.Exit(9)
	case "parent": // its child holds the output, and outlives it
		child := &os.ProcAttr{Env: []string{roleVariable + "=sleeper"}, Files: []*os.File{nil, os.Stdout, nil}}
		p, err := os.StartProcess(os.Args[0], os.Args[:1], child)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.Pid)
	case "sleeper":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Minute)
	}
}

// serve is a small MCP server: it answers every request, tools/call with its arguments.
func serve(in io.Reader, out io.Writer) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(line, &m) == nil && m.ID != nil {
			result := `{}`
			switch m.Method {
			case "tools/list":
				result = `{"tools":[{"name":"echo"},{"name":"add"}]}`
			case "tools/call":
				result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, m.Params.Name)
			}
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
		if err != nil {
			return
		}
	}
}

// under makes a proxy in front of a role.
func under(t testing.TB, role string, rules ...string) *proxy.Stdio {
	t.Helper()
	control, err := fault.New(1)
	if err != nil {
		t.Fatal(err)
	}
	control = control.At(fault.Stdio)
	for _, text := range rules {
		r, err := fault.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := control.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	s := &proxy.Stdio{Command: os.Args[0], Env: append(os.Environ(), roleVariable+"="+role), Grace: time.Second}
	s.Control, s.Tally = control, &proxy.Tally{}
	control.Watch(s.Tally.Hit)
	return s
}

// through runs a proxy with an input to its end.
func through(t testing.TB, s *proxy.Stdio, input io.Reader) (string, proxy.Exit) {
	t.Helper()
	var out safeBuffer
	s.In, s.Out = input, &out
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	exit, err := s.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("it did not end within %v", bound)
	}
	return out.String(), exit
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// pieces gives a stream in pieces of odd sizes.
type pieces struct {
	b   []byte
	rng *rand.Rand
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(into, p.b[:min(1+p.rng.IntN(3000), len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

// odd are lines that a proxy which decodes and encodes again would change.
const odd = "{\"jsonrpc\":\"2.0\", \"id\" : 1.0,\t\"method\":\"tools/call\",\"params\":{\"n\":9007199254740993,\"n\":1E+2,\"x\":null}}\r\n" +
	"\r\n   \n\xef\xbb\xbf{\"id\":\"\xff\xfe\"}\n[{\"id\":1},{\"id\":2}]\n[]\nnoise\n\x00\n{\"id\":1,\"result\":{}}{\"id\":2}\n{\"half\":"

// nobody is a rule that hits nothing, so that every line is held and asked about.
const nobody = "hang-call on=no/such/method"

func sameBytes(t *testing.T, want []byte, seed uint64, rules ...string) {
	t.Helper()
	got, exit := through(t, under(t, "cat", rules...), &pieces{want, rand.New(rand.NewPCG(seed, 2))})
	if sha256.Sum256([]byte(got)) != sha256.Sum256(want) {
		t.Errorf("%d bytes went in, %d other ones came back (rules %q)", len(want), len(got), rules)
	}
	if exit != (proxy.Exit{}) {
		t.Errorf("the end was %+v", exit)
	}
}

// TestTheVeryBytes sends odd and random bytes through both directions, without rules and with one that hits nothing.
func TestTheVeryBytes(t *testing.T) {
	big := []byte(`{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 9<<20) + "\"}\nand more\n")
	for _, rules := range [][]string{nil, {nobody}} {
		sameBytes(t, []byte(odd), 1, rules...)
		sameBytes(t, nil, 1, rules...)
		sameBytes(t, big, 1, rules...)
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 1))
			b := make([]byte, rng.IntN(1<<18))
			for i := range b {
				b[i] = byte(rng.Uint32())
				if rng.IntN(40) == 0 {
					b[i] = '\n'
				}
			}
			sameBytes(t, b, seed, rules...)
		}
	}
}

func TestTheServersEndIsOurs(t *testing.T) {
	got, exit := through(t, under(t, "exit:7"), strings.NewReader(""))
	if exit.Code != 7 || got != "last words, without\nan end" {
		t.Errorf("%+v, %q", exit, got)
	}
	if _, exit = through(t, under(t, "signal"), strings.NewReader("")); exit.Signal != syscall.SIGKILL {
		t.Errorf("%+v", exit)
	}
	s := under(t, "cat")
	s.Command, s.In, s.Out = "no-such-command-of-mcpvisor", strings.NewReader(""), io.Discard
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be found") {
		t.Errorf("a missing command: %v", err)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	s := under(t, "stubborn")
	signals := make(chan os.Signal, 1)
	s.Signals = signals
	in, out := pipe(t), &watched{want: "ready", seen: make(chan struct{})}
	s.In, s.Out = in, out
	done := make(chan proxy.Exit, 1)
	go func() {
		exit, _ := s.Run(context.Background())
		done <- exit
	}()
	<-out.seen
	signals <- syscall.SIGTERM
	if exit := <-done; exit.Code != 9 || !strings.Contains(out.String(), "asked") {
		t.Errorf("%+v, %q", exit, out.String())
	}
}

// pipe is an input that stays open until the test ends.
func pipe(t *testing.T) *io.PipeReader {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}

type watched struct {
	safeBuffer
	want string
	once sync.Once
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.safeBuffer.Write(p)
	if strings.Contains(w.String(), w.want) {
		w.once.Do(func() { close(w.seen) })
	}
	return n, err
}

// TestNothingIsLeftBehind: a child of the server that holds its output and hears no SIGTERM ends with it.
func TestNothingIsLeftBehind(t *testing.T) {
	s := under(t, "parent")
	s.Grace = 100 * time.Millisecond
	got, exit := through(t, s, strings.NewReader(""))
	var pid int
	if _, err := fmt.Sscan(got, &pid); err != nil || exit != (proxy.Exit{}) {
		t.Fatalf("%q, %+v", got, exit)
	}
	for deadline := time.Now().Add(bound); syscall.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// zombie reports whether a process only waits to be reaped by somebody else.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(b, []byte(") Z "))
}

const (
	askList = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"
	askEcho = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}` + "\n"
	askAdd  = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add"}}` + "\n"
	hasList = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"},{"name":"add"}]}}` + "\n"
	hasEcho = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"echo"}]}}` + "\n"
	hasAdd  = `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"add"}]}}` + "\n"
)

// TestFaults: what the rule says breaks, and only that.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		rule, want string
		exit       proxy.Exit
	}{
		{"tool-error tool=echo text=no", hasList +
			`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}` + "\n" + hasAdd, proxy.Exit{}},
		{"hang-call tool=add", hasList + hasEcho, proxy.Exit{}},
		{"black-hole on=tools/list", hasEcho + hasAdd, proxy.Exit{}},
		{"duplicate-response tool=echo", hasList + hasEcho + hasEcho + hasAdd, proxy.Exit{}},
		{"latency by=50ms tool=echo", hasList + hasAdd + hasEcho, proxy.Exit{}},
		{"latency by=50ms on=tools/list direction=server", hasEcho + hasAdd + hasList, proxy.Exit{}},
		{"slow-drip chunk=7 every=1ms tool=echo", hasList + hasEcho + hasAdd, proxy.Exit{}},
		{"die-mid-call tool=echo code=5", hasList, proxy.Exit{Code: 5}},
		{"answer-and-die tool=echo signal=TERM", hasList + hasEcho, proxy.Exit{Signal: syscall.SIGTERM}},
		{"half-line tool=echo code=3 then=exit", hasList + hasEcho[:(len(hasEcho)-1)/2], proxy.Exit{Code: 3}},
		{"crash tool=echo", "*", proxy.Exit{Code: 1}},
		{"huge-line size=1000 tool=echo", hasList + strings.Replace(hasEcho, "}}\n", `},"chaos":"`+
			strings.Repeat("x", 1000-len(hasEcho)+1-len(`,"chaos":""`))+"\"}\n", 1) + hasAdd, proxy.Exit{}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := under(t, "server", c.rule)
			got, exit := through(t, s, strings.NewReader(askList+askEcho+askAdd))
			if got != c.want && c.want != "*" || exit != c.exit {
				t.Errorf("exit %+v, want %+v\n got %q\nwant %q", exit, c.exit, got, c.want)
			}
			if s.Tally.Faults() == 0 {
				t.Error("nothing was counted")
			}
		})
	}
}
