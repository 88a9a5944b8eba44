package transports

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// process is one child with its process group: itself and everything that it starts and that does not leave the group. On
// Unix the group is the first of a session that has the same id.
//
// On Linux the end of a child is noticed through a descriptor (pidfd) and the runtime's poller, so that 1,000 children
// cost no 1,000 threads. The child stays a zombie until reap, and while it is one its group id cannot be given to
// anybody else: killing the group before reap cannot hit a stranger.
type process struct {
	cmd           *exec.Cmd
	group         processGroup
	releaseThread func() // gives the thread back that the child's life hangs on

	stdin, stdout, stderr *os.File // our ends

	isolation *childIsolation // what it is kept from
	started   time.Time

	exited   chan struct{} // closed when the child has ended
	reapOnce sync.Once     // reaps
	exitText string        // how it ended, set by reap
}

// A group ends a whole tree of processes, by the means of the platform. Its methods fail silently: what cannot be
// signalled is gone, or not ours.
type processGroup interface {
	// terminate asks, kill ends. alive reports whether anybody is left, living whether anybody but zombies is, which
	// costs far more to know; they may only be asked after the child was reaped.
	terminate()
	kill()
	hasMembers() bool
	hasLivingMembers() bool
	// close releases what the platform holds for the group.
	close()
}

// startProcess starts what cfg describes, which has been resolved to path.
func startProcess(ctx context.Context, cfg *StdioConfig, path, dir string) (_ *process, failed *Error) {
	restrictions, failed := planIsolation(cfg, func(want messages.Isolation) isolation.Capabilities { return CapabilitiesFor(ctx, want) })
	if failed != nil {
		return nil, failed
	}
	p := &process{exited: make(chan struct{}), isolation: restrictions, started: time.Now()}
	var childFiles []*os.File
	defer func() {
		for _, f := range childFiles {
			_ = f.Close()
		}
		if failed != nil {
			p.closePipes()
			restrictions.releaseTemp()
		}
	}()
	for _, end := range []**os.File{&p.stdin, &p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, startError(cfg, err)
		}
		if end == &p.stdin {
			r, w = w, r
		}
		*end = r
		childFiles = append(childFiles, w)
	}
	for wait := 5 * time.Millisecond; ; wait *= 2 {
		p.cmd = &exec.Cmd{
			Path: path, Args: append([]string{cfg.Command}, cfg.Args...), Dir: dir, Env: childEnv(restrictions.withTempEnv(cfg.Env), dir),
			Stdin: childFiles[0], Stdout: childFiles[1], Stderr: childFiles[2], SysProcAttr: processAttributes(cfg),
		}
		release, err := restrictions.startChild(ctx, p.cmd, Child{Server: cfg.Server, MayControl: cfg.MayControl, Isolated: restrictions != nil})
		if err == nil {
			p.releaseThread = release
			break
		}
		// A file that has just been written (an upgrade, a build) can be held open for writing by another thread's
		// fork for a moment.
		if !isTextBusy(err) || wait > 200*time.Millisecond || !sleepContext(ctx, wait) {
			if ctx.Err() != nil {
				return nil, contextError(ctx, "starting the process")
			}
			if failed := restrictions.launchFailure(err); failed != nil {
				return nil, failed
			}
			return nil, startError(cfg, err)
		}
	}
	g, err := newProcessGroup(p.cmd.Process)
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		children.markReaped(p.cmd.Process.Pid)
		p.releaseThread()
		return nil, startError(cfg, err)
	}
	p.group = g
	return p, nil
}

// childEnv returns the whole environment of the child. PWD is set as a shell would for a directory.
func childEnv(env []string, dir string) []string {
	env = append([]string{}, env...) // not nil, which would mean everything
	if dir != "" {
		env = append(env, "PWD="+dir)
	}
	return env
}

// reapChild takes the child's status from the system, so that no zombie is left, and gives its text. It must not be called
// before the child has ended.
func (p *process) reapChild() string {
	p.reapOnce.Do(func() {
		state := p.waitStatus()
		children.markReaped(p.cmd.Process.Pid)
		p.exitText = "unknown exit status" // other code of this process has waited for the child
		if state != nil {
			p.exitText = state.String()
		}
		p.releaseThread()
	})
	return p.exitText
}

// awaitGroupEnd waits until no process of the group is left, for at most d, and reports whether that is so. The child must have
// been reaped. With killed set, members that are only zombies do not count: the parent that has to reap them may be slow, or
// never do it (the first process of many containers).
//
// While anybody is left, the group's id is taken; it would have to become free, be given to a new process and that
// one's group within one period of asking for this to see a stranger.
func (p *process) awaitGroupEnd(d time.Duration, killed bool) bool {
	deadline := time.Now().Add(d)
	for period := time.Millisecond; ; period = min(2*period, 25*time.Millisecond) {
		if !p.group.hasMembers() || killed && period > 10*time.Millisecond && !p.group.hasLivingMembers() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(period)
	}
}

func (p *process) closePipes() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// killAndRelease ends a process at once that no connection needs any more.
func (p *process) killAndRelease() {
	p.group.kill()
	p.awaitExit()
	p.reapChild()
	p.group.close()
	p.closePipes()
	p.isolation.releaseTemp()
}

// sleepContext reports false if ctx ended first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// watchdogTime is how soon after its start a program that watches its parent notices that it may not signal it. Most look every
// few seconds.
const watchdogTime = time.Minute

// exitError says that the child has ended by itself, and what may have been the reason.
func (p *process) exitError(exit string) *Error {
	e := exitError(exit)
	if f := p.isolation; f != nil && f.steps.Files.HidesSignals() && time.Since(p.started) < watchdogTime &&
		strings.HasPrefix(exit, "exit status") {
		e.Fix = "see what it said (logs); if nothing: it may watch its parent with kill(ppid, 0), which \"read\", \"write\" and " +
			"\"network\" of its isolation refuse, so that it takes its parent for gone: switch that off in it, or write " +
			"\"isolation\": true"
	}
	return e
}

// exitError says that the child has ended by itself.
func exitError(exit string) *Error {
	e := &Error{Class: messages.ClassExited, Text: "the process ended with " + exit}
	if signal, ok := strings.CutPrefix(exit, "signal: "); ok {
		e.Text = "the process was ended by the signal " + signal
	}
	return e
}
