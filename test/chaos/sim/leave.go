package sim

import (
	"context"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
)

// leaver is a call that its caller gives up before its end, if there is time.
type leaver struct {
	call   load.Call
	moment load.Moment
	cancel context.CancelFunc
	over   atomic.Bool // it has ended
}

// leaves is the context of a call, which ends when its caller gives it up. over is called when the call has returned, by any goroutine.
func (p *people) leaves(c load.Call) (ctx context.Context, over func()) {
	moment, after := c.GivenUp(p.world.plan.Seed)
	if moment == load.Stays || p.world.program != nil && !c.Stream.Task { // who has sent a message cannot take it back
		return context.Background(), func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &leaver{call: c, moment: moment, cancel: cancel}
	if moment == load.Later {
		p.world.line.plan(p.world.at+after, c.Stream.Server, func() { p.giveUp(l) })
	} else {
		p.leaving[c.ID] = l
	}
	return ctx, func() {
		l.over.Store(true)
		cancel()
	}
}

// happened is what a server saw of a call: this may be the moment in which its caller gives it up.
func (p *people) happened(e *history.Event) {
	l := p.leaving[e.Call]
	if l == nil || e.Kind == history.Received && l.moment != load.WhenReceived || e.Kind == history.Answered && l.moment != load.WhenAnswered {
		return
	}
	delete(p.leaving, e.Call)
	p.giveUp(l)
}

// giveUp ends the wait of a caller.
func (p *people) giveUp(l *leaver) {
	if l.over.Load() {
		return
	}
	p.world.record(history.Event{Side: history.Caller, Kind: history.Left, Server: l.call.Stream.Server, Call: l.call.ID, Tool: l.call.Stream.Tool})
	p.world.moved = true
	l.cancel()
}
