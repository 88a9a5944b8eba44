package sim

import (
	"context"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
)

// abandonableCall is a call that its caller gives up before its end, unless it ends sooner.
type abandonableCall struct {
	// cancel ends the context of the call; moment is the event of the server at which giveUp calls it.
	call   load.Call
	moment load.Moment
	cancel context.CancelFunc
	// ended is set when the call has returned; giveUp then does nothing.
	ended atomic.Bool
}

// callContext returns the context of a call. It ends when the caller gives the call up, after a time or at an event of the
// server. The caller of callContext calls finish, in any goroutine, when the call has returned.
func (p *managerUsers) callContext(c load.Call) (ctx context.Context, finish func()) {
	moment, after := c.GivenUp(p.world.plan.Seed)
	// A message that was sent cannot be taken back.
	if moment == load.Stays || p.world.messageActor != nil && !c.Stream.Task {
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

// leaverAt returns what gives a call up, if its caller does that at this event of the server and has not returned yet. It is asked before the
// event, because the caller of a call that is answered may return before its leaver runs.
func (p *managerUsers) leaverAt(call string, moment load.Moment) (leave func()) {
	l := p.abandonable[call]
	if l == nil || l.moment != moment || l.ended.Load() {
		return func() {}
	}
	return func() {
		delete(p.abandonable, call)
		p.leave(l)
	}
}

// giveUp gives a call up that has not ended.
func (p *managerUsers) giveUp(l *abandonableCall) {
	if !l.ended.Load() {
		p.leave(l)
	}
}

// leave records that a caller gives its call up, and cancels its context.
func (p *managerUsers) leave(l *abandonableCall) {
	p.world.recordEvent(history.Event{Side: history.Caller, Kind: history.GivenUp, Server: l.call.Stream.Server, Call: l.call.ID, Tool: l.call.Stream.Tool})
	p.world.needsWait = true
	l.cancel()
}
