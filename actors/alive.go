package actors

import (
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
)

// A child's exit says that it is dead. A remote server's silence says nothing, so it is asked, and only then: any message of
// the server counts as life, whatever it is, and a server that talks is never asked. Any answer is life, also an error; a
// slow answer to a call is never a reason.
//
// So a peer that vanished without closing its connection is noticed within ProbeEvery + ProbeStrikes × ProbeTimeout of its
// last message: 45 s with the defaults. (A ProbeEvery shorter than ProbeTimeout counts as that: a message may have come while
// a question was under way, which is waited for.) The first question comes after ProbeEvery of silence, the next ones as soon as the
// one before has had no answer; anything heard in between begins anew. A question comes at once when a call could not reach
// the server, or when two calls in a row timed out and nothing was heard since they began.

func (s *Server) isRemote() bool {
	switch s.spec.Kind() {
	case messages.HTTP, messages.SSE, messages.WebSocket, messages.ClaudeAIProxy:
		return true
	case messages.Stdio, messages.SDK:
	}
	return false
}

// armProbe looks again when the server may have been silent for ProbeEvery.
func (s *Server) armProbe() {
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

// silentFor is how long ago the last sign of life came; 0 if none is known, because then the connection has only begun. What
// refuses a question over HTTP without being a message of the session, a status or a page, is a sign as well: a server that
// does so is not asked again at once.
func (s *Server) silentFor() time.Duration {
	if s.sess == nil {
		return 0
	}
	heard := s.sess.LastMessageAt()
	if heard.IsZero() {
		return 0
	}
	if s.lastProbeAnswer.After(heard) {
		heard = s.lastProbeAnswer
	}
	return max(time.Since(heard), 0)
}

// probeDue asks if the server has been silent for long enough.
func (s *Server) probeDue(epoch uint64) {
	if s.silentFor() < s.cfg.Timing.ProbeEvery {
		if s.isCurrent(epoch) && s.state.Conn == lifecycle.Open && !s.probing {
			s.armProbe()
		}
		return
	}
	s.probeNow(epoch)
}

// probeNow asks, unless a question is on its way.
func (s *Server) probeNow(epoch uint64) {
	if !s.isCurrent(epoch) || s.state.Conn != lifecycle.Open || s.probing {
		return
	}
	s.probing = true
	s.att.startProbe(s.cfg.Timing.ProbeTimeout)
}

func (s *Server) handleProbeDone(m probeDone) {
	if !s.isCurrent(m.epoch) || s.state.Conn != lifecycle.Open {
		return
	}
	s.probing = false
	class := messages.ClassOf(m.err)
	switch class {
	case messages.ClassNetwork, messages.ClassSession:
		s.applyEvent(lifecycle.Lost{Epoch: m.epoch, Cause: s.causeOf(m.err, s.sess.Conn())})
		return
	case messages.ClassTimeout:
		if s.sess.LastMessageAt().After(m.sentAt) { // it said something else: it lives, and is slow
			s.strikes = 0
			break
		}
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
		fallthrough // it is disabled and keeps its connection, on which it goes on being asked
	default:
		s.strikes, s.lastProbeAnswer = 0, time.Now()
	}
	s.armProbe()
}

// handleLinkFailed handles what a call learned about the connection.
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

func (s *Server) armIdle(epoch uint64, after time.Duration) {
	if s.idle != nil {
		s.idle.Stop()
	}
	root, self := s.root, s.self
	s.idle = time.AfterFunc(after, func() { root.Send(self, idleDue{epoch}) })
}

// idleDue lets a lazy server go if no call began within the idle timeout and none is in flight.
func (s *Server) idleDue(epoch uint64) {
	if !s.isCurrent(epoch) || s.state.Phase != messages.Connected {
		return
	}
	limit := time.Duration(s.spec.IdleTimeout)
	quiet := time.Since(processStart) - time.Duration(s.lastUse.Load())
	if s.att.inFlight() > 0 || s.cfg.Cell.callQueue.waitingCalls() > 0 || quiet < limit {
		s.armIdle(epoch, max(limit-quiet, limit/10))
		return
	}
	s.applyEvent(lifecycle.IdleOut{Epoch: epoch})
	if s.state.Phase == messages.Connected { // a list is in flight: another time
		s.armIdle(epoch, limit)
	}
}

func (s *Server) stopTimers() {
	for _, t := range []*time.Timer{s.relist, s.idle, s.probe} {
		if t != nil {
			t.Stop()
		}
	}
}
