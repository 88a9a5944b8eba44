package transports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Guardian is a second process that outlives this one by a few seconds. It is told of every process group that is
// started (it is a Guard), and it holds the reading end of a pipe, the lifeline. When the lifeline closes, because
// Close was called or because this process was killed in whatever way, the guardian sends SIGTERM to every group that
// is still there, 2 s later SIGKILL, and ends.
//
// The guardian is in a session of its own: Ctrl-C, the end of the terminal and a signal to this process's group do not
// reach it. It does not trust numbers: before it signals a group it compares when the group's first process was
// started, and without that one, whether the group's members belong to the same session, so that a number that was
// given to another process does no harm (on Linux and macOS; other systems do not tell).
//
// Not covered: a process that has left its group; this process and the guardian being killed at the same moment; the
// microseconds between the start of a group and its announcement.
//
// On Windows there is no such process, and none is needed: the system ends job objects with the process that holds
// them. StartGuardian starts nothing there.
type Guardian struct {
	mu          sync.Mutex
	lifeline    *os.File // the lifeline; nil on Windows and after Close
	lifelineErr error    // the guardian does not listen any more
	cmd         *exec.Cmd
	done        chan struct{}
}

var _ Guard = (*Guardian)(nil)

// guardianGrace is the time between SIGTERM and SIGKILL.
const guardianGrace = 2 * time.Second

// lifelineTimeout bounds how long a guardian that does not read can hold up a start.
const lifelineTimeout = time.Second

// StartGuardian starts cmd as the guardian of this process. cmd is this program again, with an argument (or a variable)
// that makes it call RunGuardian(os.Stdin) and nothing else, before it does anything that could be seen. Its standard
// input is set here; its output goes nowhere unless cmd says otherwise, so that a program that reads our output does not wait for the guardian. Its
// environment is empty if cmd.Env is nil: it needs nothing of ours, and keeps none of its secrets.
func StartGuardian(cmd *exec.Cmd) (*Guardian, error) {
	g := &Guardian{done: make(chan struct{})}
	if !guardianNeeded {
		close(g.done)
		return g, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, guardianError(err)
	}
	defer r.Close()
	cmd.Stdin = r
	if cmd.SysProcAttr = guardianAttributes(); cmd.Env == nil {
		cmd.Env = []string{}
	}
	if path, err := filepath.Abs(cmd.Path); err == nil && cmd.Dir == "" {
		cmd.Path, cmd.Dir = path, "/" // it keeps no directory from being removed
	}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil, guardianError(err)
	}
	g.lifeline, g.cmd = w, cmd
	go func() {
		defer close(g.done)
		_ = cmd.Wait() // how it ended tells nothing: it ends with the lifeline, or was killed
	}()
	return g, nil
}

func guardianError(err error) *Error {
	e := startError(&StdioConfig{Command: "guardian"}, err)
	return &Error{Class: e.Class, Text: "the guardian process cannot be started: " + causeText(err), Err: e.Err}
}

// Watch implements Guard. A nil Guardian guards nothing.
func (g *Guardian) Watch(pgid int) (release func()) {
	if g == nil || !guardianNeeded {
		return func() {}
	}
	id := identifyProcess(pgid)
	g.writeLifeline("watch %d %d %d\n", pgid, id.start, id.session)
	return sync.OnceFunc(func() { g.writeLifeline("release %d\n", pgid) })
}

func (g *Guardian) writeLifeline(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lifeline == nil || g.lifelineErr != nil {
		return
	}
	_ = g.lifeline.SetWriteDeadline(time.Now().Add(lifelineTimeout))
	_, g.lifelineErr = fmt.Fprintf(g.lifeline, format, args...)
}

// Done is closed when the guardian has ended. If that was not Close, no process ends the groups when this one is
// killed.
func (g *Guardian) Done() <-chan struct{} { return g.done }

// Close ends the guardian. Groups that were not released are ended by it, so close the connections first. It returns
// when the guardian has ended, which takes a moment, or 2 s if groups were left that do not end when asked.
func (g *Guardian) Close() error {
	g.mu.Lock()
	line := g.lifeline
	g.lifeline = nil
	g.mu.Unlock()
	if line == nil {
		<-g.done
		return nil
	}
	_ = line.Close()
	t := time.NewTimer(guardianGrace + killTime)
	defer t.Stop()
	select {
	case <-g.done:
		return nil
	case <-t.C:
		_ = g.cmd.Process.Kill()
		<-g.done
		return &Error{Class: messages.ClassTimeout, Text: "the guardian process did not end and was killed",
			Err: errors.New("guardian: timeout")}
	}
}

// RunGuardian does the work of a guardian process: it reads what the lifeline tells until that ends, and then ends what is
// left. It ignores SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE, for this whole process. Its error is one of reading;
// the groups have been ended then too.
func RunGuardian(lifeline io.Reader) error {
	ignoreSignals()
	groups := map[int]processIdentity{}
	in := bufio.NewScanner(lifeline)
	for in.Scan() {
		var pgid int
		var id processIdentity
		if n, _ := fmt.Sscanf(in.Text(), "watch %d %d %d", &pgid, &id.start, &id.session); n == 3 && pgid > 1 {
			groups[pgid] = id
		} else if n, _ := fmt.Sscanf(in.Text(), "release %d", &pgid); n == 1 {
			delete(groups, pgid)
		}
	}
	endGroups(groups, guardianGrace)
	return in.Err()
}

// processIdentity tells a process group from another one that was given the same number later. Zero values are not known.
type processIdentity struct {
	start   uint64 // when the first process was started, in the system's own unit
	session int
}
