package stdio

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
)

// watchedGroup is a process group that a guard watches; nil is one without a guard. The guard belongs to the program, so that its functions
// run in goroutines of their own: none of them holds the group's end, or the program's, if it does not return or panics.
type watchedGroup struct{ release func() }

// askGuard has a guard, which may be nil, watch a group. With an error the group is not watched, and the caller ends it: the guard
// panicked, ended its goroutine, or did not answer before ctx ended. What such a guard returns later is released at once.
func askGuard(ctx context.Context, g Guard, pgid int) (*watchedGroup, *transports.Error) {
	if g == nil {
		return nil, nil
	}
	answers := make(chan guardAnswer)
	go answerForGuard(ctx, g, pgid, answers)
	select {
	case a := <-answers:
		return a.watched, a.failed
	case <-ctx.Done():
		return nil, errs.ContextError(ctx, "the start of a process, which waits for the program's Guard,")
	}
}

// guardAnswer is what came of a guard's Watch.
type guardAnswer struct {
	watched *watchedGroup
	failed  *transports.Error
}

// answerForGuard is the goroutine of a guard's Watch, and ends with it.
func answerForGuard(ctx context.Context, g Guard, pgid int, answers chan<- guardAnswer) {
	a := guardAnswer{failed: &transports.Error{Class: messages.ClassPanic, Text: "the program's Guard ended its goroutine (runtime.Goexit)"}}
	defer func() {
		if v := recover(); v != nil {
			a.failed = errs.PanicError(v)
			a.failed.Text = "the program's Guard failed with a " + a.failed.Text
		}
		select {
		case answers <- a:
		case <-ctx.Done():
			a.watched.callRelease()
		}
	}()
	a = guardAnswer{watched: &watchedGroup{release: g.Watch(pgid)}}
}

// callRelease calls what Guard.Watch returned, and survives its panic.
func (w *watchedGroup) callRelease() {
	if w == nil || w.release == nil {
		return
	}
	defer func() { _ = recover() }()
	w.release()
}

// tellGone tells the guard that the group is gone, and waits at most d for it: so the guard knows it before another process can have
// the group's number.
func (w *watchedGroup) tellGone(d time.Duration) {
	if w == nil {
		return
	}
	guardKnows := make(chan struct{})
	go func() {
		defer close(guardKnows)
		w.callRelease()
	}()
	awaitWithin(guardKnows, d)
}
