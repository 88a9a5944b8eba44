package core

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// This file decides which servers there are. Every spec has a source: the configuration, or the runtime (facade and messages).
// Each source replaces only its own specs, and the runtime's spec wins. The configuration's changes are in configure.go. All
// functions on supervisor run in the actor's turn.

// handleAdd adds a server at runtime or replaces its spec. A spec that cannot work is refused here, and changes nothing: a
// program learns it from the reply, unlike a configured one, which stands as failed.
func (s *supervisor) handleAdd(ctx actor.Context, m AddServer) {
	if s.closing != nil {
		m.Reply(refusal.ClosedError("connect"))
		return
	}
	// The command may come from another actor or a caller's map: the scope is not the caller's to choose.
	spec := m.Spec
	spec.Scope, spec.Source = messages.ScopeRuntime, ""
	if cause := s.unusableCause(m.Name, spec); cause != nil {
		m.Reply(&messages.Error{Op: "connect", Class: cause.Class, Server: m.Name, Text: cause.Text})
		return
	}
	r := s.endInstanceNamed(ctx, m.Name)
	switch {
	// A new name: the record, the cell and the actor are made in this turn, so a status exists when the reply arrives.
	case r == nil:
		r = s.addManagedServer(m.Name)
		r.runtime = &spec
		s.startServer(ctx, r)
	case r.removing:
		// The old connection may still hold a port or a file that the new server needs, so the add waits until it is closed.
		// SetServers replies when the spec is accepted; Connect waits for the new server.
		if m.Early {
			m.Reply(nil)
			m.Reply = func(error) {}
		}
		r.waitingCommands = append(r.waitingCommands, waitingCommand{run: func(ctx actor.Context) { s.handleAdd(ctx, m) }})
		return
	// This arm stands for a command from before that waited as well and has added the same spec: nothing is left to do.
	case m.set && r.runtime != nil && r.runtime.Equal(spec):
	case r.runtime != nil && r.runtime.Equal(spec) && r.wanted == !spec.Disabled:
		// The same spec again: a program that adds a server wants it connected, so a failed one is tried now.
		if v := r.cell.View(); v.State.Phase == messages.Failed || v.State.Phase == messages.NeedsAuth {
			s.sendEvent(r, lifecycle.Reconnect{Ticket: m.Ticket})
		} else {
			s.sendEvent(r, lifecycle.Wake{Ticket: m.Ticket})
		}
	default:
		r.runtime = &spec
		s.applySpec(ctx, r, !spec.Disabled, m.Ticket)
	}
	m.Reply(nil)
}

// sendEvent sends an event to the server's actor. While there is none the event is dropped: what it asks for is in the record
// (wanted), and the successor begins with that.
func (s *supervisor) sendEvent(r *managedServer, e lifecycle.Event) {
	if r.pid != nil {
		s.root.Send(r.pid, e)
	}
}

// addManagedServer makes the record of a new name. startServer must follow in the same turn.
func (s *supervisor) addManagedServer(name string) *managedServer {
	r := &managedServer{name: name, holder: &actors.Holder{}}
	s.servers[name] = r
	return r
}

// startServer publishes a new server as pending and spawns its actor. The cell is complete before it is stored, because readers
// take no lock.
func (s *supervisor) startServer(ctx actor.Context, r *managedServer) {
	r.spec = r.specInForce()
	r.wanted = !r.spec.Disabled
	r.cell = actors.NewCell(&actors.View{Name: r.name, Spec: r.spec, Since: time.Now(), Seen: s.barrierSeen,
		State: lifecycle.State{Wanted: r.wanted, Phase: messages.Pending, Step: messages.Queued, Ticket: s.shared.tickets.Load()}})
	// Each server may always hold its part of the memory; Close in finishRemoval gives it back.
	r.cell.Share = s.Budget.Open(r.name)
	r.cell.Logs.Share = r.cell.Share
	r.cell.GivenSecrets = func() []string { return s.Credentials.SecretsOf(r.name) }
	if r.owner != nil {
		r.cell.Use = actors.NewUse(r.principal, s.epoch)
		r.owner.cell.Instances.Put(r.cell)
		s.shared.instances.Store(r.name, r.cell)
	} else {
		s.shared.cells.Store(r.name, r.cell)
	}
	s.spawnServer(ctx, r)
}

