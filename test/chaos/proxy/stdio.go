package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Stdio is a proxy between an agent and a server that it starts. The caller fills it in and calls [Stdio.Run] once.
type Stdio struct {
	Shared
	// Command and Args start the server. A nil Env and an empty Dir are those of this process, as in exec.Cmd.
	Command string
	Args    []string
	Env     []string
	Dir     string
	// In and Out are the agent's side. Run closes them if they are io.Closers: Out when the server has ended, In when the
	// server reads no more. A Read of In that does not end by that goes on after Run.
	In  io.Reader
	Out io.Writer
	// Err receives the server's standard error; nil discards it. An *os.File goes to the server directly.
	Err io.Writer
	// Signals brings signals to pass on to the server's process group; nil passes none.
	Signals <-chan os.Signal
	// Guard learns of the server's process group, so that it can end the group if this process dies; nil guards nothing.
	Guard stdio.Guard
	// Grace is the time that the rest of the server's group gets at each step of its end: for the end of its output, after
	// SIGTERM, after SIGKILL. 0 means 2 s.
	Grace time.Duration
}

// Exit describes how the server ended.
type Exit struct {
	Code int
	// Signal is the signal that the server died of, 0 if it exited with Code.
	Signal syscall.Signal
}

// stdioRun is one run of a Stdio. Its goroutines pass the two streams, perform timed faults, send delayed lines to the server,
// and pass signals.
type stdioRun struct {
	*Stdio
	flow  *fault.Flow
	cmd   *exec.Cmd
	group *processGroup
	// serverIn is the server's standard input, agentOut this process's standard output, stdout the pipe from the server.
	serverIn *lineWriter
	agentOut *lineWriter
	stdout   *os.File
	// delayedToAgent and delayedToServer hold lines that rules delay; two queues, because a server that does not read must not
	// hold up the agent.
	delayedToAgent  *delayQueue
	delayedToServer *delayQueue
	// finished is closed when the server's group has ended.
	finished chan struct{}

	// faultEnd is the end that a fault made up for the server, nil if the server ended by itself.
	faultEnd atomic.Pointer[fault.End]
}

// Run starts the server and passes everything until the server has ended. The error says why it could not be started; how the
// server ended is in Exit and is no error. When ctx ends, Run stops the server with the end of its input and SIGTERM, and after
// Grace with SIGKILL.
func (s *Stdio) Run(ctx context.Context) (Exit, error) {
	if s.Grace <= 0 {
		s.Grace = 2 * time.Second
	}
	r := &stdioRun{Stdio: s, flow: s.Control.Flow(), delayedToAgent: newDelayQueue(), delayedToServer: newDelayQueue(), finished: make(chan struct{})}
	stdin, err := r.startServer()
	if err != nil {
		return Exit{}, err
	}
	r.serverIn = newLineWriter(stdin, func() { closeIfCloser(s.In) })
	r.agentOut = newLineWriter(s.Out, func() { _ = r.stdout.Close() })

	var read, rest sync.WaitGroup
	// It ends with the agent's input, perhaps after Run has returned.
	go r.runGuarded(r.pumpFromAgent)
	read.Go(func() { r.runGuarded(r.pumpFromServer) })
	rest.Go(func() { r.runGuarded(r.runTimedFaults) })
	rest.Go(func() { r.runGuarded(func() { r.runDelayed(r.delayedToServer) }) })
	rest.Go(func() { r.runGuarded(func() { r.passSignals(ctx) }) })

	// The error only repeats the process state.
	_ = r.cmd.Wait()
	drained := make(chan struct{})
	go func() { read.Wait(); close(drained) }()
	r.endGroup(drained)
	close(r.finished)
	rest.Wait()
	r.delayedToAgent.runDue(true)
	r.serverIn.close()
	r.agentOut.close()
	return r.exitStatus(), nil
}

// startServer starts the server in its own process group and returns the pipe to its standard input.
func (r *stdioRun) startServer() (*os.File, error) {
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("no pipe for the server's input: %w", err)
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		_, _ = childIn.Close(), stdin.Close()
		return nil, fmt.Errorf("no pipe for the server's output: %w", err)
	}
	r.cmd = exec.Command(r.Command, r.Args...)
	r.cmd.Env, r.cmd.Dir = r.Env, r.Dir
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = childIn, childOut, r.Err
	// exec copies standard error in a goroutine if Err is no file; a grandchild may keep that pipe open.
	r.cmd.WaitDelay = r.Grace
	r.cmd.SysProcAttr = groupAttributes()
	err = r.cmd.Start()
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		_, _ = stdin.Close(), stdout.Close()
		var missing *exec.Error
		if errors.As(err, &missing) || errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the server's command %q cannot be found; check its spelling and PATH", r.Command)
		}
		return nil, fmt.Errorf("the server's command %q cannot be started: %w", r.Command, err)
	}
	r.stdout = stdout
	r.group = newProcessGroup(r.cmd.Process, r.Guard)
	return stdin, nil
}

