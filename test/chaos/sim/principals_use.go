package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// This file has what the callers, the owner and the world do to the manager of the callers' instances. Only the loop draws.

// takeStep does one thing and plans the next one, until the end of the plan.
func (p *principals) takeStep() {
	w := p.world
	if p.manager == nil {
		select {
		case p.manager = <-p.started:
			p.startWatcher(p.manager)
			p.startAgents()
		default:
		}
	}
	pause := time.Duration(p.rng.Int64N(int64(4 * time.Second)))
	if p.rng.IntN(12) == 0 {
		pause *= 40 // long enough for idle instances to end
	}
	if next := w.virtualNow + pause + time.Millisecond; next < w.plan.End-time.Minute {
		w.timeline.planAction(next, "", p.takeStep)
	}
	if p.manager == nil {
		return
	}
	server := []string{"mail", rulesServer}[p.rng.IntN(2)]
	caller := principalNames[p.rng.IntN(len(principalNames))]
	switch n := p.rng.IntN(100); {
	case n < 30 && caller != "":
		p.agents.takeStep(server, caller)
	case n < 60:
		for range 1 + p.rng.IntN(3) {
			p.startCall(server, server, caller)
		}
	case n < 68:
		// The name of an instance instead of the server's: only its own caller may.
		p.startCall(server, nameFor(server, principalNames[1+p.rng.IntN(len(principalNames)-1)]), caller)
	case n < 78:
		p.startRead(server, caller, p.rng.IntN(5))
	case n < 90:
		p.giveCommand(server, caller, p.rng.IntN(9))
	default:
		p.breakHost(p.rng.IntN(4))
	}
}

// startCall makes a call of one caller, by the facade or by message. target is the server, or the name of an instance.
func (p *principals) startCall(server, target, caller string) {
	p.callCount++
	c := principalCall{server, caller, []string{"read", "put", "write"}[p.rng.IntN(3)]}
	id, byMessage, m := fmt.Sprintf("p-%d", p.callCount), p.rng.IntN(5) == 0, p.manager
	args := []byte(fmt.Sprintf(`{"call":%q,"size":0}`, id))
	end := p.beginUse(server, caller)
	p.mu.Lock()
	p.calls[id] = c
	p.mu.Unlock()
	p.world.users.runAsUser(func() {
		ctx, cancel := context.WithTimeout(supervisor.WithCaller(context.Background(), caller), 45*time.Second)
		defer cancel()
		var raw []byte
		var err error
		before := len(m.Instances(server))
		if byMessage {
			var reply any
			reply, err = m.System().Root.RequestFuture(m.PID(), &messages.CallTool{Server: target, Tool: c.tool, Arguments: args, Caller: caller,
				TimeoutMs: 45_000}, time.Minute).Result()
			if r, ok := reply.(*messages.CallToolReply); ok {
				raw, err = r.GetResult(), r.GetFailure().ToError()
			}
		} else {
			var res *supervisor.Result
			if res, err = m.CallServerTool(ctx, target, c.tool, args); err == nil {
				raw = res.Raw
			}
		}
		end()
		p.checkEnd(id, c, target, raw, err)
		p.checkFull(id, server, max(before, len(m.Instances(server))), err)
	})
}

// beginUse notes that a caller uses its instance. The function that it returns notes the end.
func (p *principals) beginUse(server, caller string) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.useOf(nameFor(server, caller))
	u.running++
	u.last = p.world.elapsedTime()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		u.running--
		u.last = p.world.elapsedTime()
	}
}

// startRead makes another request than a call.
func (p *principals) startRead(server, caller string, kind int) {
	m, end := p.manager, p.beginUse(server, caller)
	uri := resourceOf(nameFor(server, caller))
	endWatch := func(bool) {}
	if kind < 2 {
		endWatch = p.beginWatch(nameFor(server, caller), kind == 1)
	}
	p.world.users.runAsUser(func() {
		defer end()
		ctx, cancel := context.WithTimeout(supervisor.WithCaller(context.Background(), caller), 30*time.Second)
		defer cancel()
		switch kind {
		case 0, 1:
			err := m.SubscribeResource(ctx, server, uri)
			// Whatever came of it, an instance with a subscription does not end.
			p.mu.Lock()
			p.useOf(nameFor(server, caller)).subscribed = true
			p.mu.Unlock()
			if err == nil && kind == 1 {
				_ = m.UnsubscribeResource(ctx, server, uri)
			}
			endWatch(err == nil)
		case 2:
			_, _ = m.Prompts(ctx, server)
		case 3:
			_, _ = m.Ping(ctx, server)
		case 4:
			_, _ = m.ReadServerResource(ctx, server, uri)
		}
	})
}