// applySpec puts the winning spec in force. If the connection fits the new spec too, it stays. Otherwise the failures so far are
// forgotten, because they were another spec's, and the new connection begins when the calls of the old one have ended, or
// Timing.Drain has passed.
func (s *supervisor) applySpec(ctx actor.Context, r *managedServer, wanted bool, ticket uint64) {
	// SameConnection compares everything that the connection was made of; timeouts, bounds and tool filters may differ.
	keep := r.spec.SameConnection(*r.specInForce())
	r.spec, r.wanted = r.specInForce(), wanted
	if !keep {
		r.policy = restart.Record{}
	}
	// The actor is sent the reason as well, so that it fails without an attempt.
	r.blocked = s.blockingCause(r)
	if r.pid != nil {
		s.root.Send(r.pid, actors.ReplaceSpec{Spec: r.spec, Event: lifecycle.Respec{
			Enabled: r.wanted, Lazy: r.spec.Connect == messages.Lazy, Keep: keep, Blocked: r.blocked, Ticket: ticket}})
	}
	s.applyToInstances(ctx, r, keep)
}

// handleRemove takes the runtime spec of a server away. A server that also stands in the configuration falls back to that spec;
// one that stands only there is refused, because the next reload would bring it back.
func (s *supervisor) handleRemove(ctx actor.Context, m RemoveServer) {
	r := s.servers[m.Name]
	refuse := func() { m.Reply(refusal.UnknownServerError("remove", m.Name, s.shared.Names()...)) }
	switch {
	case s.closing != nil:
		m.Reply(refusal.ClosedError("remove"))
		return
	// The removal that runs was of the old server; this command is for the one that comes back.
	case r != nil && r.comesBack():
		r.waitingCommands = append(r.waitingCommands, waitingCommand{func(ctx actor.Context) { s.handleRemove(ctx, m) }, refuse})
		return
	case r == nil || r.removing:
		refuse()
		return
	// The next call of its principal makes another one.
	case r.owner != nil:
		s.endServer(ctx, r, s.Common.Timing.Drain)
		m.Reply(nil)
		return
	case r.runtime == nil:
		m.Reply(&messages.Error{Op: "remove", Class: messages.ClassInvalid, Server: m.Name,
			Text: "it comes from " + sourceOf(r.configured), Fix: "remove it there, or disable it here"})
		return
	}
	// Only the runtime's spec is withdrawn here; dropSource decides what that means for the server.
	r.runtime = nil
	// The ticket is drawn in this turn, so that no command which the supervisor has handled before has a later one.
	ticket := s.shared.NextTicket()
	if m.Ticket != nil {
		*m.Ticket = ticket
	}
	s.dropSource(ctx, r, ticket)
	m.Reply(nil)
}

// sourceOf names the file or the scope of a configured spec for an error's text.
func sourceOf(s *messages.Spec) string {
	switch {
	case s.Source != "":
		return s.Source
	case s.Scope == messages.ScopeRuntime:
		return "the program (Config.Servers, Configure)"
	}
	return "the configuration (scope " + string(s.Scope) + ")"
}

// dropSource removes a server that has lost one of its specs, or applies the spec of its other source.
func (s *supervisor) dropSource(ctx actor.Context, r *managedServer, ticket uint64) {
	if w := r.specInForce(); w != nil {
		s.applySpec(ctx, r, !w.Disabled, ticket)
		return
	}
	s.endServer(ctx, r, s.Common.Timing.Drain)
}

// endServer begins a removal. Its end is finishRemoval: at once if neither an actor nor a connection exists; otherwise when the
// actor has stopped and, after a panic, its attempt has been released.
func (s *supervisor) endServer(ctx actor.Context, r *managedServer, drain time.Duration) {
	if r.removing {
		return
	}
	// From now on the name finds this record, and commands for it wait or fail.
	r.removing, r.wanted = true, false
	if r.owner != nil {
		r.cell.Use.End()
	}
	s.endInstances(ctx, r, drain)
	delete(s.orphans, r.name)
	switch {
	case r.pid != nil:
		s.root.Send(r.pid, actors.Stop{Drain: drain})
	// Without an actor and without a connection nothing reports an end, so the removal is finished here.
	case r.liveEpoch == 0:
		s.finishRemoval(ctx, r)
	}
}

