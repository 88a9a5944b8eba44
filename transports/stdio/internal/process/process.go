// Package process starts the children of package stdio and ends them, with everything that they start: it finds the command, plans
// and enforces the isolation, keeps the group together, and reaps. Each system has files of its own.
//
//	Start(Spec) ──> Process ── AwaitExit ──> Exited ──> Group.Kill ──> ReapChild ──> AwaitGroupEnd ──> ReleaseGroup
//
// A group is ended only while its number cannot belong to another one: before the child is reaped, or as [Identity] tells.
//
// # How it fits
//
// Package stdio calls [Start] when a connection is dialed, reads and writes the pipes of the [Process], and climbs down the stop
// ladder by Group. The guardian, a process of its own, calls [EndGroups] for the groups of a manager that was killed. Package
// isolation decides what a child is kept from, internal/launcher performs it inside of the child, and package children notes each
// start and end.
//
// # Guarantees
//
//   - A Start that fails leaves no process, no pipe and no folder behind.
//   - A command without a separator is looked up in the child's PATH, and in this process's if the child has none. Relative entries
//     are skipped, so that a server does not depend on where this process was started.
//   - An error shows the command up to its first space and no variable's value: both may hold a token.
//
// # Not promised
//
// A descendant that makes a session of its own leaves the group and is not ended with it on Unix; on Windows the job object holds
// it. Where the system has no pidfd (macOS, Windows, old kernels), a child costs a thread while it lives.
package process

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/pause"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
	"github.com/mcpvisor/mcpvisor/transports/stdio/children"
)

// Process is one child with its process group: itself and everything that it starts and that does not leave the group. On Unix
// the group is the first of a session that has the same id.
//
// On Linux a descriptor (pidfd) in the runtime's poller shows the end of a child, so that 1,000 children cost no 1,000 threads.
// The child stays a zombie until ReapChild, and as long its group id cannot be given to another process: killing the group before
// ReapChild cannot hit a stranger.
type Process struct {
	cmd   *exec.Cmd
	Group Group
	// releaseThread releases the thread that started the child: on Linux the child would be killed if that thread ended.
	releaseThread func()

	Stdin, Stdout, Stderr *os.File // this process's ends of the pipes

	isolation *childIsolation // nil if the child is not isolated
	started   time.Time       // before the first try; ExitError tells by it how long the child has lived

	Exited chan struct{} // closed by AwaitExit when the child has ended
	// reapOnce guards exitText, which says how the child ended.
	reapOnce sync.Once
	exitText string
}

// Spec says how one child is started; stdio.Config describes the fields.
type Spec struct {
	// Command is a path or a name; resolveCommand says where each is looked up.
	Command string
	// Env is the whole environment of the child; nothing of this process's is added.
	Args, Env []string
	// Dir is the working directory, empty for that of this process.
	Dir string
	// Isolation keeps the child from parts of the system, nil from nothing.
	Isolation *messages.Isolation
	// Terminal leaves the child in the session of this process, in a group of its own, so that it can ask at the terminal.
	Terminal bool
	// Guarded is true if a guardian ends the child's group when this process is killed.
	Guarded bool
	// Server and MayControl are not used here: startChild notes them with the child, for children.Find.
	Server     string
	MayControl bool
}

// Start finds the program of spec and starts it. If it fails, nothing is left: no process, no pipe and no folder.
func Start(ctx context.Context, spec *Spec) (_ *Process, failed *transports.Error) {
	path, dir, failed := resolveCommand(spec)
	if failed != nil {
		return nil, failed
	}
	restrictions, failed := planIsolation(spec.Isolation, func(want messages.Isolation) isolation.Capabilities { return FindCapabilitiesFor(ctx, want) })
	if failed != nil {
		return nil, failed
	}
	// From here on every return with an error has something to release.
	p := &Process{Exited: make(chan struct{}), isolation: restrictions, started: time.Now()}
	var childFiles []*os.File
	defer func() {
		// The child has its own copies of its ends. This process must close them, or it would never see the end of the output.
		for _, f := range childFiles {
			_ = f.Close()
		}
		if failed != nil {
			p.ClosePipes()
			restrictions.releaseTemp()
		}
	}()
	// os.Pipe makes pipes that no child inherits unless it is given them, so that no other server holds these open.
	for _, end := range []**os.File{&p.Stdin, &p.Stdout, &p.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, StartError(spec.Command, err)
		}
		if end == &p.Stdin {
			r, w = w, r
		}
		*end = r
		childFiles = append(childFiles, w)
	}
	// Starting is repeated only while the program's file is busy, after 5, 10, … 160 ms.
	for wait := 5 * time.Millisecond; ; wait *= 2 {
		p.cmd = &exec.Cmd{
			Path: path, Args: append([]string{spec.Command}, spec.Args...), Dir: dir, Env: childEnv(restrictions.withTempEnv(spec.Env), dir),
			Stdin: childFiles[0], Stdout: childFiles[1], Stderr: childFiles[2], SysProcAttr: processAttributes(spec),
		}
		release, err := restrictions.startChild(ctx, p.cmd, children.Child{Server: spec.Server, MayControl: spec.MayControl, Isolated: restrictions != nil})
		if err == nil {
			p.releaseThread = release
			break
		}
		// Linux refuses to execute a file that is open for writing. A file that has just been written (an upgrade, a build) can
		// be open for a moment in a child that another thread has forked and that has not executed its program yet.
		if !isTextBusy(err) || wait > 200*time.Millisecond || !pause.For(ctx, wait) {
			if ctx.Err() != nil {
				return nil, errs.ContextError(ctx, "starting the process")
			}
			if failed := restrictions.launchFailure(err); failed != nil {
				return nil, failed
			}
			return nil, StartError(spec.Command, err)
		}
	}
	// On Unix the kernel has made the group with the child, and this cannot fail; on Windows the child waits for it, suspended.
	g, err := newProcessGroup(p.cmd.Process)
	if err != nil {
		// Without a group nothing could end what the child starts, so that the child must not live.
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		children.MarkReaped(p.cmd.Process.Pid)
		p.releaseThread()
		return nil, StartError(spec.Command, err)
	}
	p.Group = g
	return p, nil
}

