package budget

import "time"

const (
	// Burst is the unasked work that a server may cause at once without being paused: some ten thousand notifications.
	Burst = 50 * time.Millisecond
	// drainShare is the part of a processor that pays for unasked work: one in so many.
	drainShare = 16
	// maxWorking bounds the number of requests under way that count: with all of them half of a processor pays.
	maxWorking = 7
	// longestPause bounds one pause, so that a server which has ended its flood is soon read again.
	longestPause = 100 * time.Millisecond
)

// LeakyBucket is a debt of unasked work, which time pays off. It is a value; the zero value is without debt. A Share guards its
// own.
type LeakyBucket struct {
	debt     time.Duration // work that was not paid for at debtTime
	debtTime time.Time
	working  int
}

// Unknown is for callers of Charge that do not know the number of requests under way: it stays as before.
const Unknown = -1

// Charge returns the bucket after more unasked work, of a server that is working on so many requests.
func (p LeakyBucket) Charge(work time.Duration, working int, now time.Time) LeakyBucket {
	p.debt = p.debtAt(now) + work
	p.debtTime = now
	if working != Unknown {
		p.working = min(working, maxWorking)
	}
	return p
}

// Pause returns the time until the debt is Burst again, at most longestPause.
func (p LeakyBucket) Pause(now time.Time) time.Duration {
	excess := p.debtAt(now) - Burst
	if excess <= 0 {
		return 0
	}
	return min(excess*drainShare/time.Duration(1+p.working), longestPause)
}

// debtAt returns the debt at a time. A clock that went back pays nothing.
func (p LeakyBucket) debtAt(now time.Time) time.Duration {
	paid := max(now.Sub(p.debtTime), 0) / drainShare * time.Duration(1+p.working)
	return max(p.debt-paid, 0)
}
