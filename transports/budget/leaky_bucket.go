package budget

import "time"

const (
	// Burst is how much unasked work a server may cause at once without being paused: some ten thousand notifications.
	Burst = 50 * time.Millisecond
	// drainShare is the part of a processor that pays for unasked work: one in so many.
	drainShare = 16
	// maxWorking bounds how many requests that are under way count: with all of them half of a processor pays.
	maxWorking = 7
	// longestPause bounds one pause, so that a server which has stopped its flood is heard again soon.
	longestPause = 100 * time.Millisecond
)

// LeakyBucket is a bucket of debts: unasked work fills it, and time empties it. It is a value; the zero value is empty.
type LeakyBucket struct {
	debt     time.Duration // work that nothing has paid for at the time at
	debtTime time.Time
	working  int
}

// Unknown is for who charges and does not know how many requests are under way: as many as before.
const Unknown = -1

// Charge is the pace after more unasked work, of a server that is working on so many of our requests.
func (p LeakyBucket) Charge(work time.Duration, working int, now time.Time) LeakyBucket {
	p.debt = p.debtAt(now) + work
	p.debtTime = now
	if working != Unknown {
		p.working = min(working, maxWorking)
	}
	return p
}

// Pause is how long it takes until the debt is Burst again, at most longestPause.
func (p LeakyBucket) Pause(now time.Time) time.Duration {
	excess := p.debtAt(now) - Burst
	if excess <= 0 {
		return 0
	}
	return min(excess*drainShare/time.Duration(1+p.working), longestPause)
}

// debtAt is the debt at a time. A clock that went back pays nothing.
func (p LeakyBucket) debtAt(now time.Time) time.Duration {
	paid := max(now.Sub(p.debtTime), 0) / drainShare * time.Duration(1+p.working)
	return max(p.debt-paid, 0)
}
