//go:build unix

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
)

// patience bounds the wait of a test for something that may never come.
const patience = time.Minute

// place is a project directory and a home for the processes of one test.
type place struct {
	t    *testing.T
	dir  string
	home string
	env  []string
	// program is the program to run; empty means mcpvisor.
	program string
}

// newPlace makes a place whose configuration c.json is mcpJSON. The test fails if a process of the place is left at its end.
func newPlace(t *testing.T, mcpJSON string) *place {
	t.Helper()
	root := t.TempDir()
	short, err := os.MkdirTemp("", "m") // the other one is too deep for a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: filepath.Join(root, "p"), home: filepath.Join(root, "home")}
	for _, dir := range []string{p.dir, p.home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if mcpJSON != "" {
		if err := os.WriteFile(filepath.Join(p.dir, "c.json"), []byte(mcpJSON), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.env = append(os.Environ(), "HOME="+p.home, "XDG_CONFIG_HOME="+p.home+"/config", "XDG_CACHE_HOME="+p.home+"/cache",
		"XDG_STATE_HOME="+p.home+"/state", "XDG_RUNTIME_DIR="+short, "TERM=xterm-256color", "NO_COLOR=")
	p.env = append(p.env, visible()...)
	t.Cleanup(func() {
		for _, pid := range p.left() {
			t.Errorf("process %d is left", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = os.RemoveAll(short)
	})
	return p
}

// left returns the processes of the place that have not ended in time. Elsewhere than on Linux it finds none.
func (p *place) left() []int {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if pids := p.processes(); len(pids) == 0 || time.Now().After(deadline) {
			return pids
		}
	}
}

// awaitsCall waits until a server of the place has a call under way.
func (p *place) awaitsCall() {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		out, _ := p.command("list", "--config", "c.json", "--json").Output() // the text decides
		if bytes.Contains(out, []byte(`"inFlight": 1`)) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no call is under way: %s", out)
		}
	}
}

// processes returns the pids of the place, found by their home directory.
func (p *place) processes() []int {
	var pids []int
	for _, line := range marked([]byte("HOME=" + p.home + "\x00")) {
		var pid int
		if n, _ := fmt.Sscan(line, &pid); n == 1 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// command returns a mcpvisor in the place that is not started.
func (p *place) command(args ...string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command(cmp.Or(p.program, "mcpvisor"), args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to its group is not one to the test
	return cmd
}

// process is a running mcpvisor with its output.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  chan string
	said   []string
	stderr bytes.Buffer
}

// start starts a mcpvisor in the place.
func (p *place) start(args ...string) *process {
	p.t.Helper()
	r := &process{t: p.t, cmd: p.command(args...), lines: make(chan string, 100000)}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	r.cmd.Stderr = &r.stderr
	r.run(out)
	return r
}

// run starts the process and a goroutine that reads its lines; the process is killed at the end of the test at the latest.
func (r *process) run(out io.Reader) {
	r.t.Helper()
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it has ended, if the test went well
		_ = r.cmd.Wait()
		if r.t.Failed() {
			r.t.Logf("standard error:\n%s", r.stderr.String())
		}
	})
	go func() {
		defer close(r.lines)
		in := bufio.NewReader(out)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				r.lines <- strings.TrimRight(line, "\r\n")
			}
			if err != nil {
				return
			}
		}
	}()
}

// says waits for a line that matches, and returns it. The lines before it are kept in said.
func (r *process) says(pattern string) string {
	r.t.Helper()
	re := regexp.MustCompile(pattern)
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				r.t.Fatalf("it ended without saying %q, but:\n%s", pattern, strings.Join(r.said, "\n"))
			}
			r.said = append(r.said, line)
			if re.MatchString(line) {
				return line
			}
		case <-timeout:
			r.t.Fatalf("it does not say %q, but:\n%s", pattern, strings.Join(r.said, "\n"))
		}
	}
}