// giveCommand gives a command of the owner about a server, or about one of its instances.
func (p *principals) giveCommand(server, caller string, kind int) {
	m, now := p.manager, p.world.virtualNow
	instance := nameFor(server, caller)
	p.noteDisturbance(server)
	backAt := now + time.Duration(1+p.rng.Int64N(int64(40*time.Second)))
	_, isOff := p.off[server]
	_, isRemoved := p.removed[server]
	if isOff || isRemoved {
		return
	}
	p.commanded[server] = now
	var refused atomic.Bool
	if ends := map[int]string{0: disabling, 1: removal, 4: reconnection}[kind]; ends != "" {
		p.expectEnded(server, ends, m.Status(), refused.Load)
	}
	var do func(context.Context) error
	switch kind {
	case 0:
		p.off[server] = now
		set := func(enabled bool) func(context.Context) error {
			return func(ctx context.Context) error { return m.Toggle(ctx, server, enabled) }
		}
		if backAt%2 == 0 { // by its spec, as when the file of the configuration has changed
			set = func(enabled bool) func(context.Context) error {
				p.mu.Lock()
				defer p.mu.Unlock()
				spec := p.specs[server]
				spec.Disabled = !enabled
				p.specs[server] = spec
				return func(ctx context.Context) error {
					_, err := m.SetServers(ctx, p.currentSpecs())
					return err
				}
			}
		}
		do = set(false)
		p.world.timeline.planAction(backAt, "", func() {
			p.checkNoneLeft(server, "it is disabled", p.off[server])
			delete(p.off, server)
			p.commanded[server] = p.world.virtualNow
			p.noteDisturbance(server)
			enable := set(true)
			p.world.users.runAsUser(func() { _ = enable(context.Background()) })
		})
	case 1:
		p.mu.Lock()
		p.removed[server] = now
		p.mu.Unlock()
		do = func(ctx context.Context) error { return m.Remove(ctx, server) }
		p.world.timeline.planAction(backAt, "", func() {
			p.checkNoneLeft(server, "it was removed", p.removed[server])
			p.mu.Lock()
			delete(p.removed, server)
			spec := p.specs[server]
			p.mu.Unlock()
			p.commanded[server] = p.world.virtualNow
			p.noteDisturbance(server)
			p.world.users.runAsUser(func() { _ = m.Connect(context.Background(), server, spec) })
		})
	case 2, 3:
		p.mu.Lock()
		spec := p.specs[server]
		if kind == 2 {
			spec.InstanceIdle = p.drawIdle(server)
		} else {
			spec = reviseSpec(spec, p.callCount)
		}
		isOther := !spec.SameConnection(p.specs[server])
		p.specs[server] = spec
		p.mu.Unlock()
		if isOther {
			p.expectEnded(server, otherSpec, m.Status(), refused.Load)
		}
		do = func(ctx context.Context) error { return m.Connect(ctx, server, spec) }
	case 4:
		do = func(ctx context.Context) error { return m.Reconnect(ctx, server) }
	case 5:
		do = func(ctx context.Context) error { return m.Reconnect(ctx, instance) }
	case 6, 7:
		do = func(ctx context.Context) error {
			if instance == server {
				return nil
			}
			return m.Remove(ctx, instance)
		}
	default:
		do = func(ctx context.Context) error {
			_, err := m.SetServers(ctx, p.currentSpecs())
			return err
		}
	}
	p.tellStory("the owner's command %d about %s and %s", kind, server, instance)
	p.world.users.runAsUser(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := do(ctx)
		refused.Store(err != nil)
		if err != nil && errors.Is(err, supervisor.ErrClosed) {
			p.reportViolation("I20", server, "a command ended as if the manager were closed")
		}
	})
}

// noteDisturbance notes that the instances of a server may end for another reason than idleness.
func (p *principals) noteDisturbance(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.hosts {
		if name == server || nameOf(name) == server {
			p.useOf(name).disturbed = p.world.elapsedTime()
		}
	}
}

// breakHost lets the server's end of one connection break.
func (p *principals) breakHost(kind int) {
	p.mu.Lock()
	names := slices.Sorted(maps.Keys(p.hosts))
	p.mu.Unlock()
	if len(names) == 0 {
		return
	}
	name := names[p.rng.IntN(len(names))]
	p.mu.Lock()
	h := p.hosts[name]
	p.useOf(name).disturbed = p.world.virtualNow + 3*time.Minute
	p.mu.Unlock()
	f := scenario.PlannedFault{ID: 1, Fault: []string{"crash", "hang-call", "latency", "hang-start"}[kind], Server: name, Begin: p.world.virtualNow}
	f.End = f.Begin + time.Duration(1+p.rng.Int64N(int64(30*time.Second)))
	switch f.Fault {
	case "latency":
		f.With = map[string]string{"by": "3s"}
	case "crash":
		f.End = f.Begin
	}
	p.tellStory("%s at %s", f.Fault, name)
	h.performActions(h.machine.Begin(p.world.virtualNow, f))
	if f.End > f.Begin {
		p.world.timeline.planAction(f.End, "", func() { h.performActions(h.machine.End(p.world.virtualNow, f)) })
	}
}

// closeManager closes the manager, in the goroutine of a user.
func (p *principals) closeManager() {
	if p.servers == nil {
		return
	}
	p.closing.Store(true)
	if p.manager == nil {
		select {
		case p.manager = <-p.started:
		default:
			return // it has reported why it is none
		}
	}
	p.agents.close()
	if err := p.manager.Close(context.Background()); err != nil {
		p.reportViolation("I20", "", "Close of the manager of instances ended as "+err.Error())
	}
}
