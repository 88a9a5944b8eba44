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

// run is one run of a Stdio.
type run struct {
	*Stdio
	flow     *fault.Flow
	cmd      *exec.Cmd
	group    *group
	server   *port // its standard input
	agent    *port // our standard output
	stdout   *os.File
	later    *later // what goes to the agent late
	outbound *later // what goes to the server late
	over     chan struct{}

	dead atomic.Pointer[fault.End] // the end that a fault made
}

// Run starts the server and passes everything until it has ended. The error says why it could not be started, or that
// the output could not be passed; how the server ended is no error. If ctx ends, the server is ended: SIGTERM, then
// SIGKILL.
func (s *Stdio) Run(ctx context.Context) (Exit, error) {
	if s.Grace <= 0 {
		s.Grace = 2 * time.Second
	}
	r := &run{Stdio: s, flow: s.Control.Flow(), later: newLater(), outbound: newLater(), over: make(chan struct{})}
	stdin, err := r.start()
	if err != nil {
		return Exit{}, err
	}
	r.server = newPort(stdin, func() { closeIt(s.In) })
	r.agent = newPort(s.Out, func() { _ = r.stdout.Close() })

	var read, rest sync.WaitGroup
	go r.guarded(r.fromAgent) // it ends with the input, which may be after us
	read.Go(func() { r.guarded(r.fromServer) })
	rest.Go(func() { r.guarded(r.clock) })
	rest.Go(func() { r.guarded(func() { r.slow(r.outbound) }) })
	rest.Go(func() { r.guarded(func() { r.signals(ctx) }) })

	_ = r.cmd.Wait() // its error repeats the state
	drained := make(chan struct{})
	go func() { read.Wait(); close(drained) }()
	r.sweep(drained)
	close(r.over)
	rest.Wait()
	r.later.due(true)
	r.server.close()
	r.agent.close()
	return r.exit(), nil
}

// start starts the server and gives its standard input.
func (r *run) start() (*os.File, error) {
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
	r.group = newGroup(r.cmd.Process, r.Guard)
	return stdin, nil
}

// fromAgent passes what the agent says. The end of its input is the end of the server's, after what is delayed.
func (r *run) fromAgent() {
	l := &liner{hold: func() bool { return !r.Control.Passive() }, pass: r.server.stream, line: r.toServer}
	l.seen = func(line []byte) { r.passed(r.flow, toServer, "", line) }
	if !r.reads() {
		l.seen = nil
	}
	copyTo(r.In, l.feed)
	l.end()
	r.server.over()
	r.outbound.due(true)
	if r.flow.On("ignore-eof") {
		r.flow.Note("ignore-eof", "the end of input is not passed on")
		for r.flow.On("ignore-eof") && r.pause(look) {
			continue
		}
	}
	r.server.close()
}

// fromServer passes what the server says.
func (r *run) fromServer() {
	l := &liner{hold: func() bool { return !r.Control.Passive() }, pass: r.agent.stream, line: r.toAgent}
	l.seen = func(line []byte) { r.passed(r.flow, toClient, "", line) }
	if !r.reads() {
		l.seen = nil
	}
	copyTo(r.stdout, l.feed)
	if r.dead.Load() == nil { // who is killed by a fault does not finish its line
		l.end()
	}
	r.agent.over()
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

func closeIt(v any) {
	if c, ok := v.(io.Closer); ok {
		_ = c.Close() // it is only to end a Read
	}
}

// pause reports false if the run is over.
func (r *run) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.over:
		return false
	}
}

// guarded keeps a panic of ours from ending the program: the server is ended instead, which the agent sees.
func (r *run) guarded(do func()) {
	defer func() {
		if v := recover(); v != nil {
			r.Log.event(fmt.Sprintf("panic: %v", v), 0)
			r.die(&fault.End{Code: 70})
		}
	}()
	do()
}

// die is an end of the server that a fault makes: nothing of it is left, and it seems to have ended by itself.
func (r *run) die(e *fault.End) {
	if r.dead.CompareAndSwap(nil, e) {
		r.group.kill()
	}
}

func (r *run) exit() Exit {
	if e := r.dead.Load(); e != nil {
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

// sweep waits for the last words of the server, and ends what is left of its group.
func (r *run) sweep(drained <-chan struct{}) {
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
	if r.dead.Load() == nil && !wait() {
		r.group.terminate()
		wait()
	}
	r.group.terminate()
	r.group.end(r.Grace)
	if !wait() {
		_ = r.stdout.Close() // somebody outside of the group holds it
		<-drained
	}
}
