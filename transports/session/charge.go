package session

import "time"

// The price of a message that the session did not ask for, in processor time: for itself, and for its bytes. The
// prices are rounded up, and include the work of net/http or of a pipe.
const (
	noticePrice = 2 * time.Microsecond
	logPrice    = 6 * time.Microsecond // the session queues it, decodes it and calls OnLog
	askPrice    = 8 * time.Microsecond // the session answers it
	bytePrice   = 3 * time.Nanosecond
)

// chargeUnasked charges a message of size bytes, which the session did not ask for, to the server's share: the
// transports read a server more slowly that costs too much. The number of pending requests goes with it, because a
// server that works on many may send more.
func (s *Session) chargeUnasked(price time.Duration, size int) {
	if s.cfg.Share == nil {
		return
	}
	s.mu.Lock()
	working := len(s.pending)
	s.mu.Unlock()
	s.cfg.Share.Charge(price+time.Duration(size)*bytePrice, working, time.Now())
}
