package live

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
)

// abandonableCall is a call that its caller gives up before its end, if there is time.
type abandonableCall struct {
	call   load.Call
	moment load.Moment
	cancel context.CancelFunc
	ended  atomic.Bool // it has ended, or was given up
}

// callContext is the context of a call, which ends when its caller gives it up. over is called when the call has returned.
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

// noteCallEvent is what a server saw of a call: this may be the moment in which its caller gives it up.
func (r *run) noteCallEvent(e *history.Event) {
	moment := map[history.Kind]load.Moment{history.Received: load.WhenReceived, history.Answered: load.WhenAnswered}[e.Kind]
	if l, ok := r.abandonable.Load(e.Call); ok && moment != load.Stays && l.(*abandonableCall).moment == moment {
		r.giveUp(l.(*abandonableCall))
	}
}

// giveUp ends the wait of a caller, once.
func (r *run) giveUp(l *abandonableCall) {
	if l.ended.Swap(true) {
		return
	}
	r.recordEvent(history.Event{Side: history.Caller, Kind: history.GivenUp, Server: l.call.Stream.Server, Call: l.call.ID, Tool: l.call.Stream.Tool})
	l.cancel()
}
