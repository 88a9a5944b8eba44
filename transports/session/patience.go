package session

import (
	"context"
	"fmt"
	"sync"
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
// It is safe for concurrent use. Its cause (context.Cause) when a clock ran out is context.DeadlineExceeded.
type Patience struct {
	context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer
	soft   time.Duration // 0: no first clock
	due    time.Time     // of the first clock, while it runs
	left   time.Duration // of it, while it stands still
	end    time.Time     // of the second clock; zero for none
	paused int
	over   bool
}

// Patient begins both clocks. timeout is the first, most the second; 0 or less is no clock. Stop must be called.
func Patient(ctx context.Context, timeout, most time.Duration) *Patience {
	p := &Patience{soft: max(timeout, 0)}
	p.Context, p.cancel = context.WithCancelCause(ctx)
	now := time.Now()
	if p.soft > 0 {
		p.due = now.Add(p.soft)
	}
	if most > 0 {
		p.end = now.Add(most)
	}
	if d, any := p.next(now); any {
		p.timer = time.AfterFunc(d, p.ring)
	}
	return p
}

// Stop ends the context and its clocks. It is idempotent.
func (p *Patience) Stop() {
	p.mu.Lock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.cancel(context.Canceled)
}

type patienceKey struct{}

// Value makes the patience known to the session, also through contexts that were made from it.
func (p *Patience) Value(key any) any {
	if _, ours := key.(patienceKey); ours {
		return p
	}
	return p.Context.Value(key)
}

// patienceOf is the patience that ctx was made from, nil if there is none.
func patienceOf(ctx context.Context) *Patience {
	p, _ := ctx.Value(patienceKey{}).(*Patience)
	return p
}

// next is how long it is until something may be due. The caller holds mu, or is alone.
func (p *Patience) next(now time.Time) (d time.Duration, any bool) {
	if p.soft > 0 && p.paused == 0 {
		d, any = p.due.Sub(now), true
	}
	if !p.end.IsZero() && (!any || p.end.Sub(now) < d) {
		d, any = p.end.Sub(now), true
	}
	return max(d, 0), any
}

// ring looks which clock ran out, if one did: a timer that was set anew may have rung before.
func (p *Patience) ring() {
	p.mu.Lock()
	now := time.Now()
	var cause error
	switch {
	case p.over:
	case !p.end.IsZero() && !now.Before(p.end):
		cause = fmt.Errorf("the longest time for a call has passed: %w", context.DeadlineExceeded)
	case p.soft > 0 && p.paused == 0 && !now.Before(p.due):
		cause = context.DeadlineExceeded
	default:
		p.arm(now)
	}
	p.over = p.over || cause != nil
	p.mu.Unlock()
	if cause != nil {
		p.cancel(cause)
	}
}

// arm sets the timer. The caller holds mu.
func (p *Patience) arm(now time.Time) {
	if p.over || p.timer == nil {
		return
	}
	if d, any := p.next(now); any {
		p.timer.Reset(d)
	} else {
		p.timer.Stop()
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
		now := time.Now()
		p.left = max(p.due.Sub(now), 0)
		p.arm(now)
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
		now := time.Now()
		p.due = now.Add(p.left)
		p.arm(now)
	}
}

// begin starts the first clock anew: there was progress.
func (p *Patience) begin() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.soft == 0 {
		return
	}
	now := time.Now()
	p.due, p.left = now.Add(p.soft), p.soft
	p.arm(now)
}
