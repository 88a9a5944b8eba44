package core

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// This file has what happens from the request of a start to its end: the gate, the restart policy, and the timer for both.

// grantStarts starts the servers that the gate lets pass now, ends connections that must make room, and arms the timer for the
// next start. While the manager closes it does nothing.
func (s *supervisor) grantStarts(_ actor.Context) {
	if s.closing != nil {
		return
	}
	now := time.Now()
	// Every grant gets a new epoch: a message that arrives later with another one belongs to an attempt that is over.
	granted, wake := s.gate.Next(now)
	for _, name := range granted {
		r := s.servers[name]
		// The gate counts slots; that a server has at most one connection is checked here against the supervisor's own record.
		// A grant that cannot be used is given back at once.
		if r == nil || r.pid == nil || r.liveEpoch != 0 {
			s.gate.Closed(now, name)
			continue
		}
		s.epoch++
		r.liveEpoch, r.isUp = s.epoch, false
		s.root.Send(r.pid, lifecycle.Granted{Epoch: s.epoch})
	}
	// A process that does not answer may be ended so that another server can start. Its policy notes that it was displaced, so
	// that the next attempt is spared. A liveEpoch of 0 says that the connection has closed already.
	for _, name := range s.gate.Displace(now) {
		if r := s.servers[name]; r != nil && r.pid != nil && r.liveEpoch != 0 {
			r.policy = s.Restart.Displaced(r.policy)
			s.root.Send(r.pid, actors.Displace{Epoch: r.liveEpoch})
		}
	}
	// A successor does not pass the gate; the same timer serves it.
	for _, r := range s.orphans {
		if wake.IsZero() || r.spawnAt.Before(wake) {
			wake = r.spawnAt
		}
	}
	s.wakeAt(wake, now)
}

// wakeAt arms the timer for a time, unless it is armed for an earlier one. The timer that rings too early costs one message;
// a second timer would need an owner.
func (s *supervisor) wakeAt(at, now time.Time) {
	if at.IsZero() || !s.timerAt.IsZero() && !at.Before(s.timerAt) {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	// The function runs on a timer's goroutine, so it uses copies and only sends.
	s.timerAt = at
	root, self := s.root, s.self
	s.timer = time.AfterFunc(max(at.Sub(now), 0), func() { root.Send(self, timerDue{}) })
}

// stopTimers stops all timers. A clockDue that is in the mailbox already arms the ticker once more; the actor's own stop stops it
// again.
func (s *supervisor) stopTimers() {
	for _, t := range []*time.Timer{s.timer, s.ticker, s.instanceTimer} {
		if t != nil {
			t.Stop()
		}
	}
}

// handleFromServer handles what a server's actor reports about its attempts: requests to start, answers, failures, the end.
func (s *supervisor) handleFromServer(ctx actor.Context, m actors.FromServer) {
	r := s.servers[m.Name]
	if r == nil || r.pid == nil || r.actorEpoch != m.ActorEpoch {
		return // a message of an actor that has ended
	}
	now := time.Now()
	switch e := m.Effect.(type) {
	case lifecycle.Ask:
		// A command of a person (Fresh) forgets the failures. A successor's first request is Fresh as well, and must keep them:
		// otherwise an actor that panics at once would be started again without any delay.
		if e.Fresh && !r.successor {
			r.policy = s.Restart.Cleared(r.policy)
		}
		r.successor = false
		// The request may have been sent before the grant arrived.
		if m.Attempt < r.liveEpoch {
			// A grant is on its way to the actor and answers this request as well. If the gate queued the request, it would grant it
			// as soon as that attempt ends, before the time that the policy chooses then.
			return
		}
		s.gate.Enqueue(now, s.startRequest(r, priorityOf(e.Urgency, r), now))
	case lifecycle.Unask:
		s.gate.Cancel(r.name)
	case lifecycle.Answer:
		s.gate.Answered(now, r.name)
	case lifecycle.Install:
		s.gate.Installing(now, r.name)
	case lifecycle.Up:
		r.policy = s.Restart.Connected(r.policy)
		r.isUp, r.upSince = true, now
	// An attempt has failed, or a connection has died, and everything that it held is released.
	case lifecycle.Report:
		s.scheduleRetry(r, e, now)
	case lifecycle.Decline:
		s.handleReleased(ctx, actors.AttemptReleased{Name: r.name, Epoch: e.Epoch})
	// The server's actor has nothing left to close; Terminated follows, and then finishRemoval.
	case lifecycle.Gone:
		ctx.Stop(r.pid)
	}
}

// priorityOf translates the urgency that a server's actor states. Without a special one the record decides: a server that was
// healthy before comes before one that never connected.
func priorityOf(u lifecycle.Urgency, r *managedServer) restart.Priority {
	switch {
	case u == lifecycle.Person:
		return restart.Urgent
	case u == lifecycle.Background:
		return restart.Probe
	}
	return r.policy.Priority()
}

// startRequest describes a start to the gate. A start that a person waits for may displace a silent process; a server that was
// itself displaced is spared, so that two servers do not displace each other in turn.
func (s *supervisor) startRequest(r *managedServer, p restart.Priority, notBefore time.Time) restart.Request {
	return restart.Request{
		Server: r.name, Kind: r.spec.Kind(), Origin: addresses.OriginOf(r.spec.URL), Priority: p, NotBefore: notBefore,
		Displaces: p == restart.Urgent || r.policy.Displaces(), Spared: r.policy.Displaced,
	}
}

// scheduleRetry decides what follows a failure, reports it to the server's actor (its status shows the time), and queues the
// start. Both use the same decision, so the status cannot promise another time than the gate keeps.
func (s *supervisor) scheduleRetry(r *managedServer, e lifecycle.Report, now time.Time) {
	// The policy is pure: the new record and the decision follow from the old record, the event, the time and one random draw.
	policy, decision := s.Restart.Down(r.policy, downEvent(r, e.Cause.Class, e.Cause.RetryAfter, now), now, s.Rand)
	r.policy, r.isUp = policy, false
	s.root.Send(r.pid, actors.Scheduled{
		Scheduled: lifecycle.Scheduled{Epoch: e.Epoch, Retry: decision.Retry, At: decision.At},
		Attempts:  policy.Attempts,
	})
	if decision.Retry != messages.RetryNever {
		s.gate.Enqueue(now, s.startRequest(r, policy.Priority(), decision.At))
	}
}

// handleReleased frees the slot and the epoch of an attempt whose resources are all closed. If the server's actor has died
// meanwhile, its successor may be spawned only now: before, two connections could exist at once.
func (s *supervisor) handleReleased(ctx actor.Context, m actors.AttemptReleased) {
	r := s.servers[m.Name]
	if r == nil || r.liveEpoch != m.Epoch {
		return
	}
	now := time.Now()
	r.liveEpoch = 0
	s.gate.Closed(now, r.name)
	if r.pid == nil {
		s.handleOrphan(ctx, r)
	}
}
