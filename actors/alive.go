package actors

import (
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
)

// A child's exit says that it is dead. The silence of a remote server says nothing, so its actor pings it, and only then: any
// message of the server ends the silence, and a server that sends messages is never pinged. Any answer to a ping is a sign of
// life, also an error; a slow answer to a call is never taken for death.
//
// So a peer that vanished without closing its connection is noticed within ProbeEvery + ProbeStrikes × ProbeTimeout of its
// last message: 45 s with the defaults. (A ProbeEvery shorter than ProbeTimeout counts as that, because the next ping waits for the
// one before.) The first ping comes after ProbeEvery of silence, the next ones as soon as the
// one before has had no answer; any message in between begins anew. A ping is sent at once when a call could not reach
// the server, or when two calls in a row timed out and no message came since they began.

// isRemote reports whether the server is reached by network, so that it can vanish silently.
func (s *Server) isRemote() bool { return s.spec.Kind().Remote() }

// armProbe arms the timer for the moment at which the server may have been silent for ProbeEvery.
func (s *Server) armProbe() {
	// A child process needs no probe: its exit is noticed at once.
	every := s.cfg.Timing.ProbeEvery
	if !s.isRemote() || every < 0 {
		return
	}
	if s.probe != nil {
		s.probe.Stop()
	}
	root, self, due := s.root, s.self, probeDue{s.state.Epoch}
	s.probe = time.AfterFunc(max(every-s.silentFor(), 0), func() { root.Send(self, due) })
}

// silentFor returns how long ago the last sign of life came; 0 if none is known, because then the connection has only begun. An HTTP
// status or page that answers a ping without being a message of the session is a sign too: otherwise the server would be
// pinged again at once.
func (s *Server) silentFor() time.Duration {
	if s.sess == nil {
		return 0
	}
	// The session notes the time of every message, of every kind.
	heard := s.sess.LastMessageAt()
	if heard.IsZero() {
		return 0
	}
	if s.lastProbeAnswer.After(heard) {
		heard = s.lastProbeAnswer
	}
	return max(time.Since(heard), 0)
}

// probeDue pings if the server has been silent for long enough, and arms the timer again if it has not.
func (s *Server) probeDue(epoch uint64) {
	if s.silentFor() < s.cfg.Timing.ProbeEvery {
		if s.isCurrent(epoch) && s.state.Conn == lifecycle.Open && !s.probing {
			s.armProbe()
		}
		return
	}
	s.probeNow(epoch)
}

// probeNow pings, unless a ping runs already.
func (s *Server) probeNow(epoch uint64) {
	if !s.isCurrent(epoch) || s.state.Conn != lifecycle.Open || s.probing {
		return
	}
	s.probing = true
	s.att.startProbe(s.cfg.Timing.ProbeTimeout)
}

// handleProbeDone judges the outcome of a ping: a broken connection is lost at once, silence counts a strike, refused credentials
// lead to needs-auth, and any other answer shows life.
func (s *Server) handleProbeDone(m probeDone) {
	if !s.isCurrent(m.epoch) || s.state.Conn != lifecycle.Open {
		return
	}
	s.probing = false
	// The cases go from the certain to the doubtful: broken, silent, refused, alive.
	class := messages.ClassOf(m.err)
	switch class {
	// The connection, or the server's session, is certainly gone.
	case messages.ClassNetwork, messages.ClassSession:
		s.applyEvent(lifecycle.Lost{Epoch: m.epoch, Cause: s.causeOf(m.err, s.sess.Conn())})
		return
	case messages.ClassTimeout:
		// Another message came meanwhile: the server lives, and is slow.
		if s.sess.LastMessageAt().After(m.sentAt) {
			s.strikes = 0
			break
		}
		// Silence after several pings is taken for death; each ping has its own timeout.
		s.strikes++
		if s.strikes >= s.cfg.Timing.ProbeStrikes {
			s.applyEvent(lifecycle.Lost{Epoch: m.epoch, Cause: lifecycle.Cause{
				Class: messages.ClassTimeout, Text: "it gave no sign of life to repeated pings",
			}})
			return
		}
		s.probeNow(m.epoch)
		return
	case messages.ClassUnauthorized:
		s.applyEvent(lifecycle.Unauthorized{Epoch: m.epoch, Cause: s.causeOf(m.err, s.sess.Conn())})
		if s.state.Conn != lifecycle.Open {
			return
		}
		// A disabled server keeps its connection, which is still probed.
		fallthrough
	default:
		s.strikes, s.lastProbeAnswer = 0, time.Now()
	}
	s.armProbe()
}

// handleLinkFailed handles an error of a call that may concern the whole connection. A local child needs no ping: its exit shows.
func (s *Server) handleLinkFailed(m linkFailed) {
	if !s.isCurrent(m.epoch) || s.state.Conn != lifecycle.Open {
		return
	}
	if messages.ClassOf(m.err) == messages.ClassUnauthorized {
		s.applyEvent(lifecycle.Unauthorized{Epoch: m.epoch, Cause: s.causeOf(m.err, s.sess.Conn())})
		return
	}
	if s.isRemote() {
		s.probeNow(m.epoch)
	}
}

// armIdle arms the timer after which a lazy server may be disconnected.
func (s *Server) armIdle(epoch uint64, after time.Duration) {
	if s.idle != nil {
		s.idle.Stop()
	}
	root, self := s.root, s.self
	s.idle = time.AfterFunc(after, func() { root.Send(self, idleDue{epoch}) })
}

// idleDue disconnects a lazy server if no call began within the idle timeout, none runs and none waits, and no caller watches a resource of
// it, who would hear of no update any more. Otherwise it looks again when the timeout could have passed.
func (s *Server) idleDue(epoch uint64) {
	if !s.isCurrent(epoch) || s.state.Phase != messages.Connected {
		return
	}
	// lastUse is written by callers without a message, so it is only read when the timer rings.
	limit := time.Duration(s.spec.IdleTimeout)
	quiet := time.Since(processStart) - time.Duration(s.lastUse.Load())
	// Waiting calls count too: they need the connection.
	if s.att.inFlight() > 0 || s.cfg.Cell.callQueue.waitingCalls() > 0 || s.cfg.Cell.Subscriptions.Any() || quiet < limit {
		s.armIdle(epoch, max(limit-quiet, limit/10))
		return
	}
	s.applyEvent(lifecycle.IdleOut{Epoch: epoch})
	if s.state.Phase == messages.Connected { // a list runs or is due: try again later
		s.armIdle(epoch, limit)
	}
}

// stopTimers stops the timers that belong to the connection, at its end and at that of the actor.
func (s *Server) stopTimers() {
	for _, t := range []*time.Timer{s.relist, s.idle, s.probe} {
		if t != nil {
			t.Stop()
		}
	}
}
