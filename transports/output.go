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
func Output(ctx context.Context, cfg StdioConfig, most int) ([]byte, error) {
	return Filter(ctx, cfg, nil, most)
}

// Filter is Output for a program that is given something: input is written to its standard input, which is closed then.
// A program that does not read it all is no error.
func Filter(ctx context.Context, cfg StdioConfig, input []byte, most int) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, contextError(ctx, "starting the process")
	}
	path, dir, failed := resolve(&cfg)
	if failed != nil {
		return nil, failed
	}
	p, failed := startProcess(ctx, &cfg, path, dir)
	if failed != nil {
		return nil, failed
	}
	r := &running{p: p, most: most, guard: func() {}, over: make(chan struct{}), drained: make(chan struct{})}
	if cfg.Guard != nil {
		r.guard = cfg.Guard.Watch(p.cmd.Process.Pid)
	}
	r.read()
	go func() { // it ends at the latest when the pipe is closed
		_, _ = p.stdin.Write(input) // what is not read is the program's own choice
		_ = p.stdin.Close()
	}()
	go p.awaitExit()
	select {
	case <-p.exited:
	case <-ctx.Done():
		failed = contextError(ctx, "running the program")
	case <-r.over:
		failed = &Error{Class: messages.ClassProtocol, Text: fmt.Sprintf("the program wrote more than %d bytes", most)}
	}
	exit, ended := r.end(failed != nil)
	switch {
	case failed != nil:
		return nil, failed
	case !ended || exit != "exit status 0":
		return nil, exitError(exit)
	case r.tooMuch:
		return nil, &Error{Class: messages.ClassProtocol, Text: fmt.Sprintf("the program wrote more than %d bytes", most)}
	}
	return r.out, nil
}

// running is a child whose output is collected.
type running struct {
	p     *process
	guard func()

	most    int
	out     []byte // of the reading goroutine, until drained
	tooMuch bool
	over    chan struct{} // closed when there is too much

	stdout, stderr inlet
	drained        chan struct{} // closed when both outputs have been read
}

// read starts reading both outputs.
func (r *running) read() {
	r.stdout, r.stderr = inlet{f: r.p.stdout}, inlet{f: r.p.stderr}
	var readers sync.WaitGroup
	readers.Go(func() {
		r.stdout.run(func(b []byte) bool {
			if len(r.out)+len(b) > r.most {
				r.tooMuch = true
				close(r.over)
				return false
			}
			r.out = append(r.out, b...)
			return true
		})
	})
	readers.Go(func() { r.stderr.run(func([]byte) bool { return true }) })
	go func() {
		readers.Wait()
		close(r.drained)
	}()
}

// end ends the group and releases everything. ended is false if the child cannot be killed (it waits for a device):
// what it holds is released when it ends.
func (r *running) end(kill bool) (exit string, ended bool) {
	if kill {
		r.p.group.kill()
	}
	if !within(r.p.exited, killTime) {
		go func() {
			<-r.p.exited
			r.release()
		}()
		return "", false
	}
	return r.release(), true
}

func (r *running) release() (exit string) {
	// What has been started and holds the output open may hold it for ever.
	within(r.drained, drainTime)
	r.p.group.kill() // as long as the child is a zombie, no other process can have the group's id
	r.stdout.stop()
	r.stderr.stop()
	<-r.drained
	exit = r.p.reap()
	r.p.sweep(killTime, true)
	r.p.closePipes()
	r.p.group.close()
	r.p.isolated.release()
	r.guard()
	return exit
}

// within waits for done, for at most d, and reports whether it came.
func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
