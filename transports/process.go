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
	cmd    *exec.Cmd
	group  group
	thread func() // gives the thread back that the child's life hangs on

	stdin, stdout, stderr *os.File // our ends

	isolated *isolated // what it is kept from
	started  time.Time

	exited chan struct{} // closed when the child has ended
	once   sync.Once     // reaps
	exit   string        // how it ended, set by reap
}

// A group ends a whole tree of processes, by the means of the platform. Its methods fail silently: what cannot be
// signalled is gone, or not ours.
type group interface {
	// terminate asks, kill ends. alive reports whether anybody is left, living whether anybody but zombies is, which
	// costs far more to know; they may only be asked after the child was reaped.
	terminate()
	kill()
	alive() bool
	living() bool
	// close releases what the platform holds for the group.
	close()
}

// startProcess starts what cfg describes, which has been resolved to path.
func startProcess(ctx context.Context, cfg *StdioConfig, path, dir string) (_ *process, failed *Error) {
	kept, failed := isolate(cfg, func(want messages.Isolation) isolation.Capabilities { return CapabilitiesFor(ctx, want) })
	if failed != nil {
		return nil, failed
	}
	p := &process{exited: make(chan struct{}), isolated: kept, started: time.Now()}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if failed != nil {
			p.closePipes()
			kept.release()
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
		theirs = append(theirs, w)
	}
	for wait := 5 * time.Millisecond; ; wait *= 2 {
		p.cmd = &exec.Cmd{
			Path: path, Args: append([]string{cfg.Command}, cfg.Args...), Dir: dir, Env: childEnv(kept.env(cfg.Env), dir),
			Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2], SysProcAttr: attributes(cfg),
		}
		release, err := kept.start(ctx, p.cmd, Child{Server: cfg.Server, MayControl: cfg.MayControl, Isolated: kept != nil})
		if err == nil {
			p.thread = release
			break
		}
		// A file that has just been written (an upgrade, a build) can be held open for writing by another thread's
		// fork for a moment.
		if !textBusy(err) || wait > 200*time.Millisecond || !sleepContext(ctx, wait) {
			if ctx.Err() != nil {
				return nil, contextError(ctx, "starting the process")
			}
			if failed := kept.failure(err); failed != nil {
				return nil, failed
			}
			return nil, startError(cfg, err)
		}
	}
	g, err := adopt(p.cmd.Process)
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		children.reaped(p.cmd.Process.Pid)
		p.thread()
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

// reap takes the child's status from the system, so that no zombie is left, and gives its text. It must not be called
// before the child has ended.
func (p *process) reap() string {
	p.once.Do(func() {
		state := p.wait()
		children.reaped(p.cmd.Process.Pid)
		p.exit = "unknown exit status" // other code of this process has waited for the child
		if state != nil {
			p.exit = state.String()
		}
		p.thread()
	})
	return p.exit
}

// sweep waits until no process of the group is left, for at most d, and reports whether that is so. The child must have
// been reaped. With killed set, members that are only zombies do not count: the parent that has to reap them may be slow, or
// never do it (the first process of many containers).
//
// While anybody is left, the group's id is taken; it would have to become free, be given to a new process and that
// one's group within one period of asking for this to see a stranger.
func (p *process) sweep(d time.Duration, killed bool) bool {
	deadline := time.Now().Add(d)
	for period := time.Millisecond; ; period = min(2*period, 25*time.Millisecond) {
		if !p.group.alive() || killed && period > 10*time.Millisecond && !p.group.living() {
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

// discard ends a process at once that no connection needs any more.
func (p *process) discard() {
	p.group.kill()
	p.awaitExit()
	p.reap()
	p.group.close()
	p.closePipes()
	p.isolated.release()
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
	if f := p.isolated; f != nil && f.steps.Files.HidesSignals() && time.Since(p.started) < watchdogTime &&
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
