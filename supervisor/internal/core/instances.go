package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// This file has the instances of servers whose spec has share "principal". An instance is a server like any other, with a record,
// an actor, a cell, restarts and a place in the one start gate. What is different: no source has its spec, which is derived from
// its server's; it begins with a call of its principal, and ends when nobody has used it for a while, and with its server.
//
// All functions run in the supervisor actor's turn.

// instanceSpec returns the spec of a server's instance. It is dialled at once, because a call waits for it, and never rests: an
// idle instance ends.
func instanceSpec(spec *messages.Spec, server, principal string) *messages.Spec {
	s := *spec
	s.InstanceOf, s.Principal = server, principal
	s.Connect, s.IdleTimeout, s.Disabled = messages.Eager, 0, false
	if s.Kind() == messages.SDK {
		s.Name = cmp.Or(s.Name, server)
	}
	return &s
}

// sortedInstances returns the instances of a server in the order of their names, so that a repeated run takes the same epochs.
func sortedInstances(r *managedServer) []*managedServer {
	return slices.SortedFunc(maps.Values(r.instances), func(a, b *managedServer) int { return cmp.Compare(a.name, b.name) })
}

// handleStartInstance makes an instance, or refuses it. A refusal keeps nothing of the principal, however many there are.
func (s *supervisor) handleStartInstance(ctx actor.Context, m StartInstance) {
	r := s.servers[m.Server]
	start := func(ctx actor.Context) { s.handleStartInstance(ctx, m) }
	refuse := func() {
		m.Reply(instanceError(m.Server, messages.ClassInvalid, "no such server is configured", "", messages.ErrUnknownServer))
	}
	switch {
	case s.closing != nil:
		m.Reply(refusal.ClosedError("call"))
		return
	case r != nil && r.comesBack():
		r.waitingCommands = append(r.waitingCommands, waitingCommand{start, refuse})
		return
	case r == nil || r.removing:
		refuse()
		return
	// Its spec has changed since the caller looked, who looks again.
	case r.spec.Share != messages.SharePrincipal || r.owner != nil:
		m.Reply(nil)
		return
	case !r.wanted:
		m.Reply(instanceError(m.Server, messages.ClassInvalid, "it is disabled", "enable it first", messages.ErrDisabled))
		return
	}
	if cause := s.blockingCause(r); cause != nil {
		m.Reply(instanceError(m.Server, cause.Class, cause.Text, "", nil))
		return
	}
	name := messages.InstanceName(m.Server, m.Principal)
	switch i := s.servers[name]; {
	case i == nil:
	// The old one's process is still there: two would be one too many.
	case i.owner != nil && i.owner.name == m.Server && i.removing:
		i.waitingCommands = append(i.waitingCommands, waitingCommand{start, refuse})
		return
	case i.owner == r:
		m.Reply(nil)
		return
	default:
		m.Reply(instanceError(m.Server, messages.ClassInvalid, fmt.Sprintf("the instance of this caller would have the name %q, which "+
			"another server has", name), "name that server otherwise", nil))
		return
	}
	if most := maxInstances(r.spec); len(r.instances) >= most {
		e := instanceError(m.Server, messages.ClassThrottled, fmt.Sprintf("as many callers have an instance of it as may (%d), and this "+
			"one has none", most), fmt.Sprintf("wait until one was not used for %s (instanceIdle), or raise maxInstances", instanceIdle(r.spec)),
			messages.ErrTooManyInstances)
		e.RetryAfter = s.nextIdleEnd(r, time.Now())
		m.Reply(e)
		return
	}
	i := s.addManagedServer(name)
	i.owner, i.principal = r, m.Principal
	if r.instances == nil {
		r.instances = map[string]*managedServer{}
	}
	r.instances[m.Principal] = i
	s.startServer(ctx, i)
	s.armInstances(time.Now().Add(instanceIdle(r.spec)))
	m.Reply(nil)
}

// instanceError is the error of a call whose instance was not made.
func instanceError(server string, class messages.Class, text, fix string, cause error) *messages.Error {
	return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: class, Server: server, Text: text, Fix: fix, Err: cause}
}

// maxInstances and instanceIdle return the bounds of a spec.
func maxInstances(spec *messages.Spec) int {
	if spec.MaxInstances == 0 {
		return messages.DefaultMaxInstances
	}
	return max(spec.MaxInstances, 0)
}

func instanceIdle(spec *messages.Spec) time.Duration {
	if spec.InstanceIdle == 0 {
		return messages.DefaultInstanceIdle
	}
	return max(time.Duration(spec.InstanceIdle), time.Millisecond)
}

