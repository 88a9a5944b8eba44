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

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// Stdio is a proxy between an agent and a server that it starts. Fill it and call Run once.
type Stdio struct {
	Shared
	// Command and Args are the server's; Env and Dir as those of exec.Cmd: nil is this process's own.
	Command string
	Args    []string
	Env     []string
	Dir     string
	// In and Out are the agent's side. They are closed if they can be, Out when the server has ended, In when the server
	// reads no more. A Read of In that is not ended by that outlives Run.
	In  io.Reader
	Out io.Writer
	// Err takes the server's standard error; nil discards it. A file is given to the server itself.
	Err io.Writer
	// Signals are passed to the server's process group.
	Signals <-chan os.Signal
	// Guard is told of the server's process group; nil tells nobody.
	Guard transports.Guard
	// Grace is how long what is left of the server's group is given at each step of its end: its output to end, SIGTERM,
	// SIGKILL. Default 2 s.
	Grace time.Duration
}

// Exit is how the server ended.
type Exit struct {
	Code int
	// Signal is the one that it died of, 0 if it exited.
	Signal syscall.Signal
}

// stdioRun is one run of a Stdio.
type stdioRun struct {
	*Stdio
	flow            *fault.Flow
	cmd             *exec.Cmd
	group           *processGroup
	serverIn        *lineWriter // its standard input
	agentOut        *lineWriter // our standard output
	stdout          *os.File
	delayedToAgent  *delayQueue // what goes to the agent late
	delayedToServer *delayQueue // what goes to the server late
	finished        chan struct{}

	faultEnd atomic.Pointer[fault.End] // the end that a fault made
}

// Run starts the server and passes everything until it has ended. The error says why it could not be started, or that
// the output could not be passed; how the server ended is no error. If ctx ends, the server is ended: SIGTERM, then
// SIGKILL.
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
	go r.runGuarded(r.pumpFromAgent) // it ends with the input, which may be after us
	read.Go(func() { r.runGuarded(r.pumpFromServer) })
	rest.Go(func() { r.runGuarded(r.runTimedFaults) })
	rest.Go(func() { r.runGuarded(func() { r.runDelayed(r.delayedToServer) }) })
	rest.Go(func() { r.runGuarded(func() { r.passSignals(ctx) }) })

	_ = r.cmd.Wait() // its error repeats the state
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

// startServer starts the server and gives its standard input.
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
	r.cmd.WaitDelay = r.Grace // for standard error, if it is copied
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

// pumpFromAgent passes what the agent says. The end of its input is the end of the server's, after what is delayed.
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

// pumpFromServer passes what the server says.
func (r *stdioRun) pumpFromServer() {
	l := &lineSplitter{shouldHold: func() bool { return !r.Control.Passive() }, passBytes: r.agentOut.writePart, onHeld: r.toAgent}
	l.onPassed = func(line []byte) { r.notePassed(r.flow, toClient, "", line) }
	if !r.readsMessages() {
		l.onPassed = nil
	}
	copyTo(r.stdout, l.feedBytes)
	if r.faultEnd.Load() == nil { // who is killed by a fault does not finish its line
		l.endStream()
	}
	r.agentOut.endPartial()
}

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

func closeIfCloser(v any) {
	if c, ok := v.(io.Closer); ok {
		_ = c.Close() // it is only to end a Read
	}
}

// pauseFor reports false if the run is over.
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

// runGuarded keeps a panic of ours from ending the program: the server is ended instead, which the agent sees.
func (r *stdioRun) runGuarded(do func()) {
	defer func() {
		if v := recover(); v != nil {
			r.Log.logEvent(fmt.Sprintf("panic: %v", v), 0)
			r.crashServer(&fault.End{Code: 70})
		}
	}()
	do()
}

// crashServer is an end of the server that a fault makes: nothing of it is left, and it seems to have ended by itself.
func (r *stdioRun) crashServer(e *fault.End) {
	if r.faultEnd.CompareAndSwap(nil, e) {
		r.group.kill()
	}
}

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

// endGroup waits for the last words of the server, and ends what is left of its group.
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
		_ = r.stdout.Close() // somebody outside of the group holds it
		<-drained
	}
}
