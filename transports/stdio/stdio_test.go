//go:build unix

package stdio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

const childBound = time.Minute

// child is one child under test.
type child struct {
	transports.Conn
	*transporttest.Recorder
	t *testing.T
}

func startServer(t *testing.T, cfg stdio.Config) *child {
	t.Helper()
	s := &child{Recorder: &transporttest.Recorder{}, t: t}
	c, err := stdio.New(cfg).Dial(context.Background(), s.Recorder)
	if err != nil {
		t.Fatal(err)
	}
	s.Conn = c
	t.Cleanup(func() {
		s.close()
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *child) close() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), childBound)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		s.t.Errorf("Close: %v", err)
	}
}

// waitLine waits for the n-th message.
func (s *child) waitLine(n int) string {
	s.t.Helper()
	s.Wait(s.t, childBound, fmt.Sprintf("line %d", n), func() bool { return len(s.Messages()) > n })
	return string(s.Messages()[n])
}

// expectDown waits for the end and checks its class and text.
func (s *child) expectDown(class messages.Class, text string) {
	s.t.Helper()
	s.Wait(s.t, childBound, "Down", func() bool { return len(s.Downs()) > 0 })
	var e *transports.Error
	if err := s.Downs()[0]; !errors.As(err, &e) || e.Class != class || !strings.Contains(e.Text, text) {
		s.t.Errorf("Down(%v), want class %s and %q", err, class, text)
	}
}

func (s *child) expectReleased() {
	s.t.Helper()
	select {
	case <-s.Released():
	case <-time.After(childBound):
		s.t.Fatalf("not released after %v", childBound)
	}
}

func (s *child) expectEcho() {
	s.t.Helper()
	const body = `{"jsonrpc":"2.0","id":77,"method":"echo","params":{"x":1}}`
	before := s.Answers(77)
	if d, err := s.Send(context.Background(), transports.Message{ID: 77, Method: "echo", Body: []byte(body)}); err != nil {
		s.t.Fatalf("Send: %v, %v", d, err)
	}
	s.Wait(s.t, childBound, "the answer", func() bool { return s.Answers(77) > before })
}

// P12, P14: the error says how a child has ended by itself, whether it lives for a moment or for hours.
func TestExitIsTold(t *testing.T) {
	for code, want := range map[int]string{
		0: "the process ended with exit status 0", 1: "the process ended with exit status 1", 127: "exit status 127",
	} {
		s := startServer(t, asRole(fmt.Sprintf("exit:%d", code)))
		s.expectDown(messages.ClassExited, want)
		s.expectReleased()
		if got := s.Info(); !strings.Contains(got.Exit, fmt.Sprint(code)) || got.PID != 0 {
			t.Errorf("Info of a child that has ended: Exit %q, PID %d", got.Exit, got.PID)
		}
	}
}

