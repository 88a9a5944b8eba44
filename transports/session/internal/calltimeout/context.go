// Package calltimeout has the context of a call with two deadlines, one of which progress and questions move.
//
//	ctx := calltimeout.New(parent, idle, longest)
//	defer ctx.Stop()
//	calltimeout.Of(derived).PauseIdle()
//
// Package session gives it to callers as session.CallTimeout. A [Context] costs no timer as long as its Done is not called: the
// session asks NextDue and CheckExpired of all its requests with one timer.
//
// # How it fits
//
// The server's actor makes one for each call. The session finds it with [Of], also below contexts that were derived from it: progress
// of the server restarts the idle timeout, a question to a person pauses it. Package outcome tells by it whether time or the caller
// ended a wait.
//
// Guarantees: the longest time passes whatever the server reports, since a server that sends progress for ever must not hold its
// caller for ever. Each PauseIdle needs one ResumeIdle. Its mutex is the last one that a session takes, and functions given to
// AfterFunc run without it.
//
// Not promised: a context whose Done is not called does not end by itself. The session notices the end of such a one, at the moment
// that NextDue has named.
package calltimeout

import (
	"context"
	"fmt"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/monotime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Context is a context with two deadlines for one call: an idle timeout, which passes after a time without progress, and
// a longest time, which passes in any case. The idle timeout stands still while a person (or a model) answers a question of
// the server, and begins again with each progress notification; the longest time does neither, and neither does the parent
// context.
//
// 2025-11-25, Timeouts: "implementations MAY choose to reset the timeout clock when receiving a progress notification
// corresponding to the request … However, implementations SHOULD always enforce a maximum timeout, regardless of progress
// notifications, to limit the impact of a misbehaving client or server."
//
// It is safe for concurrent use. Its Err is context.DeadlineExceeded when a deadline passed.
//
// It costs one small allocation and no timer as long as its Done is not called: a session does not call it, but checks the
// deadlines of all its requests with one timer. The first call of Done adds a timer and a channel.
type Context struct {
	parent      context.Context
	idleTimeout time.Duration // 0: no idle timeout
	// endCause is an endCause, 0 while the context lives. It changes once, under mu; readers need no lock.
	endCause atomic.Int32

	// mu guards the fields that follow.
	mu sync.Mutex
	// paused counts the open questions; the idle timeout runs at 0. A session bounds its questions far below what fits. The
	// small fields stand together so that a Context takes 64 bytes; one more word would take 80.
	paused     int16
	extended   bool          // ExtendOnce has had its effect
	answered   bool          // NoteAnswer was called
	idleDue    monotime.Time // when the idle timeout passes; while paused, the time that is left of it
	longestDue monotime.Time // when the longest time passes; 0: never
	doneState  *doneState    // nil until the first call of Done
}

// doneState is the part of a Context that exists from the first call of Done on. Context.mu guards it.
type doneState struct {
	done         chan struct{}
	timer        *time.Timer
	detachParent func() bool // ends the wait for the parent's end
	afterFuncs   []*func()   // functions of AfterFunc, by pointer so that stop can find its own
}

// endCause is the reason for which a Context has ended.
type endCause int32

const (
	_ endCause = iota // it has not ended
	causeStopped
	causeParent  // the parent has ended
	causeIdle    // the idle timeout passed
	causeLongest // the longest time passed
)

// errLongestTime is the cause of a Context whose longest time has passed, so that the error text tells it from the idle
// timeout.
var errLongestTime = fmt.Errorf("the longest time for a call has passed: %w", context.DeadlineExceeded)

// New starts both deadlines now. timeout is the idle timeout, longest the longest time; 0 or less disables either.
// The caller must call Stop, or the parent may keep the context alive.
func New(ctx context.Context, timeout, longest time.Duration) *Context {
	p := &Context{parent: ctx, idleTimeout: max(timeout, 0)}
	now := monotime.Now()
	p.idleDue = now + monotime.Time(p.idleTimeout)
	if longest > 0 {
		p.longestDue = now + monotime.Time(longest)
	}
	return p
}

var _ context.Context = (*Context)(nil)

// Deadline implements context.Context: it returns the parent's deadline, because the idle timeout moves and a deadline must
// not.
func (p *Context) Deadline() (time.Time, bool) { return p.parent.Deadline() }

// Done implements context.Context. The first call creates the channel and a timer, and registers with the parent.
func (p *Context) Done() <-chan struct{} {
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
	// The hour does not matter: armTimer sets the right duration, and needs a timer for that.
	a.timer = time.AfterFunc(time.Hour, p.handleTimer)
	p.armTimer()
	p.mu.Unlock()
	// mu is released, because the function of context.AfterFunc may run at once in a goroutine, and Err takes mu.
	detach := context.AfterFunc(p.parent, func() { _ = p.Err() })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.endCause.Load() != 0 {
		// The context ended in between and could not detach what was not registered yet.
		detach()
	} else {
		a.detachParent = detach
	}
	return a.done
}

// ParentDone returns the parent's Done. It is for a session, which checks the deadlines itself: Done would cost a timer.
func (p *Context) ParentDone() <-chan struct{} { return p.parent.Done() }

// Err implements context.Context. It also discovers the parent's end: without Done nothing listens to the parent.
func (p *Context) Err() error {
	if p.endCause.Load() == 0 {
		if p.parent.Err() == nil {
			return nil
		}
		p.mu.Lock()
		p.endWith(causeParent)
	}
	p.mu.Lock() // endWith closes done before it releases mu, so Err never answers before Done is closed
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

// causeError returns the cause of a Context that has ended, as context.Cause does for other contexts.
func (p *Context) causeError() error {
	switch endCause(p.endCause.Load()) {
	case causeParent:
		return context.Cause(p.parent)
	case causeLongest:
		return errLongestTime
	case causeStopped, causeIdle:
	}
	return p.Err()
}

// AfterFunc runs f when the context ends. Package context looks for this method: contexts that are derived from a Context
// then end with it without a goroutine for each. stop reports whether it kept f from running.
func (p *Context) AfterFunc(f func()) (stop func() bool) {
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

// Stop ends the context and releases its timer. It is idempotent.
func (p *Context) Stop() {
	p.mu.Lock()
	p.endWith(causeStopped)
}

// endWith ends the context for a cause, unless it has ended. The caller holds mu; endWith releases it, because the functions
// that it calls may use the context.
func (p *Context) endWith(cause endCause) {
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

// NoteAnswer notes that the program has answered a question of the server about this call.
func (p *Context) NoteAnswer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = true
}

// Answered reports whether NoteAnswer was called.
func (p *Context) Answered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered
}

// contextKey is the key under which Value returns the Context itself.
type contextKey struct{}

// Value returns the Context for the session's own key, so that the session finds it through derived contexts, too.
func (p *Context) Value(key any) any {
	if _, ours := key.(contextKey); ours {
		return p
	}
	return p.parent.Value(key)
}

// Of returns the Context that ctx is or was derived from, nil if there is none.
func Of(ctx context.Context) *Context {
	if p, ours := ctx.(*Context); ours {
		return p
	}
	p, _ := ctx.Value(contextKey{}).(*Context)
	return p
}

// CauseOf returns context.Cause of ctx. For a Context itself, which context.Cause does not look into, it tells the two
// deadlines apart.
func CauseOf(ctx context.Context) error {
	p, ours := ctx.(*Context)
	if !ours || p.Err() == nil {
		return context.Cause(ctx)
	}
	return p.causeError()
}

// NextDue returns the time at which the next deadline may pass, 0 for never. A nil p has no deadline.
func (p *Context) NextDue() monotime.Time {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nextDueLocked()
}

// nextDueLocked is NextDue for a caller that holds mu.
func (p *Context) nextDueLocked() monotime.Time {
	if p.endCause.Load() != 0 {
		return 0
	}
	if p.idleTimeout > 0 && p.paused == 0 && (p.longestDue == 0 || p.idleDue < p.longestDue) {
		return p.idleDue
	}
	return p.longestDue
}

// CheckExpired ends the context if a deadline has passed by now, and reports whether it has ended for any cause.
func (p *Context) CheckExpired(now monotime.Time) bool {
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

// HasExpired is CheckExpired with the present time, for a caller that must not depend on whether the timer of Done has run in the
// instant of the deadline.
func (p *Context) HasExpired() bool { return p.CheckExpired(monotime.Now()) }

// handleTimer runs when the timer of Done fires. The deadline may have moved since the timer was set: then the timer is set
// again.
func (p *Context) handleTimer() {
	if !p.CheckExpired(monotime.Now()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.armTimer()
	}
}

// armTimer sets the timer of Done to the next deadline, if there is a timer. The caller holds mu.
func (p *Context) armTimer() {
	if p.endCause.Load() != 0 || p.doneState == nil {
		return
	}
	if at := p.nextDueLocked(); at != 0 {
		p.doneState.timer.Reset(at.TimeLeft())
	} else {
		p.doneState.timer.Stop()
	}
}

// PauseIdle stops the idle timeout until as many calls of ResumeIdle have followed. A nil p is a request without a
// Context.
func (p *Context) PauseIdle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused++
	if p.paused == 1 && p.idleTimeout > 0 {
		// While paused, idleDue holds a remaining time; ResumeIdle turns it back into a point in time.
		p.idleDue = monotime.Time(p.idleDue.TimeLeft())
		p.armTimer()
	}
}

// ResumeIdle ends one pause. A session that checks the deadlines itself must arm its timer again.
func (p *Context) ResumeIdle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused--
	if p.paused == 0 && p.idleTimeout > 0 {
		p.idleDue += monotime.Now()
		p.armTimer()
	}
}

// ExtendOnce starts the idle timeout anew, once in the life of the context: a question of the server is open that may be
// about this call, and a server must not keep a call alive for ever by asking questions.
func (p *Context) ExtendOnce() {
	if p == nil {
		return
	}
	p.mu.Lock()
	extended := p.extended
	p.extended = true
	p.mu.Unlock()
	if !extended {
		p.RestartIdle()
	}
}

// RestartIdle starts the idle timeout anew after progress. It only moves the deadline later, so a timer that was set for the
// earlier one stays right: it fires, finds nothing due and is set again.
func (p *Context) RestartIdle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.idleTimeout == 0:
		return
	case p.paused > 0:
		p.idleDue = monotime.Time(p.idleTimeout)
	default:
		p.idleDue = monotime.Now() + monotime.Time(p.idleTimeout)
	}
	p.armTimer()
}