// endInstances ends all instances of a server.
func (s *supervisor) endInstances(ctx actor.Context, r *managedServer, drain time.Duration) {
	for _, i := range sortedInstances(r) {
		s.endServer(ctx, i, drain)
	}
}

// commandInstances does to a server's instances what a person asked of the server. A disabled server has none.
func (s *supervisor) commandInstances(ctx actor.Context, r *managedServer, e lifecycle.Event) {
	if _, disabled := e.(lifecycle.Disable); disabled {
		s.endInstances(ctx, r, s.Common.Timing.Drain)
		return
	}
	for _, i := range sortedInstances(r) {
		if !i.removing {
			s.sendEvent(i, e)
		}
	}
}

// endInstanceNamed makes room for a server that is added under the name of an instance, which ends: what somebody asked for comes
// before what was derived. It returns the record that the name has, nil if it is free.
func (s *supervisor) endInstanceNamed(ctx actor.Context, name string) *managedServer {
	if r := s.servers[name]; r != nil && r.owner != nil {
		s.endServer(ctx, r, s.Common.Timing.Drain)
	}
	return s.servers[name]
}

// applyToInstances follows a change of a server's spec: its instances get what their connections do not depend on, and end
// otherwise; the next call of each principal begins with the new spec.
func (s *supervisor) applyToInstances(ctx actor.Context, r *managedServer, keep bool) {
	if r.owner != nil || len(r.instances) == 0 {
		return
	}
	if !keep || !r.wanted || r.blocked != nil || r.spec.Share != messages.SharePrincipal {
		s.endInstances(ctx, r, s.Common.Timing.Drain)
		return
	}
	for _, i := range sortedInstances(r) {
		if !i.removing {
			s.applySpec(ctx, i, true, 0)
		}
	}
	// The time of idleness may be shorter now.
	s.armInstances(time.Now())
}

// idleEnd returns when an instance ends if nobody uses it before. An instance that is not connected is left to the restart policy
// first: its record ends with it, and the next one would be tried without the delay that its failures have earned. A parked one may
// end, because ten minutes without a use are longer than any envelope.
func (s *supervisor) idleEnd(i *managedServer, now time.Time) time.Time {
	idle := instanceIdle(i.owner.spec)
	unused := i.cell.Use.IdleFor()
	if unused == 0 || i.cell.Subscriptions.Any() {
		return now.Add(idle)
	}
	v := i.cell.View()
	switch v.State.Phase {
	case messages.Pending, messages.Failed:
		idle = max(idle, messages.DefaultInstanceIdle)
		if v.State.Retry == messages.RetryAt && v.State.NextAt.After(now) {
			return v.State.NextAt.Add(time.Second)
		}
	case messages.Connected, messages.NeedsAuth, messages.Disabled:
	}
	return now.Add(idle - unused)
}

// nextIdleEnd returns the time until the first instance of a server may end; 0 if there is none.
func (s *supervisor) nextIdleEnd(r *managedServer, now time.Time) (wait time.Duration) {
	for _, i := range r.instances {
		if d := max(s.idleEnd(i, now).Sub(now), time.Millisecond); wait == 0 || d < wait {
			wait = d
		}
	}
	return wait
}

// endIdleInstances ends the instances that nobody has used for long enough, and arms the timer for the next one. No call is lost: a
// request counts itself in before it looks for the connection, and an instance with a request inside does not end.
func (s *supervisor) endIdleInstances(ctx actor.Context) {
	s.instancesAt = time.Time{}
	if s.closing != nil {
		return
	}
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		i := s.servers[name]
		if i == nil || i.owner == nil || i.removing {
			continue
		}
		due := s.idleEnd(i, now)
		if !due.After(now) && i.cell.Use.EndIdle() {
			s.endServer(ctx, i, s.Common.Timing.Drain)
			continue
		}
		s.armInstances(maxTime(due, now.Add(time.Millisecond)))
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// armInstances arms the timer for a time, unless it is armed for an earlier one.
func (s *supervisor) armInstances(at time.Time) {
	if !s.instancesAt.IsZero() && !at.Before(s.instancesAt) {
		return
	}
	if s.instanceTimer != nil {
		s.instanceTimer.Stop()
	}
	s.instancesAt = at
	root, self := s.root, s.self
	s.instanceTimer = time.AfterFunc(max(time.Until(at), 0), func() { root.Send(self, instancesDue{}) })
}