func TestKilledChildIsTold(t *testing.T) {
	s := startServer(t, asRole("script"))
	s.expectEcho()
	if err := syscall.Kill(s.Info().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.expectDown(messages.ClassExited, "the process was ended by the signal killed")
	s.expectReleased()
}

// P3: a child that ignores the end of its input and SIGTERM is killed when both graces have passed.
func TestDeafChildIsKilled(t *testing.T) {
	cfg := asRole("deaf")
	cfg.Grace = 100 * time.Millisecond
	s := startServer(t, cfg)
	s.waitLine(0)
	pid := s.Info().PID
	s.close()
	s.expectDown(messages.ClassCanceled, "closed")
	if s.Info().Exit != "signal: killed" {
		t.Errorf("it ended with %q", s.Info().Exit)
	}
	waitGone(t, 0, pid)
}

// Close returns when its context ends. The steps of the shutdown go on.
func TestCloseWithLittleTime(t *testing.T) {
	t.Parallel() // it waits most of the time
	cfg := asRole("deaf")
	cfg.Grace = 2 * time.Second
	s := startServer(t, cfg)
	s.waitLine(0)
	pid := s.Info().PID
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := s.Close(ctx)
	select {
	case <-s.Released():
		t.Errorf("Close returned %v when everything was released", err)
	default:
	}
	var e *transports.Error
	if !errors.As(err, &e) || e.Class != messages.ClassTimeout {
		t.Errorf("Close: %v", err)
	}
	s.expectReleased()
	waitGone(t, 0, pid)
}

// The second step of the shutdown is SIGTERM: what the child writes then still arrives.
func TestStubbornChildIsAsked(t *testing.T) {
	t.Parallel() // it waits most of the time
	cfg := asRole("stubborn")
	cfg.Grace = 3 * time.Second
	s := startServer(t, cfg)
	s.waitLine(0)
	s.close()
	if s.waitLine(1) != `{"asked":true}` || s.Info().Exit != "exit status 0" {
		t.Errorf("messages %q, exit %q", s.Messages(), s.Info().Exit)
	}
}

// An installation that is ended is asked at once, and has longer than a server to take back what it has begun: a cache that it
// leaves half written is broken for good. One that has become a server is ended like any other.
func TestAnInstallationIsGivenTimeToEnd(t *testing.T) {
	for role, want := range map[string]string{"installer": "exit status 0", `installer:{"jsonrpc":"2.0","method":"x"}`: "signal: killed"} {
		cfg := asRole(role)
		cfg.Grace, cfg.Fetches = 150*time.Millisecond, true
		if want == "exit status 0" {
			cfg.Grace = childBound // it needs no more than a moment, which a busy machine makes long
		}
		s := startServer(t, cfg)
		for !strings.Contains(s.Info().StderrTail, "ready") {
			time.Sleep(5 * time.Millisecond)
		}
		if want != "exit status 0" {
			s.waitLine(0)
		}
		s.close()
		s.expectReleased()
		if s.Info().Exit != want {
			t.Errorf("%s ended with %q, want %q", role, s.Info().Exit, want)
		}
	}
}

// P2: what a launcher has started ends with it, whatever it ignores, and whichever of the two goes first.
func TestWholeTreeEnds(t *testing.T) {
	for _, role := range []string{"launcher:deaf", "launcher:launcher:deaf", "launcher:stubborn", "launcher:script"} {
		t.Run(role, func(t *testing.T) {
			cfg := asRole(role)
			cfg.Grace = 150 * time.Millisecond
			s := startServer(t, cfg)
			want := strings.Count(role, "launcher")
			s.Wait(t, childBound, "the children", func() bool { return len(children(s.Recorder)) == want })
			if !strings.HasSuffix(role, "script") {
				s.Wait(t, childBound, "ready", func() bool { return len(s.Messages()) > want })
			}
			s.close()
			waitGone(t, 0, children(s.Recorder)...)
		})
	}
}

// P2 and the promise about calls: the exit of the child is the end at once, although a grandchild holds its output, or
// even goes on writing. The grandchild ends with it.
func TestChildEndsAndItsChildHoldsTheOutput(t *testing.T) {
	for _, role := range []string{"runaway:deaf", "runaway:babble", "runaway:endless:{"} {
		t.Run(role, func(t *testing.T) {
			s := startServer(t, asRole(role))
			s.expectDown(messages.ClassExited, "exit status 4")
			s.expectReleased()
			if n := len(children(s.Recorder)); n != 1 {
				t.Fatalf("%d children told: %.200q", n, s.Messages())
			}
			waitGone(t, 0, children(s.Recorder)...)
		})
	}
}

// P7: standard error is read, however much comes, and its end is kept.
func TestStandardErrorIsDrained(t *testing.T) {
	const n = 100_000
	cfg := asRole(fmt.Sprintf("wordy:%d", n))
	cfg.StderrTail = 4 << 10
	s := startServer(t, cfg)
	s.expectEcho()
	want := fmt.Sprintf("log line %d\n", n-1)
	tail := s.Info().StderrTail
	for deadline := time.Now().Add(childBound); !strings.HasSuffix(tail, want) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // the two pipes are read independently of each other
		tail = s.Info().StderrTail
	}
	if !strings.HasSuffix(tail, want) || len(tail) > 4<<10 || len(tail) < 3<<10 || !strings.HasPrefix(tail, "log line") {
		t.Errorf("a tail of %d bytes that begins with %.20q and ends with %q", len(tail), tail, tail[max(0, len(tail)-20):])
	}
}

