package live

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
)

// leaver is a call that its caller gives up before its end, if there is time.
type leaver struct {
	call   load.Call
	moment load.Moment
	cancel context.CancelFunc
	over   atomic.Bool // it has ended, or was given up
}

// leaves is the context of a call, which ends when its caller gives it up. over is called when the call has returned.
func (r *run) leaves(c load.Call) (ctx context.Context, over func()) {
	moment, after := c.GivenUp(r.plan.Seed)
	if moment == load.Stays {
		return context.Background(), func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &leaver{call: c, moment: moment, cancel: cancel}
	timer := (*time.Timer)(nil)
	if moment == load.Later {
		timer = time.AfterFunc(after, func() { r.giveUp(l) })
	} else {
		r.leaving.Store(c.ID, l)
	}
	return ctx, func() {
		l.over.Store(true)
		cancel()
		if timer != nil {
			timer.Stop()
		}
		r.leaving.Delete(c.ID)
	}
}

// happened is what a server saw of a call: this may be the moment in which its caller gives it up.
func (r *run) happened(e *history.Event) {
	moment := map[history.Kind]load.Moment{history.Received: load.WhenReceived, history.Answered: load.WhenAnswered}[e.Kind]
	if l, ok := r.leaving.Load(e.Call); ok && moment != load.Stays && l.(*leaver).moment == moment {
		r.giveUp(l.(*leaver))
	}
}

// giveUp ends the wait of a caller, once.
func (r *run) giveUp(l *leaver) {
	if l.over.Swap(true) {
		return
	}
	r.record(history.Event{Side: history.Caller, Kind: history.Left, Server: l.call.Stream.Server, Call: l.call.ID, Tool: l.call.Stream.Tool})
	l.cancel()
}