// childEnv returns the whole environment of the child. It sets PWD, as a shell does on changing to a directory.
func childEnv(env []string, dir string) []string {
	env = append([]string{}, env...) // nil would mean this process's own environment
	if dir != "" {
		env = append(env, "PWD="+dir)
	}
	return env
}

// ReapChild takes the child's status from the system, so that no zombie is left, and returns it as text. The caller must wait for
// exited first.
func (p *Process) ReapChild() string {
	p.reapOnce.Do(func() {
		// MarkReaped follows at once: from here on the number may be given to a stranger.
		state := p.waitStatus()
		children.MarkReaped(p.cmd.Process.Pid)
		// This text stays if other code of this process has waited for the child and taken its status.
		p.exitText = "unknown exit status"
		if state != nil {
			p.exitText = state.String()
		}
		p.releaseThread()
	})
	return p.exitText
}

// AwaitGroupEnd waits until no process of the group is left, for at most d, and reports whether that is so. The child must have
// been reaped. With killed set, zombies do not count: the parent that has to reap them may be slow, or never do it (the first
// process of many containers).
//
// While the group has a member, its id is taken. For this loop to see a stranger, the id would have to become free and be given
// to a new process and its group between two looks, of which the first ones are 1 ms apart and none more than 25 ms.
func (p *Process) AwaitGroupEnd(d time.Duration, killed bool) bool {
	deadline := time.Now().Add(d)
	for period := time.Millisecond; ; period = min(2*period, 25*time.Millisecond) {
		if !p.Group.HasMembers() || killed && period > 10*time.Millisecond && !p.Group.hasLivingMembers() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(period)
	}
}

// PID returns the child's number, which another process may have once the child was reaped.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// EnforcedParts returns the parts of the isolation that are in force, nil if the child is not isolated.
func (p *Process) EnforcedParts() *messages.Enforced { return p.isolation.enforcedParts() }

// ReleaseGroup releases what this process holds for the group and its isolation. No process of the group is left, or none that
// can be ended.
func (p *Process) ReleaseGroup() {
	p.Group.close()
	p.isolation.releaseTemp()
}

// ClosePipes closes this process's ends of the pipes, as far as they were made.
func (p *Process) ClosePipes() {
	for _, f := range []*os.File{p.Stdin, p.Stdout, p.Stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// KillAndRelease ends a process at once that no connection has taken over.
func (p *Process) KillAndRelease() {
	p.Group.Kill()
	p.AwaitExit()
	p.ReapChild()
	p.ClosePipes()
	p.ReleaseGroup()
}

// watchdogTime is the age by which a program that watches its parent has failed, because it may not signal it. Most such
// programs check every few seconds.
const watchdogTime = time.Minute

// ExitError returns the error for a child that has ended by itself, with advice where the isolation may be the reason.
func (p *Process) ExitError(exit string) *transports.Error {
	e := ExitError(exit)
	if f := p.isolation; f != nil && f.steps.Files.HidesSignals() && time.Since(p.started) < watchdogTime &&
		strings.HasPrefix(exit, "exit status") {
		e.Fix = "see what it said (logs); if nothing: it may watch its parent with kill(ppid, 0), which \"read\", \"write\" and " +
			"\"network\" of its isolation refuse, so that it takes its parent for gone: switch that off in it, or write " +
			"\"isolation\": true"
	}
	return e
}

// ExitError returns the error for a process that ended with the given text, which os.ProcessState wrote.
func ExitError(exit string) *transports.Error {
	e := &transports.Error{Class: messages.ClassExited, Text: "the process ended with " + exit}
	if signal, ok := strings.CutPrefix(exit, "signal: "); ok {
		e.Text = "the process was ended by the signal " + signal
	}
	return e
}