func (r *process) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// ends reads the remaining lines and returns the exit code.
func (r *process) ends() int {
	r.t.Helper()
	timeout := time.After(patience)
	for open := true; open; {
		select {
		case line, ok := <-r.lines:
			if open = ok; ok {
				r.said = append(r.said, line)
			}
		case <-timeout:
			r.t.Fatalf("it does not end:\n%s", strings.Join(r.said, "\n"))
		}
	}
	return exitCode(r.cmd.Wait())
}

// exitCode returns the exit code of a process, or -1 if a signal killed it or it never ran.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// justOne is a project with one good server; one is the beginning of a project with one fixture.
const justOne = one + `good"]}}}`

const one = `{"mcpServers": {"one": {"command": "fixture", "args": ["mcp-fixture", "`

// mixed is a project with a good server, one that ends at once, one that is not installed, a disabled one and a wrong entry.
const mixed = `{"mcpServers": {
	"one":     {"command": "fixture", "args": ["mcp-fixture", "good"]},
	"ends":    {"command": "fixture", "args": ["mcp-fixture", "exits-at-once", "text=no licence"]},
	"missing": {"command": "no-such-command"},
	"off":     {"command": "fixture", "args": ["mcp-fixture", "good"], "disabled": true},
	"wrong":   {"comand": "fixture"}
}}`

// TestUpInLines checks that without a terminal each change is a line with its time, and that SIGINT, SIGTERM and SIGHUP end the
// run in good order.
func TestUpInLines(t *testing.T) {
	for name, s := range map[string]syscall.Signal{
		"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, mixed)
			r := p.start("up", "--config", "c.json")
			const at = `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  `
			r.says(at + `mcpvisor .*, process \d+, 5 servers of .*/p$`)
			r.says(at + `ends: failed: the process ended with exit status 3; its last words: no licence; next attempt at `)
			r.says(at + `ends: failed again, 2 in a row, for the same reason; next attempt at `)
			r.signal(s)
			if code := r.ends(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			all := strings.Join(r.said, "\n")
			for _, pattern := range []string{
				`  one: connected: \d+ tools \(fixture 1.0.0\)\n`,
				`  missing: failed: the command "no-such-command" was not found.*; not tried again by itself\n`,
				`  wrong: failed: it has neither command nor url; rename comand to command.*; not tried again by itself\n`,
				`  off: disabled\n`,
				`  5 servers: 1 connected, .*1 disabled; \d+ tools\n.*  interrupted; ending 5 servers\n.*  ended in \S+$`,
			} {
				if !regexp.MustCompile(pattern).MatchString(all) {
					t.Errorf("it does not say %q, but:\n%s", pattern, all)
				}
			}
			if strings.Contains(all, "\x1b") {
				t.Errorf("there is an escape sequence in what no terminal reads:\n%q", all)
			}
			if !strings.Contains(r.stderr.String(), `c.json:6:2: server "wrong": it has neither command nor url`) {
				t.Errorf("no warning about the configuration, but:\n%s", r.stderr.String())
			}
		})
	}
}

