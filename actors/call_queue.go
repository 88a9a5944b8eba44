package actors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/mcpvisor/mcpvisor/actors/internal/queue"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// callQueue is where calls wait when only so many may be in flight at a server (Spec.MaxInFlight). It belongs to the server and
// outlives its connections. Package queue decides; this is the lock around it, and the channels by which those who wait are
// told. A server without a bound has none, and its calls take no lock here.
//
// A call waits before it is admitted to a connection. So one that waits has provably not been sent, is not drained, and
// ends with the connection that it waits for, as any call does that finds none: not sent, or, with Calls.Wait, on the next
// connection, where it waits as one that has just come. The time counts: its deadline began when its server was found.
//
// Other bounds count at once, also for those who wait. A bound that is new does not count the calls that began without one.
type callQueue struct {
	mu sync.Mutex
	q  *queue.Queue[admission]
}

// admission says once how a wait ended: true is to go. It has room for that, so that nobody waits to say it.
type admission chan bool

func newAdmission() admission { return make(admission, 1) }

// limitsOf are the bounds that a spec and the manager's defaults give; false if nothing is bounded.
func limitsOf(spec *messages.Spec, inFlight, queued int) (queue.Limits, bool) {
	if spec.MaxInFlight != 0 {
		inFlight = spec.MaxInFlight
	}
	if spec.MaxQueued != 0 {
		queued = spec.MaxQueued
	}
	if queued == 0 {
		queued = messages.DefaultMaxQueued
	}
	return queue.Limits{InFlight: inFlight, Waiting: max(queued, 0)}, inFlight > 0
}

// unboundedLimits lets everybody go who waits under a bound that is no more.
var unboundedLimits = queue.Limits{InFlight: math.MaxInt}

// setCallLimits puts bounds in force. Only the server's actor calls it.
func (c *Cell) setCallLimits(l queue.Limits) *callQueue {
	if c.callQueue == nil {
		c.callQueue = &callQueue{q: queue.New[admission](l)}
		return c.callQueue
	}
	t := c.callQueue
	t.mu.Lock()
	admitted, displaced := t.q.SetLimits(l)
	t.mu.Unlock()
	for _, w := range admitted {
		w.Value <- true
	}
	for _, w := range displaced {
		w.Value <- false
	}
	return t
}

// waitingCalls is how many wait for their turn. nil is nobody's.
func (t *callQueue) waitingCalls() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.q.Waiting()
}

// acquireSlot waits for room. in says that it was given, and that leave must follow; neither room nor an error means that the
// gate is closed, which knows why.
func (t *callQueue) acquireSlot(ctx context.Context, gate *session.Gate) (in bool, err error) {
	t.mu.Lock()
	answer, w, displaced := t.q.Enter(messages.CallerOf(ctx), newAdmission)
	limits := t.q.Limits()
	t.mu.Unlock()
	if displaced != nil {
		displaced.Value <- false
	}
	switch answer {
	case queue.Go:
		return true, nil
	case queue.Full:
		return false, queueFullError(limits)
	case queue.Wait:
	}
	select {
	case goes := <-w.Value:
		if !goes {
			return false, displacedError(limits)
		}
		return true, nil
	case <-gate.Shut():
	case <-ctx.Done():
		err = waitEndedError(ctx, limits)
	}
	t.mu.Lock()
	waited := t.q.Drop(w)
	t.mu.Unlock()
	if !waited && <-w.Value { // told to go at this very moment
		t.releaseSlot()
	}
	return false, err
}

func (t *callQueue) releaseSlot() {
	t.mu.Lock()
	next := t.q.Leave()
	t.mu.Unlock()
	if next != nil {
		next.Value <- true
	}
}

const roomFix = "call again when some of them have ended, or raise maxInFlight or maxQueued of the server"

func queueFullError(l queue.Limits) error {
	text := fmt.Sprintf("as many calls are in flight as may be (%d), and as many wait for their turn as may (%d)",
		l.InFlight, l.Waiting)
	if l.Waiting == 0 {
		text = fmt.Sprintf("as many calls are in flight as may be (%d), and none may wait for its turn", l.InFlight)
	}
	return queueError(messages.ClassThrottled, text, roomFix, messages.ErrQueueFull)
}

func displacedError(l queue.Limits) error {
	return queueError(messages.ClassThrottled, fmt.Sprintf("as many calls wait for their turn as may (%d), and its place was "+
		"given to a caller who has fewer of them", l.Waiting), roomFix, messages.ErrQueueFull)
}

func waitEndedError(ctx context.Context, l queue.Limits) error {
	cause := context.Cause(ctx)
	class, text := messages.ClassCanceled, "the caller gave up"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(cause, context.DeadlineExceeded) {
		class, text = messages.ClassTimeout, "the deadline passed"
	}
	return queueError(class, fmt.Sprintf("%s while it waited for its turn: as many calls were in flight as may be (%d)",
		text, l.InFlight), "raise maxInFlight of the server, or callTimeout, or call it less at once", cause)
}

func queueError(class messages.Class, text, fix string, cause error) error {
	return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: class, Text: text, Fix: fix, Err: cause}
}
