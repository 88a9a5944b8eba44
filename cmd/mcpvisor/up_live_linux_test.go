package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
)

// pseudoTerminal is the master side of the pseudo-terminal that a process runs on, with everything that was written to it.
type pseudoTerminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	ended  chan int // the exit code of the process, sent once

	mu  sync.Mutex
	all strings.Builder
}

// onTerminal starts a mcpvisor on a pseudo-terminal of its own, of 90 columns and 30 lines.
func (p *place) onTerminal(env []string, args ...string) *pseudoTerminal {
	p.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	defer slave.Close()
	// Reads must end with Close: the descriptor was made blocking by Fd.
	if err := unix.SetNonblock(int(master.Fd()), true); err != nil {
		p.t.Fatal(err)
	}
	term := &pseudoTerminal{t: p.t, cmd: p.command(args...), ended: make(chan int, 1)}
	term.master = os.NewFile(uintptr(dup(p.t, master)), "ptmx")
	_ = master.Close()
	term.resize(90, 30)
	term.cmd.Env = append(term.cmd.Env, env...)
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = term.cmd.Process.Kill()
		_ = term.master.Close()
	})
	go term.read()
	go func() { term.ended <- exitCode(term.cmd.Wait()) }()
	return term
}

// dup returns a copy of the descriptor that a new os.File can own.
func dup(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// read collects the output of the process until its terminal is closed.
func (t *pseudoTerminal) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := t.master.Read(buf)
		t.mu.Lock()
		t.all.Write(buf[:n])
		t.mu.Unlock()
		if err != nil {
			return // the other side has closed it
		}
	}
}

// text returns what was written so far.
func (t *pseudoTerminal) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.String()
}

// resize changes the size of the terminal, as a person who resizes the window.
func (t *pseudoTerminal) resize(width, height uint16) {
	t.t.Helper()
	raw, err := t.master.SyscallConn()
	if err == nil {
		err2 := raw.Control(func(fd uintptr) {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height})
		})
		if err == nil {
			err = err2
		}
	}
	if err != nil {
		t.t.Fatal(err)
	}
}

// types writes keys, as a person at the terminal.
func (t *pseudoTerminal) types(keys string) {
	t.t.Helper()
	if _, err := t.master.WriteString(keys); err != nil {
		t.t.Fatal(err)
	}
}

// shows waits until the output from the offset on matches, and returns the offset behind the match.
func (t *pseudoTerminal) shows(from int, pattern string) int {
	t.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all := t.text()
		if at := re.FindStringIndex(all[from:]); at != nil {
			return from + at[1]
		}
		if time.Now().After(deadline) {
			t.t.Fatalf("it does not show %q, but:\n%q", pattern, all[from:])
		}
	}
}

// ends waits until the process and its output have ended, and returns the exit code.
func (t *pseudoTerminal) ends() int {
	t.t.Helper()
	select {
	case code := <-t.ended:
		t.shows(0, `ended in \S+\r\n$`)
		return code
	case <-time.After(patience):
		t.t.Fatalf("it does not end:\n%q", t.text())
		return 0
	}
}

// pictures splits an output into its pictures, each a list of lines.
func pictures(text string) [][]string {
	var all [][]string
	for _, part := range strings.Split(text, terminal.AnsiHome)[1:] {
		if picture, _, ok := strings.Cut(part, terminal.AnsiDone); ok {
			all = append(all, strings.Split(strings.ReplaceAll(strings.ReplaceAll(picture, terminal.AnsiClear, ""), "\r", ""), "\n"))
		}
	}
	return all
}

// TestUpOnATerminal checks the table: it is kept up to date, follows the size of the terminal, and at the end gives the
// terminal back with the last table on it.
func TestUpOnATerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, mixed)
	term := p.onTerminal(nil, "up", "--config", "c.json")
	at := term.shows(0, regexp.QuoteMeta(terminal.AnsiEnter))
	at = term.shows(at, `5 servers: [^\r]*1 connected`)
	at = term.shows(at, `one +\x1b\[32mconnected\x1b\[0m +stdio +\d+ +0`)
	term.shows(at, `ends +\x1b\[31mfailed\x1b\[0m +stdio +0  in \d+s`)
	term.resize(50, 12)
	at = len(term.text())
	for range 3 { // the first of them may have been begun before
		at = term.shows(at, regexp.QuoteMeta(terminal.AnsiDone))
	}
	narrow := pictures(term.text())
	last := narrow[len(narrow)-1]
	if len(last) > 12 {
		t.Errorf("%d lines on 12:\n%s", len(last), strings.Join(last, "\n"))
	}
	colour := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for _, line := range last {
		if n := len([]rune(colour.ReplaceAllString(line, ""))); n > 50 {
			t.Errorf("%d columns on 50: %q", n, line)
		}
	}
	for i := 1; i < len(narrow); i++ {
		if strings.Join(narrow[i], "\n") == strings.Join(narrow[i-1], "\n") {
			t.Errorf("a picture was drawn twice:\n%s", strings.Join(narrow[i], "\n"))
		}
	}
	term.types("\x03") // Ctrl-C
	if code := term.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	rest := term.text()[at:]
	_, after, ok := strings.Cut(rest, terminal.AnsiLeave)
	if !ok || strings.Contains(after, terminal.AnsiEnter) {
		t.Fatalf("the terminal is not given back:\n%q", rest)
	}
	for _, pattern := range []string{
		`\r\none +\x1b\[32mconnected`, `\r\ninterrupted; ending 5 servers \(Ctrl-C again ends them at once\)\r\n`,
	} {
		if !regexp.MustCompile(pattern).MatchString(after) {
			t.Errorf("%q is not left on the terminal, but:\n%s", pattern, after)
		}
	}
}