// TestUpInJSON checks that the first line of up --json describes the run and every other line is an event.
func TestUpInJSON(t *testing.T) {
	t.Parallel()
	p := newPlace(t, mixed)
	r := p.start("up", "--json", "--config", "c.json")
	r.says(`"server":"one".*"status":"connected"`)
	call := p.command("call", "one", "echo", "text=hello")
	if out, err := call.Output(); err != nil || string(out) != "hello\n" {
		t.Errorf("the call: %q, %v", out, err)
	}
	r.says(`"kind":"call-ended"`)
	r.says(`"server":"ends".*"retry":"retry"`)
	r.signal(syscall.SIGINT)
	if code := r.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	for i, line := range r.said {
		rest, ok := strings.CutPrefix(line, `{"schema":1,`)
		if !ok {
			t.Errorf("a line has no version: %s", line)
		}
		r.said[i] = "{" + rest
	}
	var head struct {
		Version, Project string
		PID, Servers     int
		Time             time.Time
	}
	strict(t, r.said[0], &head)
	if head.Version == "" || head.Servers != 5 || head.PID != r.cmd.Process.Pid || filepath.Base(head.Project) != "p" {
		t.Errorf("the first line is %s", r.said[0])
	}
	seq := uint64(0)
	kinds, phases := map[messages.EventKind]int{}, map[string][]messages.Phase{}
	for _, line := range r.said[1:] {
		var e messages.Event
		strict(t, line, &e)
		if e.Seq != seq+1 || e.Time.IsZero() {
			t.Errorf("event %d follows %d: %s", e.Seq, seq, line)
		}
		seq = e.Seq
		kinds[e.Kind]++
		if e.Kind == messages.EventPhase {
			all := phases[e.Server]
			if len(all) == 0 || all[len(all)-1] != e.Status.Status {
				phases[e.Server] = append(all, e.Status.Status)
			}
		}
	}
	want := []messages.Phase{messages.Pending, messages.Connected, messages.Disabled}
	if got := phases["one"]; !slices.Equal(got, want) {
		t.Errorf("one was %v, not %v", got, want)
	}
	if kinds[messages.EventCallStarted] != 1 || kinds[messages.EventCallEnded] != 1 || kinds[messages.EventRemoved] != 5 {
		t.Errorf("events: %v", kinds)
	}
}

// strict decodes one JSON object and refuses members that the type does not have.
func strict(t *testing.T, line string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil || d.More() {
		t.Fatalf("%v in %s", err, line)
	}
}

// TestUpTwice checks that a second up of a project starts nothing, and that with --no-control it runs and leaves the journal
// alone.
func TestUpTwice(t *testing.T) {
	t.Parallel()
	p := newPlace(t, justOne)
	first := p.start("up", "--config", "c.json")
	first.says("one: connected")

	second := p.start("up", "--config", "c.json")
	if code := second.ends(); code != exit.Usage || len(second.said) > 0 {
		t.Errorf("the second: exit code %d, said %q", code, second.said)
	}
	want := fmt.Sprintf(`^mcpvisor: process %d runs mcpvisor up for .*/p already; end that one first\n$`,
		first.cmd.Process.Pid)
	if !regexp.MustCompile(want).MatchString(second.stderr.String()) {
		t.Errorf("the second said %q, not %q", second.stderr.String(), want)
	}

	third := p.start("up", "--config", "c.json", "--no-control")
	third.says("one: connected")
	third.signal(syscall.SIGINT)
	if code := third.ends(); code != 0 || third.stderr.Len() > 0 {
		t.Errorf("the third: exit code %d, %s", code, third.stderr.String())
	}
	first.signal(syscall.SIGINT)
	if code := first.ends(); code != 0 {
		t.Errorf("the first: exit code %d", code)
	}
	journals, _ := filepath.Glob(p.home + "/state/mcpvisor/????????????????.jsonl") // and not audit.jsonl
	if len(journals) != 1 {
		t.Fatalf("journals: %q", journals)
	}
	text, err := os.ReadFile(journals[0])
	if err != nil || bytes.Count(text, []byte(`"kind":"start"`)) != 1 || bytes.Count(text, []byte(`"kind":"end"`)) != 1 {
		t.Errorf("the journal (%v):\n%s", err, text)
	}
}