// handleCommand changes what is wanted of one server and passes the event to its actor. A command for a server whose removal
// runs and that comes back waits, so that it reaches the new one.
func (s *supervisor) handleCommand(ctx actor.Context, m ServerCommand) {
	r := s.servers[m.Name]
	refuse := func() { m.Reply(refusal.UnknownServerError("change", m.Name, s.shared.Names()...)) }
	switch {
	case s.closing != nil:
		m.Reply(refusal.ClosedError("change"))
		return
	case r != nil && r.comesBack():
		r.waitingCommands = append(r.waitingCommands, waitingCommand{func(ctx actor.Context) { s.handleCommand(ctx, m) }, refuse})
		return
	case r == nil || r.removing:
		refuse()
		return
	}
	switch m.Event.(type) {
	case lifecycle.Enable, lifecycle.Disable:
		if r.owner != nil {
			m.Reply(&messages.Error{Op: "change", Class: messages.ClassInvalid, Server: m.Name,
				Text: "it is an instance, which is there as long as it is used", Fix: "remove it, or disable " + r.owner.name})
			return
		}
	}
	switch m.Event.(type) {
	// The record keeps the command even if the actor has died: its successor starts with it.
	case lifecycle.Enable:
		r.wanted = true
	case lifecycle.Disable:
		r.wanted = false
	// A reconnect that cannot succeed is refused at once: the caller would otherwise wait for an attempt that never begins.
	case lifecycle.Reconnect:
		if !r.wanted {
			m.Reply(&messages.Error{Op: "reconnect", Class: messages.ClassInvalid, Server: m.Name, Text: "it is disabled",
				Fix: "enable it first", Err: messages.ErrDisabled})
			return
		}
		if cause := s.blockingCause(r); cause != nil {
			m.Reply(&messages.Error{Op: "reconnect", Class: cause.Class, Server: m.Name, Text: cause.Text})
			return
		}
		// Its actor died, and the successor waits for its time: a person's command does not.
		if r.pid == nil && r.liveEpoch == 0 {
			r.spawnAt = time.Time{}
			s.spawnDue(ctx)
		}
	}
	s.commandInstances(ctx, r, m.Event)
	s.sendEvent(r, m.Event)
	m.Reply(nil)
}

// handleSetServers compares the wanted set with the runtime servers and applies the difference: first removals, then adds. Each
// add is accepted early, so that the reply does not wait for the end of removals.
func (s *supervisor) handleSetServers(ctx actor.Context, m SetServers) {
	if s.closing != nil {
		m.Reply(messages.SetServersResult{}, refusal.ClosedError("set servers"))
		return
	}
	// Empty lists and not nil, because the result is written as JSON.
	res := messages.SetServersResult{Added: []string{}, Removed: []string{}, Errors: map[string]string{}}
	// Sorted names make the order of epochs, and so a repeated run, independent of the map.
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		r := s.servers[name]
		if _, keep := m.Specs[name]; keep || r.owner != nil {
			continue
		}
		switch {
		case r.comesBack(): // the add that waits is not part of the new set
			s.handleRemove(ctx, RemoveServer{Name: name, Reply: func(error) {}})
		case !r.removing && r.runtime != nil:
			res.Removed = append(res.Removed, name)
			r.runtime = nil
			s.dropSource(ctx, r, 0)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Specs)) {
		spec, adjusted := m.Specs[name], false
		r := s.servers[name]
		if r != nil && !r.removing && r.runtime != nil {
			if r.runtime.Equal(spec) {
				res.Kept = append(res.Kept, name)
				continue
			}
			// A replaced server stands in Removed and Added; one whose connection stays stands in Adjusted only.
			// A spec that cannot work replaces nothing: the old server keeps running, and handleAdd reports the error.
			if s.unusableCause(name, spec) == nil {
				if r.runtime.SameConnection(spec) {
					adjusted = true
				} else {
					res.Removed = append(res.Removed, name)
				}
			}
		}
		s.handleAdd(ctx, AddServer{Name: name, Spec: spec, Early: true, set: true, Reply: func(err error) {
			switch {
			case err != nil:
				res.Errors[name] = err.Error()
			case adjusted:
				res.Adjusted = append(res.Adjusted, name)
			default:
				res.Added = append(res.Added, name)
			}
		}})
	}
	slices.Sort(res.Removed)
	m.Reply(res, nil)
}

// closeServers ends every server. From here on commands and grants are refused; finishClose replies when the last one is gone.
func (s *supervisor) closeServers(ctx actor.Context, m CloseAll) {
	if s.closing != nil {
		// Close sends it once; this protects against a second one.
		return
	}
	answer := m.Reply
	// A registry that dies makes its successor run the same Sync again, so the reply must be harmless the second time.
	m.Reply = sync.OnceFunc(func() {
		s.shared.Hub.Close()
		answer()
	})
	s.closing = &m
	s.stopTimers()
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		r := s.servers[name]
		// No source has the server any more, so nothing brings it back when it has ended.
		r.runtime, r.configured, r.waitingSpec = nil, nil, nil
		s.endServer(ctx, r, m.Drain)
	}
	s.retireGate()
	s.finishClose(ctx)
}

// finishClose replies to Close once no server is left. The reply goes through the registry, behind the last Forget, so that the
// empty snapshot is published before.
func (s *supervisor) finishClose(actor.Context) {
	if s.closing == nil || len(s.servers) > 0 {
		return
	}
	s.sendToRegistry(actors.Sync{Done: s.closing.Reply})
}

// IsUnreachable reports whether a server that was removed at runtime cannot be reached by a new call under its runtime spec: it
// ends, or its configured spec is in force again. The scope of that one does not tell: the program may have configured it, too.
func (m RemoveServer) IsUnreachable(v *actors.View) bool {
	return v.State.Removing || v.State.Ticket >= *m.Ticket
}
