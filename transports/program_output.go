package transports

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Output runs a program that is no server to its end and gives what it has written to its standard output: a helper
// that prints a password. Its standard input is closed, what it writes to standard error is dropped. Of cfg it uses
// what describes the child (Command, Args, Env, Dir), Terminal and Guard.
//
// The child gets a session of its own, as Stdio's does, or with cfg.Terminal a process group. When ctx ends, when the child has written more than most
// bytes, and when it has ended, the whole group is killed: nothing that it has started outlives the call, except what
// has left the group.
//
// An error is an *Error of the classes that Stdio.Dial has, ClassExited for any other end than exit status 0, or
// ClassProtocol for too much output. It holds nothing of what the child has written.
func Output(ctx context.Context, cfg StdioConfig, limit int) ([]byte, error) {
	return Filter(ctx, cfg, nil, limit)
}

// Filter is Output for a program that is given something: input is written to its standard input, which is closed then.
// A program that does not read it all is no error.
func Filter(ctx context.Context, cfg StdioConfig, input []byte, limit int) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, contextError(ctx, "starting the process")
	}
	path, dir, failed := resolveCommand(&cfg)
	if failed != nil {
		return nil, failed
	}
	p, failed := startProcess(ctx, &cfg, path, dir)
	if failed != nil {
		return nil, failed
	}
	r := &runningProgram{p: p, maxOutput: limit, releaseGuard: func() {}, overflow: make(chan struct{}), drained: make(chan struct{})}
	if cfg.Guard != nil {
		r.releaseGuard = cfg.Guard.Watch(p.cmd.Process.Pid)
	}
	r.startReading()
	go func() { // it ends at the latest when the pipe is closed
		_, _ = p.stdin.Write(input) // what is not read is the program's own choice
		_ = p.stdin.Close()
	}()
	go p.awaitExit()
	select {
	case <-p.exited:
	case <-ctx.Done():
		failed = contextError(ctx, "running the program")
	case <-r.overflow:
		failed = &Error{Class: messages.ClassProtocol, Text: fmt.Sprintf("the program wrote more than %d bytes", limit)}
	}
	exit, ended := r.endProgram(failed != nil)
	switch {
	case failed != nil:
		return nil, failed
	case !ended || exit != "exit status 0":
		return nil, exitError(exit)
	case r.tooMuch:
		return nil, &Error{Class: messages.ClassProtocol, Text: fmt.Sprintf("the program wrote more than %d bytes", limit)}
	}
	return r.out, nil
}

// runningProgram is a child whose output is collected.
type runningProgram struct {
	p            *process
	releaseGuard func()

	maxOutput int
	out       []byte // of the reading goroutine, until drained
	tooMuch   bool
	overflow  chan struct{} // closed when there is too much

	stdout, stderr pipeReader
	drained        chan struct{} // closed when both outputs have been read
}

// startReading starts reading both outputs.
func (r *runningProgram) startReading() {
	r.stdout, r.stderr = pipeReader{f: r.p.stdout}, pipeReader{f: r.p.stderr}
	var readers sync.WaitGroup
	readers.Go(func() {
		r.stdout.readUntilEnd(func(b []byte) bool {
			if len(r.out)+len(b) > r.maxOutput {
				r.tooMuch = true
				close(r.overflow)
				return false
			}
			r.out = append(r.out, b...)
			return true
		})
	})
	readers.Go(func() { r.stderr.readUntilEnd(func([]byte) bool { return true }) })
	go func() {
		readers.Wait()
		close(r.drained)
	}()
}

// endProgram ends the group and releases everything. ended is false if the child cannot be killed (it waits for a device):
// what it holds is released when it ends.
func (r *runningProgram) endProgram(kill bool) (exit string, ended bool) {
	if kill {
		r.p.group.kill()
	}
	if !awaitWithin(r.p.exited, killTime) {
		go func() {
			<-r.p.exited
			r.releaseProgram()
		}()
		return "", false
	}
	return r.releaseProgram(), true
}

func (r *runningProgram) releaseProgram() (exit string) {
	// What has been started and holds the output open may hold it for ever.
	awaitWithin(r.drained, drainTime)
	r.p.group.kill() // as long as the child is a zombie, no other process can have the group's id
	r.stdout.stopReading()
	r.stderr.stopReading()
	<-r.drained
	exit = r.p.reapChild()
	r.p.awaitGroupEnd(killTime, true)
	r.p.closePipes()
	r.p.group.close()
	r.p.isolation.releaseTemp()
	r.releaseGuard()
	return exit
}

// awaitWithin waits for done, for at most d, and reports whether it came.
func awaitWithin(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
