package session

import "time"

// requestTimer is the one timer by which a session looks after the clocks of all its requests. It rings when the first of them may
// be due, and earlier if that request has been answered in the meantime: then it is set for the next. So a call that is
// answered in time touches no timer. Session.mu guards it.
type requestTimer struct {
	timer   *time.Timer
	firesAt monotime // when it rings
}

// armRequestTimer sets the alarm for a moment, unless it rings before. The caller holds mu.
func (s *Session) armRequestTimer(at monotime) {
	if at == 0 || s.pending == nil || s.requestTimer.firesAt != 0 && at >= s.requestTimer.firesAt {
		return
	}
	s.requestTimer.firesAt = at
	if s.requestTimer.timer == nil {
		s.requestTimer.timer = time.AfterFunc(at.timeLeft(), s.expireRequests)
	} else {
		s.requestTimer.timer.Reset(at.timeLeft())
	}
}

// expireRequests ends the requests whose callers have no patience any more.
func (s *Session) expireRequests() {
	defer s.recoverPanic()
	var late []*pendingRequest
	var next monotime
	s.mu.Lock()
	now := monotimeNow()
	s.requestTimer.firesAt = 0
	for id, f := range s.pending {
		switch {
		case !f.watched:
		case f.timeout.checkExpired(now):
			delete(s.pending, id)
			late = append(late, f)
		default:
			if at := f.timeout.nextDue(); next == 0 || at < next && at != 0 {
				next = at
			}
		}
	}
	s.armRequestTimer(next)
	s.mu.Unlock()
	for _, f := range late {
		f.answer <- answer{kind: answerTimedOut}
	}
}

// resumeTimeout ends a pause of a caller's patience, whose clock is looked after again.
func (s *Session) resumeTimeout(p *CallTimeout) {
	p.resumeIdle()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armRequestTimer(p.nextDue())
}