// pumpFromAgent passes the agent's lines to the server. At the end of the input it sends the delayed lines at once, and closes
// the server's input, unless the fault ignore-eof holds that back.
func (r *stdioRun) pumpFromAgent() {
	l := &lineSplitter{shouldHold: func() bool { return !r.Control.Passive() }, passBytes: r.serverIn.writePart, onHeld: r.toServer}
	l.onPassed = func(line []byte) { r.notePassed(r.flow, toServer, "", line) }
	if !r.readsMessages() {
		l.onPassed = nil
	}
	copyTo(r.In, l.feedBytes)
	l.endStream()
	r.serverIn.endPartial()
	r.delayedToServer.runDue(true)
	if r.flow.FaultActive("ignore-eof") {
		r.flow.RecordHit("ignore-eof", "the end of input is not passed on")
		for r.flow.FaultActive("ignore-eof") && r.pauseFor(pollEvery) {
			continue
		}
	}
	r.serverIn.close()
}

// pumpFromServer passes the server's lines to the agent.
func (r *stdioRun) pumpFromServer() {
	l := &lineSplitter{shouldHold: func() bool { return !r.Control.Passive() }, passBytes: r.agentOut.writePart, onHeld: r.toAgent}
	l.onPassed = func(line []byte) { r.notePassed(r.flow, toClient, "", line) }
	if !r.readsMessages() {
		l.onPassed = nil
	}
	copyTo(r.stdout, l.feedBytes)
	// A server that a fault kills does not complete its last line.
	if r.faultEnd.Load() == nil {
		l.endStream()
	}
	r.agentOut.endPartial()
}

// copyTo reads until an error; the end of a stream is one.
func copyTo(from io.Reader, feed func([]byte)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		feed(buf[:n])
		if err != nil {
			return
		}
	}
}

// closeIfCloser closes v, if it can be closed, to end a blocked Read.
func closeIfCloser(v any) {
	if c, ok := v.(io.Closer); ok {
		// Only the end of the Read matters.
		_ = c.Close()
	}
}

// pauseFor waits for d. It returns false if the run ended first.
func (r *stdioRun) pauseFor(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.finished:
		return false
	}
}

// runGuarded runs do and recovers a panic of the proxy: it ends the server instead of this program, which the agent notices.
func (r *stdioRun) runGuarded(do func()) {
	defer func() {
		if v := recover(); v != nil {
			r.Log.logEvent(fmt.Sprintf("panic: %v", v), 0)
			r.crashServer(&fault.End{Code: 70})
		}
	}()
	do()
}

// crashServer ends the server's group for a fault. exitStatus then reports the fault's exit code or signal in place of SIGKILL.
func (r *stdioRun) crashServer(e *fault.End) {
	if r.faultEnd.CompareAndSwap(nil, e) {
		r.group.kill()
	}
}

// exitStatus returns how the server ended, or how the fault says that it ended.
func (r *stdioRun) exitStatus() Exit {
	if e := r.faultEnd.Load(); e != nil {
		if e.Signal != "" {
			return Exit{Signal: signalNamed(e.Signal)}
		}
		return Exit{Code: e.Code}
	}
	state := r.cmd.ProcessState
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return Exit{Signal: w.Signal()}
	}
	return Exit{Code: state.ExitCode()}
}

// endGroup waits for the last output of the server, and ends the processes that are left of its group. A process outside of the
// group may still hold the output open; the pipe is then closed on this side.
func (r *stdioRun) endGroup(drained <-chan struct{}) {
	wait := func() bool {
		t := time.NewTimer(r.Grace)
		defer t.Stop()
		select {
		case <-drained:
			return true
		case <-t.C:
			return false
		}
	}
	if r.faultEnd.Load() == nil && !wait() {
		r.group.terminate()
		wait()
	}
	r.group.terminate()
	r.group.awaitGroupEnd(r.Grace)
	if !wait() {
		// A process outside of the group holds the other end.
		_ = r.stdout.Close()
		<-drained
	}
}