// The last words on standard error are what a person needs when a server does not come up.
func TestStandardErrorOfAChildThatEndsAtOnce(t *testing.T) {
	s := startServer(t, asRole("no such role"))
	s.expectDown(messages.ClassExited, "exit status 99")
	if got := s.Info().StderrTail; got != "no such role: no such role\n" {
		t.Errorf("StderrTail is %q", got)
	}
}

// A child that closes its input or output and goes on running is useless, and would look healthy for ever.
func TestMuteChildIsNoticed(t *testing.T) {
	cfg := asRole("mute:stdout")
	cfg.Grace = 100 * time.Millisecond
	s := startServer(t, cfg)
	s.expectDown(messages.ClassProtocol, "closed its standard output")
	s.expectReleased()

	cfg = asRole("mute:stdin")
	cfg.Grace = 100 * time.Millisecond
	s = startServer(t, cfg)
	s.waitLine(0)
	d, err := s.Send(context.Background(), transports.Message{ID: 1, Method: "x", Body: []byte("{}")})
	if d != transports.NotWritten || err == nil {
		t.Errorf("Send: %v, %v", d, err)
	}
	s.expectDown(messages.ClassProtocol, "closed its standard input")
	s.expectReleased()
}

// P8: a line without an end costs neither memory nor the other servers anything, and Close works meanwhile.
func TestEndlessLine(t *testing.T) {
	const limit = 64 << 10
	for _, first := range []string{"{", "noise"} {
		healthy := startServer(t, asRole("script"))
		cfg := asRole("endless:" + first)
		cfg.MaxMessage, cfg.Grace = limit, 50*time.Millisecond
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := startServer(t, cfg)
		time.Sleep(300 * time.Millisecond) // tens or hundreds of megabytes
		healthy.expectEcho()
		runtime.GC() // what is held counts, not what has passed through
		runtime.ReadMemStats(&after)
		if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 8<<20 {
			t.Errorf("%d bytes of heap for an endless line", used)
		}
		s.close()
		if n := len(s.Messages()); n > 0 {
			t.Errorf("%d messages", n)
		}
	}
}

// P8 with a line that ends: 64 MiB, and a limit of 64 KiB.
func TestHugeLine(t *testing.T) {
	cfg := asRole("script")
	cfg.MaxMessage = 64 << 10
	s := startServer(t, cfg)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body := `{"jsonrpc":"2.0","id":1,"method":"big","params":{"bytes":67108864}}`
	if d, err := s.Send(context.Background(), transports.Message{ID: 1, Method: "big", Body: []byte(body)}); err != nil {
		t.Fatal(d, err)
	}
	s.Wait(t, time.Minute, "the report", func() bool { return len(s.OversizedMessages()) == 1 })
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%d bytes were allocated for a line over the limit", used)
	}
	if got := s.OversizedMessages()[0].Size; got != 67108864 {
		t.Errorf("its size is reported as %d", got)
	}
	s.expectEcho()
}

// Some servers answer and exit without a last newline.
func TestLastMessageWithoutANewline(t *testing.T) {
	s := startServer(t, asRole(`unfinished:{"id":1}`))
	s.expectDown(messages.ClassExited, "exit status 0")
	if got := fmt.Sprintf("%s", s.Messages()); got != `[{"id":1}]` {
		t.Errorf("messages %s", got)
	}
	s = startServer(t, asRole(`unfinished:{"id":`))
	s.expectDown(messages.ClassExited, "exit status 0")
	if len(s.Messages()) != 0 || len(s.NoiseLines()) != 1 {
		t.Errorf("messages %q, noise %q", s.Messages(), s.NoiseLines())
	}
}

