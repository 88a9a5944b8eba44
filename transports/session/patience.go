package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Patience is a context that ends when a caller's patience does: after a time without progress, and after a longest time
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
type Patience struct {
	parent context.Context
	soft   time.Duration // 0: no first clock
	ended  atomic.Int32  // a lapse

	paused   int32 // mu guards it, and what follows
	extended bool  // extend has had its effect
	mu       sync.Mutex
	due      moment // when the first clock runs out; while it stands still, what is left of it
	end      moment // when the second clock runs out
	asked    *asked // nil until somebody has asked for Done
}

// asked is what there is once somebody has asked for Done.
type asked struct {
	done   chan struct{}
	timer  *time.Timer
	forget func() bool // parent does not tell of its end any more
	after  []*func()   // what runs at the end
}

// lapse is why a Patience has ended.
type lapse int32

const (
	_ lapse = iota // it has not
	stopped
	left      // parent has ended
	ranOut    // the first clock
	ranOutEnd // the second clock
)

// errLongest is what a Patience ended of that was bounded in any case.
var errLongest = fmt.Errorf("the longest time for a call has passed: %w", context.DeadlineExceeded)

// Patient begins both clocks. timeout is the first, most the second; 0 or less is no clock. Stop must be called.
func Patient(ctx context.Context, timeout, most time.Duration) *Patience {
	p := &Patience{parent: ctx, soft: max(timeout, 0)}
	now := now()
	p.due = now + moment(p.soft)
	if most > 0 {
		p.end = now + moment(most)
	}
	return p
}

var _ context.Context = (*Patience)(nil)

// Deadline implements context.Context: that of the context that the patience is made from.
func (p *Patience) Deadline() (time.Time, bool) { return p.parent.Deadline() }

// Done implements context.Context.
func (p *Patience) Done() <-chan struct{} {
	over := p.Err() != nil
	p.mu.Lock()
	if p.asked != nil {
		defer p.mu.Unlock()
		return p.asked.done
	}
	a := &asked{done: make(chan struct{})}
	p.asked = a
	if over || p.ended.Load() != 0 {
		close(a.done)
		defer p.mu.Unlock()
		return a.done
	}
	a.timer = time.AfterFunc(time.Hour, p.ring)
	p.arm()
	p.mu.Unlock()
	forget := context.AfterFunc(p.parent, func() { _ = p.Err() })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended.Load() != 0 {
		forget()
	} else {
		a.forget = forget
	}
	return a.done
}

// Err implements context.Context.
func (p *Patience) Err() error {
	if p.ended.Load() == 0 {
		if p.parent.Err() == nil {
			return nil
		}
		p.mu.Lock()
		p.over(left)
	}
	p.mu.Lock() // who ends it has closed done when it gives mu up
	defer p.mu.Unlock()
	switch lapse(p.ended.Load()) {
	case stopped:
		return context.Canceled
	case ranOut, ranOutEnd:
		return context.DeadlineExceeded
	case left:
	}
	return p.parent.Err()
}

// cause is context.Cause of a patience that has ended.
func (p *Patience) cause() error {
	switch lapse(p.ended.Load()) {
	case left:
		return context.Cause(p.parent)
	case ranOutEnd:
		return errLongest
	case stopped, ranOut:
	}
	return p.Err()
}

// AfterFunc has contexts that are made from this one end with it, without a goroutine for each (package context looks for
// it).
func (p *Patience) AfterFunc(f func()) (stop func() bool) {
	p.Done()
	p.mu.Lock()
	if p.ended.Load() != 0 {
		p.mu.Unlock()
		f()
		return func() bool { return false }
	}
	defer p.mu.Unlock()
	a, one := p.asked, &f
	a.after = append(a.after, one)
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		i := slices.Index(a.after, one)
		if i >= 0 {
			a.after = slices.Delete(a.after, i, i+1)
		}
		return i >= 0
	}
}

// Stop ends the context and its clocks. It is idempotent.
func (p *Patience) Stop() {
	p.mu.Lock()
	p.over(stopped)
}

// over ends it, unless it has ended. The caller holds mu, which is given up.
func (p *Patience) over(why lapse) {
	a := p.asked
	if !p.ended.CompareAndSwap(0, int32(why)) || a == nil {
		p.mu.Unlock()
		return
	}
	after, forget := a.after, a.forget
	a.after, a.forget = nil, nil
	a.timer.Stop()
	close(a.done)
	p.mu.Unlock()
	if forget != nil {
		forget()
	}
	for _, f := range after {
		(*f)()
	}
}

type patienceKey struct{}

// Value makes the patience known to the session, also through contexts that were made from it.
func (p *Patience) Value(key any) any {
	if _, ours := key.(patienceKey); ours {
		return p
	}
	return p.parent.Value(key)
}

// patienceOf is the patience that ctx was made from, nil if there is none.
func patienceOf(ctx context.Context) *Patience {
	if p, ours := ctx.(*Patience); ours {
		return p
	}
	p, _ := ctx.Value(patienceKey{}).(*Patience)
	return p
}

// causeOf is context.Cause, and for a Patience which of its clocks ran out.
func causeOf(ctx context.Context) error {
	p, ours := ctx.(*Patience)
	if !ours || p.Err() == nil {
		return context.Cause(ctx)
	}
	return p.cause()
}

// moment is when something may be due.
func (p *Patience) moment() moment {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next()
}

// next is moment for who holds mu.
func (p *Patience) next() moment {
	if p.ended.Load() != 0 {
		return 0
	}
	if p.soft > 0 && p.paused == 0 && (p.end == 0 || p.due < p.end) {
		return p.due
	}
	return p.end
}

// expired looks which clock ran out, and ends the patience if one did.
func (p *Patience) expired(now moment) bool {
	p.mu.Lock()
	switch {
	case p.ended.Load() != 0:
	case p.end != 0 && now >= p.end:
		p.over(ranOutEnd)
		return true
	case p.soft > 0 && p.paused == 0 && now >= p.due:
		p.over(ranOut)
		return true
	}
	defer p.mu.Unlock()
	return p.ended.Load() != 0
}

// ring is the timer's function: one that was set anew may have rung before.
func (p *Patience) ring() {
	if !p.expired(now()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.arm()
	}
}

// arm sets the timer, if there is one. The caller holds mu.
func (p *Patience) arm() {
	if p.ended.Load() != 0 || p.asked == nil {
		return
	}
	if at := p.next(); at != 0 {
		p.asked.timer.Reset(at.away())
	} else {
		p.asked.timer.Stop()
	}
}

// pause stops the first clock until as many resume have followed. nil is nobody's patience.
func (p *Patience) pause() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused++
	if p.paused == 1 && p.soft > 0 {
		p.due = moment(p.due.away())
		p.arm()
	}
}

func (p *Patience) resume() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused--
	if p.paused == 0 && p.soft > 0 {
		p.due += now()
		p.arm()
	}
}

// extend starts the first clock anew, once in the life of the patience: a question is open that may be about this call.
func (p *Patience) extend() {
	if p == nil {
		return
	}
	p.mu.Lock()
	had := p.extended
	p.extended = true
	p.mu.Unlock()
	if !had {
		p.begin()
	}
}

// begin starts the first clock anew: there was progress.
func (p *Patience) begin() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.soft == 0:
		return
	case p.paused > 0:
		p.due = moment(p.soft)
	default:
		p.due = now() + moment(p.soft)
	}
	p.arm()
}
