package stdio

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
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio/internal/process"
)

// Guardian is a second process that outlives this one by a few seconds. This process writes to it about every process group that
// it starts (Guardian is a [Guard]), through a pipe, the lifeline. When the lifeline closes, because Close was called or because
// this process was killed in whatever way, the guardian sends SIGTERM to every group that is still there, 2 s later SIGKILL, and
// ends.
//
//	this process ── "watch 4711 …", "release 4711" ──> guardian
//	     └─ killed: the pipe ends ─────────────────────> SIGTERM, 2 s, SIGKILL
//
// The guardian is in a session of its own: Ctrl-C, the end of the terminal and a signal to this process's group do not reach it.
// It does not trust numbers: before it signals a group it compares when the group's first process was started, and without that
// one, whether the group's members belong to the same session, so that a number that was given to another process does no harm
// (on Linux and macOS; other systems do not say).
//
// Not covered: a process that has left its group; this process and the guardian being killed at the same moment; the microseconds
// between the start of a group and its announcement.
//
// On Windows there is no such process, and none is needed: the system ends job objects with the process that holds them.
// [StartGuardian] starts nothing there.
type Guardian struct {
	// mu guards lifeline and lifelineErr.
	mu       sync.Mutex
	lifeline *os.File // nil on Windows and after Close
	// lifelineErr is set when the guardian does not read any more; nothing is written then.
	lifelineErr error
	cmd         *exec.Cmd
	// done is closed when the guardian has ended.
	done chan struct{}
}

var _ Guard = (*Guardian)(nil)

// guardianGrace is the time between SIGTERM and SIGKILL.
const guardianGrace = 2 * time.Second

// lifelineTimeout bounds how long a guardian that does not read can hold up a start.
const lifelineTimeout = time.Second

// StartGuardian starts cmd as the guardian of this process. cmd is this program again, with an argument (or a variable) that
// makes it call RunGuardian(os.Stdin) and nothing else, before it does anything that could be seen.
//
// StartGuardian sets the standard input. The output goes nowhere unless cmd says otherwise, so that a program that reads this
// process's output does not wait for the guardian. The environment is empty if cmd.Env is nil: the guardian needs nothing of it,
// and must not keep its secrets.
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
		// A guardian in this process's directory would keep that from being removed or unmounted.
		cmd.Path, cmd.Dir = path, "/"
	}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil, guardianError(err)
	}
	g.lifeline, g.cmd = w, cmd
	go func() {
		defer close(g.done)
		// The result says nothing: the guardian ends with the lifeline, or was killed.
		_ = cmd.Wait()
	}()
	return g, nil
}

// guardianError translates an error of starting the guardian.
func guardianError(err error) *transports.Error {
	e := process.StartError("guardian", err)
	return &transports.Error{Class: e.Class, Text: "the guardian process cannot be started: " + process.CauseText(err), Err: e.Err}
}

// Watch implements Guard. It writes the group's number and its identity to the guardian. A nil Guardian guards nothing.
func (g *Guardian) Watch(pgid int) (release func()) {
	if g == nil || !guardianNeeded {
		return func() {}
	}
	id := process.Identify(pgid)
	g.writeLifeline("watch %d %d %d\n", pgid, id.Start, id.Session)
	return sync.OnceFunc(func() { g.writeLifeline("release %d\n", pgid) })
}

// writeLifeline writes one line, or nothing once a write has failed: half a line would be read as another one.
func (g *Guardian) writeLifeline(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lifeline == nil || g.lifelineErr != nil {
		return
	}
	_ = g.lifeline.SetWriteDeadline(time.Now().Add(lifelineTimeout))
	_, g.lifelineErr = fmt.Fprintf(g.lifeline, format, args...)
}

// Done is closed when the guardian has ended. If that happens without Close, no process ends the groups when this one is killed;
// a program should start another guardian, or warn.
func (g *Guardian) Done() <-chan struct{} { return g.done }

// Close ends the guardian. The guardian ends the groups that were not released, so close the connections first. Close returns
// when the guardian has ended, which takes a moment, or 2 s if groups were left that ignore SIGTERM. A guardian that takes 4 s is
// killed, and Close returns an error.
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
		return &transports.Error{Class: messages.ClassTimeout, Text: "the guardian process did not end and was killed",
			Err: errors.New("guardian: timeout")}
	}
}

// RunGuardian does the work of a guardian process: it reads the lifeline until that ends, and then ends the groups that are left.
// It ignores SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE, for this whole process, so that it survives what ends its parent. Its
// error is one of reading; the groups have been ended then, too.
func RunGuardian(lifeline io.Reader) error {
	ignoreSignals()
	groups := map[int]process.Identity{}
	in := bufio.NewScanner(lifeline)
	for in.Scan() {
		var pgid int
		var id process.Identity
		if n, _ := fmt.Sscanf(in.Text(), "watch %d %d %d", &pgid, &id.Start, &id.Session); n == 3 && pgid > 1 {
			groups[pgid] = id
		} else if n, _ := fmt.Sscanf(in.Text(), "release %d", &pgid); n == 1 {
			delete(groups, pgid)
		}
	}
	process.EndGroups(groups, guardianGrace)
	return in.Err()
}
