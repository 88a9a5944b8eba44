package sim

import (
	"context"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
)

// abandonableCall is a call that its caller gives up before its end, if there is time.
type abandonableCall struct {
	call   load.Call
	moment load.Moment
	cancel context.CancelFunc
	ended  atomic.Bool // it has ended
}

// callContext is the context of a call, which ends when its caller gives it up. over is called when the call has returned, by any goroutine.
func (p *managerUsers) callContext(c load.Call) (ctx context.Context, finish func()) {
	moment, after := c.GivenUp(p.world.plan.Seed)
	if moment == load.Stays || p.world.messageActor != nil && !c.Stream.Task { // who has sent a message cannot take it back
		return context.Background(), func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &abandonableCall{call: c, moment: moment, cancel: cancel}
	if moment == load.Later {
		p.world.timeline.planAction(p.world.virtualNow+after, c.Stream.Server, func() { p.giveUp(l) })
	} else {
		p.abandonable[c.ID] = l
	}
	return ctx, func() {
		l.ended.Store(true)
		cancel()
	}
}

// noteCallEvent is what a server saw of a call: this may be the moment in which its caller gives it up.
func (p *managerUsers) noteCallEvent(e *history.Event) {
	l := p.abandonable[e.Call]
	if l == nil || e.Kind == history.Received && l.moment != load.WhenReceived || e.Kind == history.Answered && l.moment != load.WhenAnswered {
		return
	}
	delete(p.abandonable, e.Call)
	p.giveUp(l)
}

// giveUp ends the wait of a caller.
func (p *managerUsers) giveUp(l *abandonableCall) {
	if l.ended.Load() {
		return
	}
	p.world.recordEvent(history.Event{Side: history.Caller, Kind: history.GivenUp, Server: l.call.Stream.Server, Call: l.call.ID, Tool: l.call.Stream.Tool})
	p.world.needsWait = true
	l.cancel()
}
