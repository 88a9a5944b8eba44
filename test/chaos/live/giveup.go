package live

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
)

// abandonableCall is a call that its caller gives up before its end, unless it ends sooner.
type abandonableCall struct {
	call   load.Call
	moment load.Moment
	cancel context.CancelFunc
	// ended is set when the call has returned, or its caller has given it up; the first of the two wins.
	ended atomic.Bool
}

// callContext returns the context of a call. It ends when the caller gives the call up, after a time or at an event of the
// server, as the plan's seed decides. The caller of callContext must call finish when the call has returned.
func (r *run) callContext(c load.Call) (ctx context.Context, finish func()) {
	moment, after := c.GivenUp(r.plan.Seed)
	if moment == load.Stays {
		return context.Background(), func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &abandonableCall{call: c, moment: moment, cancel: cancel}
	timer := (*time.Timer)(nil)
	if moment == load.Later {
		timer = time.AfterFunc(after, func() { r.giveUp(l) })
	} else {
		r.abandonable.Store(c.ID, l)
	}
	return ctx, func() {
		l.ended.Store(true)
		cancel()
		if timer != nil {
			timer.Stop()
		}
		r.abandonable.Delete(c.ID)
	}
}

// noteCallEvent gives a call up if its caller waits for this event of the server: the arrival of the request, or its answer.
func (r *run) noteCallEvent(e *history.Event) {
	moment := map[history.Kind]load.Moment{history.Received: load.WhenReceived, history.Answered: load.WhenAnswered}[e.Kind]
	if l, ok := r.abandonable.Load(e.Call); ok && moment != load.Stays && l.(*abandonableCall).moment == moment {
		r.giveUp(l.(*abandonableCall))
	}
}

// giveUp records that a caller gives its call up, and cancels the call's context. Only the first attempt counts.
func (r *run) giveUp(l *abandonableCall) {
	if l.ended.Swap(true) {
		return
	}
	r.recordEvent(history.Event{Side: history.Caller, Kind: history.GivenUp, Server: l.call.Stream.Server, Call: l.call.ID, Tool: l.call.Stream.Tool})
	l.cancel()
}
