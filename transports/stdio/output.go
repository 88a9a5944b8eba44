package stdio

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/stdio/internal/pipe"
	"github.com/mcpvisor/mcpvisor/transports/stdio/internal/process"
)

// Output runs a program that is no server to its end and returns what it has written to its standard output. Helpers that print a
// password or headers run by it. Its standard input is closed, and what it writes to standard error is dropped. Of cfg it uses
// the fields that describe the child (Command, Args, Env, Dir), Terminal and Guard.
//
// The child gets a session of its own, as Transport's does, or with cfg.Terminal a process group. When ctx ends, when the child
// has written more than limit bytes, and when it has ended, Output kills the whole group: nothing that it has started outlives
// the call, except a process that has left the group.
//
// An error is a [*transports.Error] of the classes that [Transport.Dial] has, ClassExited for any other end than exit status 0,
// or ClassProtocol for too much output. It holds nothing of what the child has written, because that may be a secret.
func Output(ctx context.Context, cfg Config, limit int) ([]byte, error) {
	return Filter(ctx, cfg, nil, limit)
}

// Filter does the same as [Output] for a program with input: it writes input to the program's standard input, and closes that
// then. It is no error if the program does not read all of it.
func Filter(ctx context.Context, cfg Config, input []byte, limit int) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, errs.ContextError(ctx, "starting the process")
	}
	p, failed := process.Start(ctx, cfg.childSpec())
	if failed != nil {
		return nil, failed
	}
	watched, failed := askGuard(ctx, cfg.Guard, p.PID())
	if failed != nil {
		p.KillAndRelease()
		return nil, failed
	}
	r := &runningProgram{p: p, maxOutput: limit, watched: watched, overflow: make(chan struct{}), drained: make(chan struct{})}
	r.startReading()
	// This goroutine ends at the latest when endProgram closes the pipe.
	go func() {
		// A program may end without reading its input, so that an error here means nothing.
		_, _ = p.Stdin.Write(input)
		_ = p.Stdin.Close()
	}()
	go p.AwaitExit()
	select {
	case <-p.Exited:
	case <-ctx.Done():
		failed = errs.ContextError(ctx, "running the program")
	case <-r.overflow:
		failed = &transports.Error{Class: messages.ClassProtocol, Text: fmt.Sprintf("the program wrote more than %d bytes", limit)}
	}
	exit, ended := r.endProgram(failed != nil)
	switch {
	case failed != nil:
		return nil, failed
	case !ended || exit != "exit status 0":
		return nil, process.ExitError(exit)
	// The output may have gone over the limit in the same moment in which the program ended.
	case r.tooMuch:
		return nil, &transports.Error{Class: messages.ClassProtocol, Text: fmt.Sprintf("the program wrote more than %d bytes", limit)}
	}
	return r.out, nil
}

// runningProgram is a child whose output is collected. Filter owns it, or the goroutine that endProgram leaves behind.
type runningProgram struct {
	p *process.Process
	// watched is the group as the guard knows it.
	watched *watchedGroup

	// maxOutput bounds out in bytes.
	maxOutput int
	// out and tooMuch belong to the goroutine that reads standard output, until drained is closed.
	out      []byte
	tooMuch  bool
	overflow chan struct{} // closed when the program has written more than maxOutput

	stdout, stderr pipe.Reader
	drained        chan struct{} // closed when both outputs have been read
}

// startReading starts the goroutines that read both outputs. Standard error is read and dropped, because a full pipe would stop
// the child.
func (r *runningProgram) startReading() {
	r.stdout, r.stderr = pipe.Reader{File: r.p.Stdout}, pipe.Reader{File: r.p.Stderr}
	var readers sync.WaitGroup
	readers.Go(func() {
		r.stdout.ReadUntilEnd(func(b []byte) bool {
			if len(r.out)+len(b) > r.maxOutput {
				r.tooMuch = true
				close(r.overflow)
				return false
			}
			r.out = append(r.out, b...)
			return true
		})
	})
	readers.Go(func() { r.stderr.ReadUntilEnd(func([]byte) bool { return true }) })
	go func() {
		readers.Wait()
		close(r.drained)
	}()
}

// endProgram ends the group and releases everything. ended is false if the child cannot be killed (it waits for a device): a
// goroutine releases what it holds when it ends, and Filter does not wait for that.
func (r *runningProgram) endProgram(kill bool) (exit string, ended bool) {
	if kill {
		r.p.Group.Kill()
	}
	if !awaitWithin(r.p.Exited, killTime) {
		go func() {
			<-r.p.Exited
			r.releaseProgram()
		}()
		return "", false
	}
	return r.releaseProgram(), true
}

// releaseProgram reads what is left of the output, kills the group, reaps the child and frees its resources. It returns how the
// child ended. The child must have ended.
func (r *runningProgram) releaseProgram() (exit string) {
	// A process that the child has started may hold the output open for ever, so that the wait is bounded.
	awaitWithin(r.drained, drainTime)
	// As long as the child is a zombie, no other process can have the group's id.
	r.p.Group.Kill()
	r.stdout.StopReading()
	r.stderr.StopReading()
	<-r.drained
	exit = r.p.ReapChild()
	r.p.AwaitGroupEnd(killTime, true)
	r.p.ClosePipes()
	r.p.ReleaseGroup()
	r.watched.tellGone(killTime)
	return exit
}

// awaitWithin waits until done is closed, for at most d, and reports whether it was.
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