// A sink that panics costs its connection, not the program.
func TestSinkPanics(t *testing.T) {
	s := startServer(t, asRole("script")) // judged at the end: it must not notice
	sink := &panickingDownSink{down: make(chan error, 1)}
	cfg := asRole("deaf")
	cfg.Grace = 100 * time.Millisecond
	c, err := stdio.New(cfg).Dial(context.Background(), sink)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-sink.down:
		var e *transports.Error
		if !errors.As(err, &e) || e.Class != messages.ClassPanic {
			t.Errorf("Down(%v)", err)
		}
	case <-time.After(childBound):
		t.Fatal("no Down")
	}
	select {
	case <-c.Released():
	case <-time.After(childBound):
		t.Fatal("not released")
	}
	s.expectEcho()
}

type panickingDownSink struct{ down chan error }

func (p *panickingDownSink) Message([]byte)                  { panic("the sink is broken") }
func (p *panickingDownSink) Oversized([]byte, []byte, int64) {}
func (p *panickingDownSink) Noise([]byte)                    {}
func (p *panickingDownSink) Down(err error) {
	p.down <- err
	panic("here too")
}

// X3: the child has the environment that it was given, and nothing else.
func TestChildSeesWhatItIsGiven(t *testing.T) {
	seeds.Shows(t, "002.3.cwd")
	t.Setenv("CANARY", "canary")
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	cfg := asRole("print:CANARY")
	cfg.Args, cfg.Dir = []string{"a b", `"c"`, ""}, dir
	var got struct {
		Args          []string
		Dir, Pwd, Env string
	}
	if err := json.Unmarshal([]byte(startServer(t, cfg).waitLine(0)), &got); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%q", got.Args) != `["a b" "\"c\"" ""]` || got.Dir != dir || got.Pwd != dir || got.Env != "" {
		t.Errorf("the child sees %+v", got)
	}
}

// A relative command starts at the directory of the server, and a bare name is looked up in the child's own PATH.
func TestWhereCommandsAreFound(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "bin", "mcp-tool")
	if err := os.MkdirAll(filepath.Dir(tool), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho '{\"found\":true}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.MkdirAll(plain, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(plain, "mcp-tool"), []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	command := func(name, dir, path string) stdio.Config {
		cfg := stdio.Config{Command: name, Dir: dir}
		if path != "" {
			cfg.Env = []string{"PATH=" + path}
		}
		return cfg
	}
	for name, c := range map[string]struct {
		cfg   stdio.Config
		class messages.Class
		text  string
	}{
		"absolute":                  {cfg: command(tool, "", "")},
		"relative to the directory": {cfg: command("bin/mcp-tool", dir, "")},
		"relative with a dot":       {cfg: command("./mcp-tool", filepath.Dir(tool), "")},
		"in the child's PATH":       {cfg: command("mcp-tool", "", "/none:"+filepath.Dir(tool))},
		"past one that cannot be":   {cfg: command("mcp-tool", "", plain+":"+filepath.Dir(tool))},
		"only one that cannot be":   {command("mcp-tool", "", plain), messages.ClassConfig, "not executable"},
		"not in our directory":      {command("./stdio_test.go", dir, ""), messages.ClassMissing, "command starts at"},
		"not in a relative PATH":    {command("mcp-tool", dir, "bin:."), messages.ClassMissing, "0 directories"},
		"nowhere": {command("mcp-tool", "", ""), messages.ClassMissing,
			`the command "mcp-tool" was not found: PATH was searched`},
		"a file as a directory": {command(tool+"/x", "", ""), messages.ClassConfig, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.class == messages.ClassNone {
				if got := startServer(t, c.cfg).waitLine(0); got != `{"found":true}` {
					t.Errorf("the child says %s", got)
				}
				return
			}
			r := &transporttest.Recorder{}
			conn, err := stdio.New(c.cfg).Dial(context.Background(), r)
			if err == nil {
				_ = conn.Close(context.Background())
				t.Fatal("no error")
			}
			var e *transports.Error
			if !errors.As(err, &e) || e.Class != c.class || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v; want class %s and %q", err, c.class, c.text)
			}
		})
	}
}

// A program that is being written (a build, an upgrade) is retried for a moment, and counts as a shortage after that.
func TestProgramThatIsBeingWritten(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "server")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(program); err != nil {
		t.Fatal(err)
	}
	cfg := asRole("script")
	cfg.Command = path
	c, err := stdio.New(cfg).Dial(context.Background(), &transporttest.Recorder{})
	if err == nil {
		// macOS, and Linux from 6.11 to 6.12, start it.
		_ = c.Close(context.Background())
	} else {
		var e *transports.Error
		if !errors.As(err, &e) || e.Class != messages.ClassExhausted || !strings.Contains(e.Text, "being written") {
			t.Errorf("%v", err)
		}
	}
	time.AfterFunc(30*time.Millisecond, func() { _ = f.Close() })
	startServer(t, cfg).expectEcho()
}

// The guard learns of every group, and of its end.
func TestGuardIsTold(t *testing.T) {
	g := &fakeGuard{}
	cfg := asRole("launcher:deaf")
	cfg.Guard, cfg.Grace = g, 50*time.Millisecond
	s := startServer(t, cfg)
	s.Wait(t, childBound, "the child", func() bool { return len(children(s.Recorder)) == 1 })
	g.mu.Lock()
	if g.watched != s.Info().PID || g.released != 0 {
		t.Errorf("the guard watches %d, not %d; %d groups were released", g.watched, s.Info().PID, g.released)
	}
	g.members = append(children(s.Recorder), g.watched)
	g.mu.Unlock()
	s.close()
	if g.released != 1 || g.early {
		t.Errorf("after Close %d groups were released, too early: %v", g.released, g.early)
	}
}

type fakeGuard struct {
	mu       sync.Mutex
	watched  int
	members  []int
	released int
	early    bool
}

func (g *fakeGuard) Watch(pgid int) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watched = pgid
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.released++
		g.early = g.early || slices.ContainsFunc(g.members, running)
	}
}

// Many a program says on standard output why it ends. That stands with its standard error until the program has spoken;
// afterwards it was a greeting.
func TestWhatIsPrintedBeforeTheFirstMessageIsKept(t *testing.T) {
	for _, c := range []struct{ prints, want string }{
		{"Error: no key\n", "Error: no key\n"},
		{"[ERROR] no key\n{\"level\":\"error\",\"msg\":\"no key\"}\n", "[ERROR] no key\n{\"level\":\"error\",\"msg\":\"no key\"}\n"},
		{"Error: token ghp_canary was refused\n[warn] ghp_canary", "Error: token [redacted] was refused\n[warn] [redacted]\n"},
		{"welcome\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\nError: later\n", ""},
	} {
		s := startServer(t, asRole("unfinished:"+c.prints, "GITHUB_TOKEN=ghp_canary"))
		s.expectDown(messages.ClassExited, "exit status 0")
		if got := s.Info().StderrTail; got != c.want {
			t.Errorf("of %q is kept %q, want %q", c.prints, got, c.want)
		}
	}
	s := startServer(t, asRole("unfinished:"+strings.Repeat(strings.Repeat("x", 1000)+"\n", 50)))
	s.expectDown(messages.ClassExited, "exit status 0")
	if got := s.Info().StderrTail; len(got) > 4<<10 || len(got) < 3<<10 {
		t.Errorf("%d bytes are kept", len(got))
	}
}
