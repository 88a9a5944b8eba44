package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// CallTimeout is a context that ends when a caller's patience does: after a time without progress, and after a longest time
// whatever happens. The first clock stands still while a person (or a model) answers what the server asked, and begins
// again with each progress notification; the second never does, nor does the context that it is made from.
//
// 2025-11-25, Timeouts: "implementations MAY choose to reset the timeout clock when receiving a progress notification
// corresponding to the request … However, implementations SHOULD always enforce a maximum timeout, regardless of progress
// notifications, to limit the impact of a misbehaving client or server."
//
// It is safe for concurrent use. Its Err is context.DeadlineExceeded when a clock ran out.
//
// It costs one allocation, of 64 bytes, as long as nobody asks for Done: a session does not, but looks after the clocks of
// its own requests with one timer for all of them. Who does ask gets a timer of its own.
type CallTimeout struct {
	parent      context.Context
	idleTimeout time.Duration // 0: no first clock
	endCause    atomic.Int32  // a lapse

	paused     int32 // mu guards it, and what follows
	extended   bool  // extend has had its effect
	mu         sync.Mutex
	idleDue    monotime   // when the first clock runs out; while it stands still, what is left of it
	longestDue monotime   // when the second clock runs out
	doneState  *doneState // nil until somebody has asked for Done
}

// doneState is what there is once somebody has asked for Done.
type doneState struct {
	done         chan struct{}
	timer        *time.Timer
	detachParent func() bool // parent does not tell of its end any more
	afterFuncs   []*func()   // what runs at the end
}

// endCause is why a Patience has ended.
type endCause int32

const (
	_ endCause = iota // it has not
	causeStopped
	causeParent  // parent has ended
	causeIdle    // the first clock
	causeLongest // the second clock
)

// errLongestTime is what a Patience ended of that was bounded in any case.
var errLongestTime = fmt.Errorf("the longest time for a call has passed: %w", context.DeadlineExceeded)

// NewCallTimeout begins both clocks. timeout is the first, most the second; 0 or less is no clock. Stop must be called.
func NewCallTimeout(ctx context.Context, timeout, longest time.Duration) *CallTimeout {
	p := &CallTimeout{parent: ctx, idleTimeout: max(timeout, 0)}
	now := monotimeNow()
	p.idleDue = now + monotime(p.idleTimeout)
	if longest > 0 {
		p.longestDue = now + monotime(longest)
	}
	return p
}

var _ context.Context = (*CallTimeout)(nil)

// Deadline implements context.Context: that of the context that the patience is made from.
func (p *CallTimeout) Deadline() (time.Time, bool) { return p.parent.Deadline() }

// Done implements context.Context.
func (p *CallTimeout) Done() <-chan struct{} {
	over := p.Err() != nil
	p.mu.Lock()
	if p.doneState != nil {
		defer p.mu.Unlock()
		return p.doneState.done
	}
	a := &doneState{done: make(chan struct{})}
	p.doneState = a
	if over || p.endCause.Load() != 0 {
		close(a.done)
		defer p.mu.Unlock()
		return a.done
	}
	a.timer = time.AfterFunc(time.Hour, p.handleTimer)
	p.armTimer()
	p.mu.Unlock()
	detach := context.AfterFunc(p.parent, func() { _ = p.Err() })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.endCause.Load() != 0 {
		detach()
	} else {
		a.detachParent = detach
	}
	return a.done
}

// Err implements context.Context.
func (p *CallTimeout) Err() error {
	if p.endCause.Load() == 0 {
		if p.parent.Err() == nil {
			return nil
		}
		p.mu.Lock()
		p.endWith(causeParent)
	}
	p.mu.Lock() // who ends it has closed done when it gives mu up
	defer p.mu.Unlock()
	switch endCause(p.endCause.Load()) {
	case causeStopped:
		return context.Canceled
	case causeIdle, causeLongest:
		return context.DeadlineExceeded
	case causeParent:
	}
	return p.parent.Err()
}

// causeError is context.Cause of a patience that has ended.
func (p *CallTimeout) causeError() error {
	switch endCause(p.endCause.Load()) {
	case causeParent:
		return context.Cause(p.parent)
	case causeLongest:
		return errLongestTime
	case causeStopped, causeIdle:
	}
	return p.Err()
}

// AfterFunc has contexts that are made from this one end with it, without a goroutine for each (package context looks for
// it).
func (p *CallTimeout) AfterFunc(f func()) (stop func() bool) {
	p.Done()
	p.mu.Lock()
	if p.endCause.Load() != 0 {
		p.mu.Unlock()
		f()
		return func() bool { return false }
	}
	defer p.mu.Unlock()
	a, one := p.doneState, &f
	a.afterFuncs = append(a.afterFuncs, one)
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		i := slices.Index(a.afterFuncs, one)
		if i >= 0 {
			a.afterFuncs = slices.Delete(a.afterFuncs, i, i+1)
		}
		return i >= 0
	}
}

