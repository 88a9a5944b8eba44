package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// cancelTime is how long after a caller has given its call up its server must have been told.
const cancelTime = 2 * time.Second

// callWatch knows the calls under way. It gives up those that their callers are to give up, and looks whether the client tells the
// server of that: check C9.
type callWatch struct {
	// mu guards calls, by the id of each, and the fields of the calls.
	mu    sync.Mutex
	calls map[string]*watchedCall
}

// watchedCall is one call.
type watchedCall struct {
	day    *day
	target *target
	call   load.Call
	moment load.Moment
	cancel context.CancelFunc

	// ended is set when the call has returned; conn is on which connection the server has received it, 0 if it has not. The times are
	// those of the events of the server, answered 0 before its answer.
	ended, cancelled   bool
	conn               int
	received, answered time.Duration
	connEnded          bool
}

// begin notes a call and plans whether it is given up; finish is called when it has returned.
func (w *callWatch) begin(d *day, t *target, c load.Call, cancel context.CancelFunc) (finish func()) {
	moment, after := c.GivenUp(d.plan.Seed)
	l := &watchedCall{day: d, target: t, call: c, moment: moment, cancel: cancel}
	w.mu.Lock()
	if w.calls == nil {
		w.calls = map[string]*watchedCall{}
	}
	w.calls[c.ID] = l
	w.mu.Unlock()
	var timer *time.Timer
	if moment == load.Later {
		timer = time.AfterFunc(after, func() { w.giveUp(l) })
	}
	return func() {
		if timer != nil {
			timer.Stop()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		l.ended = true
	}
}

// noteEvent notes what a server saw of a call, or of the connection of one. The server holds its lock meanwhile.
func (w *callWatch) noteEvent(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch l := w.calls[e.Call]; {
	case e.Kind == history.Down || e.Kind == history.Released:
		for _, l := range w.calls {
			l.connEnded = l.connEnded || l.conn == e.Conn && l.target.plan.Name == e.Server
		}
	case l == nil || l.target.plan.Name != e.Server:
	case e.Kind == history.Received:
		if l.conn, l.received = e.Conn, l.day.elapsedTime(); l.moment == load.WhenReceived {
			go w.giveUp(l)
		}
	case e.Kind == history.Answered:
		if l.answered = l.day.elapsedTime(); l.moment == load.WhenAnswered {
			go w.giveUp(l)
		}
	}
}

// noteCancel notes that the client has cancelled a call.
func (w *callWatch) noteCancel(call string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.calls[call]; l != nil {
		l.cancelled = true
	}
}

// giveUp ends the context of a call that has not returned, and looks after a while whether the server was told.
func (w *callWatch) giveUp(l *watchedCall) {
	w.mu.Lock()
	ended, received := l.ended, l.conn != 0
	w.mu.Unlock()
	if ended {
		return
	}
	at := l.day.elapsedTime()
	l.day.rec.Add(history.Event{Side: history.Caller, Kind: history.GivenUp, Server: l.target.plan.Name, Call: l.call.ID, Tool: l.call.Stream.Tool})
	l.cancel()
	if received && l.target.saysCancel() {
		time.AfterFunc(cancelTime, func() { w.checkCancel(l, at) })
	}
}

// saysCancel reports whether a call is cancelled by a message. Over HTTP a client of the modern era closes the response in place of one,
// and C9 judges no such call: the record has no event for a response that its reader has closed, as it has for a message.
func (t *target) saysCancel() bool {
	return t.plan.Kind == messages.Stdio || t.plan.Era == messages.EraLegacy
}

// calmFaults are those that let a cancellation through, and keep calls waiting.
var calmFaults = []string{"hang-call", "latency", "late-response", "ignore-cancel", "endless-progress", "tool-error", "big-result"}

// crossing is how long after the giving up an answer may come that crossed the cancellation.
const crossing = 100 * time.Millisecond

// checkCancel reports a call that was given up at a time, of which the server has not been told.
func (w *callWatch) checkCancel(l *watchedCall, at time.Duration) {
	now := l.day.elapsedTime()
	w.mu.Lock()
	serverKnows := l.cancelled || l.connEnded || l.answered != 0 && l.answered < at+crossing
	from := l.received - time.Second
	w.mu.Unlock()
	disturbed := slices.ContainsFunc(l.day.plan.Faults, func(f scenario.PlannedFault) bool {
		return (f.Server == "" || f.Server == l.target.plan.Name) && f.Begin <= now && f.End >= from && !slices.Contains(calmFaults, f.Fault)
	})
	if !serverKnows && !disturbed {
		l.target.reportBreach("C9", fmt.Sprintf("The caller of %s gave it up at %s, %s after the server had received it. At %s the server had not been told of it. "+
			"Send notifications/cancelled with the id of the request when the caller's context ends.", l.call.ID, at, at-from-time.Second, now))
	}
}
