package sent

import "time"

// A pause is the last time in which a server read nothing, because it was stopped or deaf. What it had under way may go out meanwhile, and
// what the client sends may wait at the client: over HTTP a notification waits until the one before it is taken, or has had its time.
type pause struct {
	// causes counts what keeps the server from reading now.
	causes   int
	from, to time.Duration
}

// noteReading notes that one cause begins, or with resume ends.
func (p *pause) noteReading(at time.Duration, resume bool) {
	switch {
	case !resume:
		if p.causes++; p.causes == 1 {
			p.from = at
		}
	case p.causes > 0:
		if p.causes--; p.causes == 0 {
			p.to = at
		}
	}
}

// earliestSending returns when a message that comes now may have been sent: what comes with the end of a pause may be as old as the pause,
// and so may what comes in it over HTTP.
func (p *pause) earliestSending(now, crossTime time.Duration, overHTTP bool) time.Duration {
	if p.causes > 0 && overHTTP || p.causes == 0 && p.to > 0 && now <= p.to+crossTime {
		return p.from
	}
	return now
}