// TestUpWithNothingToDo checks the errors of up for command lines and files that leave it nothing to do.
func TestUpWithNothingToDo(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `{"mcpServers": {}}`)
	for name, c := range map[string]struct {
		args string
		want string
	}{
		"nothing configured": {"up --no-watch", `no MCP server is configured: there is no .mcp.json in .*/p, and no .*mcp.json; ` +
			`add one with mcpvisor add NAME COMMAND…, or write a .mcp.json such as\n  \{"mcpServers": .*\n.* mcpvisor up --demo`},
		"an empty file":     {"up --no-watch --config c.json", `no MCP server is configured in .*/c.json; add one (.*\n){2}.*--demo`},
		"no such file":      {"up --config d.json", `.*d.json: there is no such file; check the name after --config`},
		"an argument":       {"up one", `up takes no arguments, and "one" is one; see: mcpvisor up --help`},
		"a negative time":   {"up --duration -1s", `--duration: -1s is negative; see: mcpvisor up --help`},
		"no time":           {"up --duration soon", `.*--duration.*; see: mcpvisor up --help`},
		"a demo and a file": {"up --demo --config c.json", `--demo runs its own servers; leave out --config and .*`},
	} {
		t.Run(name, func(t *testing.T) {
			r := p.start(strings.Fields(c.args)...)
			code, want := r.ends(), regexp.MustCompile("^mcpvisor: "+c.want+"\n$")
			if code != exit.Usage || len(r.said) > 0 || !want.MatchString(r.stderr.String()) {
				t.Errorf("exit code %d, said %q and %q, not %q", code, r.said, r.stderr.String(), want)
			}
		})
	}
}

// TestUpThatNobodyReads checks that the servers end in good order when the reader of the output goes away.
func TestUpThatNobodyReads(t *testing.T) {
	t.Parallel()
	p := newPlace(t, one+`crash-after", "after=200ms"]}}}`)
	cmd := p.command("up", "--json", "--config", "c.json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(err)
	}
	_ = out.Close()
	if code := exitCode(cmd.Wait()); code != exit.Failed {
		t.Errorf("exit code %d", code)
	}
}

// TestUpTellsOfTools checks that a changed number of tools makes a line.
func TestUpTellsOfTools(t *testing.T) {
	t.Parallel()
	p := newPlace(t, justOne)
	r := p.start("up", "--config", "c.json")
	r.says(`one: connected: 13 tools`)
	for _, tool := range []string{"grow", "shrink"} {
		if out, err := p.command("call", "one", tool, "name=extra").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", tool, err, out)
		}
		r.says(map[string]string{
			"grow": `one: offers 14 tools now, 13 before`, "shrink": `one: offers 13 tools now, 14 before`,
		}[tool])
	}
	r.signal(syscall.SIGTERM)
	if code := r.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestUpWithADefect checks that a panic of mcpvisor ends the servers in good order and is named.
func TestUpWithADefect(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	cmd := exec.Command("broken")
	cmd.Dir, cmd.Env = p.dir, p.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if code := exitCode(cmd.Run()); code != exit.Failed {
		t.Errorf("exit code %d", code)
	}
	const want = "a defect of mcpvisor ended it: a bug"
	if got := stderr.String(); got != "mcpvisor: "+want+"\n" {
		t.Errorf("standard error: %s", got)
	}
	received := regexp.MustCompile(`  one: connected: (.*\n)*.*  ` + want + `; ending 1 server\n.*  ended in \S+\n$`)
	if !received.MatchString(stdout.String()) {
		t.Errorf("standard output:\n%s", stdout.String())
	}
}

// TestUpEndsInTime checks that a server that ignores all signals, and a call that never ends, delay the end only for a bounded
// time, and that the second signal ends it at once.
func TestUpEndsInTime(t *testing.T) {
	for name, signals := range map[string]int{"one signal": 1, "two signals": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, one+`ignores-signals", "for=10m"]}}}`)
			r := p.start("up", "--config", "c.json")
			r.says("one: connected")
			call := p.start("call", "one", "sleep", "for=10m")
			p.awaitsCall()
			start := time.Now()
			r.signal(syscall.SIGINT)
			if signals == 2 {
				r.says("interrupted; ending 1 server")
				r.signal(syscall.SIGINT)
			}
			want := map[int]int{1: exit.OK, 2: exit.Interrupted}[signals]
			if code := r.ends(); code != want {
				t.Errorf("exit code %d, not %d", code, want)
			}
			if took := time.Since(start); took > patience { // the server and the call last ten minutes
				t.Errorf("it took %v", took)
			}
			if code := call.ends(); code != exit.Unknown {
				t.Errorf("the call: exit code %d, %s", code, call.stderr.String())
			}
		})
	}
}