// Stop ends the context and its clocks. It is idempotent.
func (p *CallTimeout) Stop() {
	p.mu.Lock()
	p.endWith(causeStopped)
}

// endWith ends it, unless it has ended. The caller holds mu, which is given up.
func (p *CallTimeout) endWith(cause endCause) {
	a := p.doneState
	if !p.endCause.CompareAndSwap(0, int32(cause)) || a == nil {
		p.mu.Unlock()
		return
	}
	afterFuncs, detachParent := a.afterFuncs, a.detachParent
	a.afterFuncs, a.detachParent = nil, nil
	a.timer.Stop()
	close(a.done)
	p.mu.Unlock()
	if detachParent != nil {
		detachParent()
	}
	for _, f := range afterFuncs {
		(*f)()
	}
}

type callTimeoutKey struct{}

// Value makes the patience known to the session, also through contexts that were made from it.
func (p *CallTimeout) Value(key any) any {
	if _, ours := key.(callTimeoutKey); ours {
		return p
	}
	return p.parent.Value(key)
}

// callTimeoutOf is the patience that ctx was made from, nil if there is none.
func callTimeoutOf(ctx context.Context) *CallTimeout {
	if p, ours := ctx.(*CallTimeout); ours {
		return p
	}
	p, _ := ctx.Value(callTimeoutKey{}).(*CallTimeout)
	return p
}

// causeOf is context.Cause, and for a Patience which of its clocks ran out.
func causeOf(ctx context.Context) error {
	p, ours := ctx.(*CallTimeout)
	if !ours || p.Err() == nil {
		return context.Cause(ctx)
	}
	return p.causeError()
}

// nextDue is when something may be due.
func (p *CallTimeout) nextDue() monotime {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nextDueLocked()
}

// nextDueLocked is moment for who holds mu.
func (p *CallTimeout) nextDueLocked() monotime {
	if p.endCause.Load() != 0 {
		return 0
	}
	if p.idleTimeout > 0 && p.paused == 0 && (p.longestDue == 0 || p.idleDue < p.longestDue) {
		return p.idleDue
	}
	return p.longestDue
}

// checkExpired looks which clock ran out, and ends the patience if one did.
func (p *CallTimeout) checkExpired(now monotime) bool {
	p.mu.Lock()
	switch {
	case p.endCause.Load() != 0:
	case p.longestDue != 0 && now >= p.longestDue:
		p.endWith(causeLongest)
		return true
	case p.idleTimeout > 0 && p.paused == 0 && now >= p.idleDue:
		p.endWith(causeIdle)
		return true
	}
	defer p.mu.Unlock()
	return p.endCause.Load() != 0
}

// handleTimer is the timer's function: one that was set anew may have rung before.
func (p *CallTimeout) handleTimer() {
	if !p.checkExpired(monotimeNow()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.armTimer()
	}
}

// armTimer sets the timer, if there is one. The caller holds mu.
func (p *CallTimeout) armTimer() {
	if p.endCause.Load() != 0 || p.doneState == nil {
		return
	}
	if at := p.nextDueLocked(); at != 0 {
		p.doneState.timer.Reset(at.timeLeft())
	} else {
		p.doneState.timer.Stop()
	}
}

// pauseIdle stops the first clock until as many resume have followed. nil is nobody's patience.
func (p *CallTimeout) pauseIdle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused++
	if p.paused == 1 && p.idleTimeout > 0 {
		p.idleDue = monotime(p.idleDue.timeLeft())
		p.armTimer()
	}
}

func (p *CallTimeout) resumeIdle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused--
	if p.paused == 0 && p.idleTimeout > 0 {
		p.idleDue += monotimeNow()
		p.armTimer()
	}
}

// extendOnce starts the first clock anew, once in the life of the patience: a question is open that may be about this call.
func (p *CallTimeout) extendOnce() {
	if p == nil {
		return
	}
	p.mu.Lock()
	extended := p.extended
	p.extended = true
	p.mu.Unlock()
	if !extended {
		p.restartIdle()
	}
}

// restartIdle starts the first clock anew: there was progress.
func (p *CallTimeout) restartIdle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.idleTimeout == 0:
		return
	case p.paused > 0:
		p.idleDue = monotime(p.idleTimeout)
	default:
		p.idleDue = monotimeNow() + monotime(p.idleTimeout)
	}
	p.armTimer()
}
