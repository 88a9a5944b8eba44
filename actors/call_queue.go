package actors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/internal/queue"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// callQueue lets calls wait for a slot when a server has a bound of concurrent calls (Spec.MaxInFlight). It belongs to the
// server and outlives its connections. Package queue decides the order; callQueue adds the lock, and a channel for each waiting
// call. A server without a bound has no callQueue, and its calls take no lock here.
//
// A call waits before it is admitted to a connection. So a waiting call has provably not been sent and is not drained. If
// the connection goes, the call ends as one that finds no connection: not sent, or, with Calls.Wait, it waits on the next
// connection as a new one. The waiting counts against its timeout, which began when its server was found.
//
// A changed bound applies at once, also to waiting calls. A new bound does not count the calls that began without one.
type callQueue struct {
	// mu guards q. It is held for the decision only; a call waits on its own channel.
	mu sync.Mutex
	q  *queue.Queue[admission]
}

// admission carries the end of one wait: true is a slot, false means that the call was displaced. Its buffer of one lets the
// sender go on without waiting for the reader.
type admission chan bool

func newAdmission() admission { return make(admission, 1) }

// limitsOf returns the bounds that a spec has, or else the manager's; false if nothing is bounded. A negative number means none.
func limitsOf(spec *messages.Spec, inFlight, queued int) (queue.Limits, bool) {
	if spec.MaxInFlight != 0 {
		inFlight = spec.MaxInFlight
	}
	if spec.MaxQueued != 0 {
		queued = spec.MaxQueued
	}
	// If neither the spec nor the program sets a length, the queue has its default one.
	if queued == 0 {
		queued = messages.DefaultMaxQueued
	}
	return queue.Limits{InFlight: inFlight, Waiting: max(queued, 0)}, inFlight > 0
}

// unboundedLimits admits every call that waits under a bound that was removed.
var unboundedLimits = queue.Limits{InFlight: math.MaxInt}

// setCallLimits puts bounds in force, and admits or displaces waiting calls as they require. Only the server's actor calls it.
func (c *Cell) setCallLimits(l queue.Limits) *callQueue {
	// The first bound makes the queue, which then stays: calls may hold it.
	if c.callQueue == nil {
		c.callQueue = &callQueue{q: queue.New[admission](l)}
		return c.callQueue
	}
	t := c.callQueue
	t.mu.Lock()
	// The channels have room for one value each, so sending after the lock never blocks.
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

// waitingCalls returns how many calls wait for a slot; 0 for a nil queue.
func (t *callQueue) waitingCalls() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.q.Waiting()
}

// acquireSlot waits for a slot. With in the caller has one and must call releaseSlot. Neither in nor an error means that the
// gate was closed meanwhile: the caller continues to the gate, whose error gives the reason.
func (t *callQueue) acquireSlot(ctx context.Context, gate *session.Gate) (in bool, err error) {
	t.mu.Lock()
	answer, w, displaced := t.q.Enter(turnsOf(ctx), newAdmission)
	// The limits of this moment are those that an error names.
	limits := t.q.Limits()
	t.mu.Unlock()
	// A caller with many waiting calls gives up one of them when the queue is full and another caller has fewer.
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
	goes, received := false, false
	shut := gate.Shut()
	select {
	case goes = <-w.Value:
		received = true
	case <-shut:
	case <-ctx.Done():
	}
	// Several of them may come in one instant, as when calls that were made together have one deadline: the first of them frees its slot
	// by its end. So that a call ends in the same way each time, the end of its context counts first, then that of the connection.
	switch {
	case hasEnded(ctx):
		err = waitEndedError(ctx, limits)
	// The connection is going: the caller shall not wait for a slot at a gate that admits nothing.
	case isClosed(shut):
	case !goes:
		return false, displacedError(limits)
	default:
		return true, nil
	}
	if received {
		w.Value <- goes // its buffer is empty again
	}
	// The wait has ended otherwise; the place in the queue must be given up, unless the slot has just been granted.
	t.mu.Lock()
	waited := t.q.Drop(w)
	t.mu.Unlock()
	// The slot was given at this very moment: it is passed on.
	if !waited && <-w.Value {
		t.releaseSlot()
	}
	return false, err
}

// hasEnded reports whether a context has ended, or does so now: its timer may not have run yet in the instant of its deadline. That of a
// CallTimeout is no Deadline, because it moves.
func hasEnded(ctx context.Context) bool {
	if timeout := session.CallTimeoutOf(ctx); timeout != nil && timeout.HasExpired() {
		return true
	}
	deadline, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(deadline)
}

// isClosed reports whether a channel is closed; a nil one is not.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// releaseSlot frees a slot and admits the next waiting call, if there is one.
func (t *callQueue) releaseSlot() {
	t.mu.Lock()
	next := t.q.Leave()
	t.mu.Unlock()
	if next != nil {
		next.Value <- true
	}
}

// roomFix is the advice in the errors of a full queue.
const roomFix = "call again when some of them have ended, or raise maxInFlight or maxQueued of the server"

// queueFullError is the error of a call that found the queue full.
func queueFullError(l queue.Limits) error {
	// The text names both bounds, because either may be raised.
	text := fmt.Sprintf("as many calls are in flight as may be (%d), and as many wait for their turn as may (%d)",
		l.InFlight, l.Waiting)
	if l.Waiting == 0 {
		text = fmt.Sprintf("as many calls are in flight as may be (%d), and none may wait for its turn", l.InFlight)
	}
	return queueError(messages.ClassThrottled, text, roomFix, messages.ErrQueueFull)
}

// displacedError is the error of a waiting call whose place was given to another caller.
func displacedError(l queue.Limits) error {
	return queueError(messages.ClassThrottled, fmt.Sprintf("as many calls wait for their turn as may (%d), and its place was "+
		"given to a caller who has fewer of them", l.Waiting), roomFix, messages.ErrQueueFull)
}

// waitEndedError is the error of a call whose context ended while it waited.
func waitEndedError(ctx context.Context, l queue.Limits) error {
	// A CallTimeout ends its context with a cause of its own.
	cause := context.Cause(ctx)
	if cause == nil { // the timer of its deadline has not run yet
		cause = context.DeadlineExceeded
	}
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
