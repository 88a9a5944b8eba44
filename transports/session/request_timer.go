package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/session/internal/monotime"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// requestTimer expires the requests of a session whose deadlines have passed: one timer for all of them. It fires when the
// first may be due, and does nothing if that request has been answered in the meantime but set itself for the next. So a call
// that is answered in time touches no timer. Session.mu guards it.
type requestTimer struct {
	timer   *time.Timer
	firesAt monotime.Time // when the timer fires; 0 if it is not set
}

// armRequestTimer sets the timer for a time, unless it fires before that anyway; at 0 means never. The caller holds mu.
func (s *Session) armRequestTimer(at monotime.Time) {
	if at == 0 || s.pending == nil || s.requestTimer.firesAt != 0 && at >= s.requestTimer.firesAt {
		return
	}
	s.requestTimer.firesAt = at
	if s.requestTimer.timer == nil {
		s.requestTimer.timer = time.AfterFunc(at.TimeLeft(), s.expireRequests)
	} else {
		s.requestTimer.timer.Reset(at.TimeLeft())
	}
}

// expireRequests runs in the timer's goroutine. It ends the requests whose deadline has passed, and sets the timer for the
// next deadline of those that are left.
func (s *Session) expireRequests() {
	defer s.recoverPanic()
	var late []*pendingRequest
	var next monotime.Time
	s.mu.Lock()
	now := monotime.Now()
	// The timer is not set any more: armRequestTimer below must not compare with the time that has just passed.
	s.requestTimer.firesAt = 0
	for id, f := range s.pending {
		switch {
		case !f.watched:
		case f.timeout.CheckExpired(now):
			delete(s.pending, id)
			late = append(late, f)
		default:
			if at := f.timeout.NextDue(); next == 0 || at < next && at != 0 {
				next = at
			}
		}
	}
	s.armRequestTimer(next)
	s.mu.Unlock()
	slices.SortFunc(late, func(a, b *pendingRequest) int { return cmp.Compare(a.id, b.id) })
	// Each of these was removed from pending here, so its channel is empty and this cannot block.
	for _, f := range late {
		f.answer <- outcome.Answer{Kind: outcome.AnswerTimedOut}
	}
}

// resumeTimeout ends a pause of a caller's idle timeout. The timer must be armed again, because it may have fired during the
// pause and found no deadline.
func (s *Session) resumeTimeout(p *CallTimeout) {
	p.ResumeIdle()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armRequestTimer(p.NextDue())
}