// TestUpOnAPoorTerminal checks that NO_COLOR is honoured, and that a dumb terminal gets lines.
func TestUpOnAPoorTerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, mixed)
	term := p.onTerminal([]string{"NO_COLOR=1"}, "up", "--config", "c.json", "--no-control")
	at := term.shows(0, `one +connected +stdio +\d+ +0`)
	term.types("\x03")
	term.ends()
	if sgr := regexp.MustCompile(`\x1b\[[0-9;]*m`).FindString(term.text()); sgr != "" {
		t.Errorf("there is a colour, %q, in:\n%q", sgr, term.text()[:at])
	}

	dumb := p.onTerminal([]string{"TERM=dumb"}, "up", "--config", "c.json", "--no-control")
	dumb.shows(0, `\d\d:\d\d:\d\d  one: connected: `)
	dumb.types("\x03")
	dumb.ends()
	if strings.Contains(dumb.text(), "\x1b") {
		t.Errorf("there is an escape sequence in:\n%q", dumb.text())
	}
}

// TestUpAsksForApproval checks that up asks about each server of a project at a terminal, and starts none without a terminal or
// after a no.
func TestUpAsksForApproval(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	if err := os.WriteFile(p.dir+"/.mcp.json", []byte(justOne), 0o600); err != nil {
		t.Fatal(err)
	}
	unasked := p.start("up", "--duration", "1s")
	unasked.says(`one: unapproved: found in the project and not approved yet; look at .*.mcp.json and run .mcpvisor approve`)
	if unasked.ends(); !strings.Contains(strings.Join(unasked.said, "\n"), "1s have passed; ending") {
		t.Errorf("at its end it says %q", unasked.said)
	}

	question := `They would run with your rights\.\r\n\r\none  from .*/p/.mcp.json \(project\)\r\n  found in the project and not approved yet\r\n` +
		`  runs fixture mcp-fixture good in .*/p\r\n  as it is written:\r\n(.*\r\n)+Approve and start one\? \[y\]es or \[n\]o $`
	term := p.onTerminal(nil, "up", "--duration", "1s")
	at := term.shows(0, question)
	term.types("\r") // consent is typed
	at = term.shows(at, `Type yes or no\.\r\n`)
	term.types("no\r")
	at = term.shows(at, `going on without the others; approve with: mcpvisor approve NAME\r\n`)
	term.shows(at, `one +\x1b\[33munapproved`)
	term.ends()
	term = p.onTerminal(nil, "up", "--duration", "1m")
	term.shows(0, question)
	term.types("\x03")
	if code := <-term.ended; code != exit.Interrupted {
		t.Errorf("Ctrl-C at the question: exit code %d", code)
	}
	term = p.onTerminal(nil, "up")
	at = term.shows(0, question)
	term.types("y\r")
	term.shows(at, `one +\x1b\[32mconnected`)
	term.types("\x03")
	term.ends()
	term = p.onTerminal(nil, "up")
	term.shows(0, `one +\x1b\[32mconnected`)
	term.types("\x03")
	term.ends()
	if strings.Contains(term.text(), "[y/N]") {
		t.Errorf("it asks again:\n%q", term.text())
	}
}

// TestUpIsSuspended checks that Ctrl-Z gives the terminal back while the servers go on, and that the table is drawn again
// afterwards.
func TestUpIsSuspended(t *testing.T) {
	t.Parallel()
	p := newPlace(t, justOne)
	term := p.onTerminal(nil, "up", "--config", "c.json")
	at := term.shows(0, `one +\x1b\[32mconnected`)
	// A shell would send this signal to the group in the foreground when the person presses Ctrl-Z.
	if err := syscall.Kill(term.cmd.Process.Pid, syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	at = term.shows(at, regexp.QuoteMeta(terminal.AnsiLeave))
	stopped := func() bool {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(term.cmd.Process.Pid) + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(rest, "T")
	}
	for deadline := time.Now().Add(patience); !stopped(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not stopped")
		}
	}
	if n := len(alive(p.processes())); n != 3 {
		t.Errorf("%d processes run or are stopped, not 3: mcpvisor, its guardian and the server", n)
	}
	if err := syscall.Kill(term.cmd.Process.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	at = term.shows(at, regexp.QuoteMeta(terminal.AnsiEnter))
	term.shows(at, `one +\x1b\[32mconnected`)
	term.types("\x03")
	if code := term.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
