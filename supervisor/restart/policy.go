package restart

import (
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Policy is the arithmetic of restarts. The zero value is not valid: begin with DefaultPolicy. It is a value and can be
// compared; its methods are pure and safe for concurrent use.
type Policy struct {
	// NetworkBase is the interval after the first failure of a server reached over the network or in process; 0.5 s.
	// Shorter recovers faster from a blip and hits a struggling server more often.
	NetworkBase time.Duration
	// StdioBase is the same for a child process; 1 s. A process start costs a second of CPU where a dial costs a packet.
	StdioBase time.Duration
	// Factor is what the interval grows by with each consecutive failure; 2. Nearer to 1 means more attempts before Cap.
	Factor float64
	// Cap is the longest interval; 60 s. It bounds how long a healed server that is not parked stays away.
	Cap time.Duration
	// Floor is the shortest delay of all that are drawn from an interval; 200 ms. Full jitter alone could draw zero,
	// several times in a row.
	Floor time.Duration
	// Stable is how long a connection must have lasted, handshake and first list done, for its end to count as no failure
	// and for the count to return to zero; 60 s. Shorter lets a server that dies regularly loop at Quick; longer parks
	// servers that mostly work.
	Stable time.Duration
	// Quick is the longest delay after a stable connection; 500 ms, drawn from zero. It is not zero because servers that
	// die together should not return together.
	Quick time.Duration
	// StdioPark and NetworkPark are how many consecutive failures park a server; 6 and 10. With the intervals above that
	// is after about 16 s and 93 s: a machine restarts a process at will, but waits for a network or a deployment.
	StdioPark, NetworkPark int
	// Probe is the interval between the probes of a parked server; 5 min. It is how long a healed server may go unnoticed.
	Probe time.Duration
	// ProbeJitter is the part of Probe by which a probe comes earlier or later; 0.1, from 0 to below 1.
	ProbeJitter float64
	// RetryAfterJitter is the part of Retry-After that may be added to it; 0.1, at most Cap in all. Servers that were
	// turned away together should not return in the same instant.
	RetryAfterJitter float64
	// WakeSpread is the time over which waiting servers are tried again when the network or the machine has come
	// back; 5 s.
	WakeSpread time.Duration
}

// DefaultPolicy is the policy of the package comment.
func DefaultPolicy() Policy {
	return Policy{
		NetworkBase: 500 * time.Millisecond, StdioBase: time.Second, Factor: 2, Cap: time.Minute,
		Floor: 200 * time.Millisecond, Stable: time.Minute, Quick: 500 * time.Millisecond, StdioPark: 6, NetworkPark: 10,
		Probe: 5 * time.Minute, ProbeJitter: 0.1, RetryAfterJitter: 0.1, WakeSpread: 5 * time.Second,
	}
}

// Validate names every field that cannot work, and why.
func (p Policy) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(p.NetworkBase > 0, "NetworkBase is %v and must be positive", p.NetworkBase)
	check(p.StdioBase > 0, "StdioBase is %v and must be positive", p.StdioBase)
	check(p.Factor >= 1 && p.Factor <= 100, "Factor is %v and must lie between 1 and 100", p.Factor)
	check(p.Cap >= max(p.NetworkBase, p.StdioBase), "Cap is %v and must not be below the bases, %v and %v", p.Cap,
		p.NetworkBase, p.StdioBase)
	check(p.Floor > 0 && p.Floor <= p.Cap, "Floor is %v and must lie between 0 and Cap, %v", p.Floor, p.Cap)
	check(p.Stable > 0, "Stable is %v and must be positive", p.Stable)
	check(p.Quick >= 0, "Quick is %v and must not be negative", p.Quick)
	check(p.StdioPark > 0, "StdioPark is %d and must be positive", p.StdioPark)
	check(p.NetworkPark > 0, "NetworkPark is %d and must be positive", p.NetworkPark)
	check(p.Probe > 0, "Probe is %v and must be positive", p.Probe)
	check(p.ProbeJitter >= 0 && p.ProbeJitter < 1, "ProbeJitter is %v and must lie between 0 and 1, 1 excluded",
		p.ProbeJitter)
	check(p.RetryAfterJitter >= 0 && p.RetryAfterJitter <= 1, "RetryAfterJitter is %v and must lie between 0 and 1",
		p.RetryAfterJitter)
	check(p.WakeSpread >= 0, "WakeSpread is %v and must not be negative", p.WakeSpread)
	return errors.Join(errs...)
}

// Record is what the policy remembers of one server. The zero value is a server that was never tried; it is also what a
// changed spec begins with, because the new one has never connected.
type Record struct {
	// Attempts counts consecutive failures since the last stable connection.
	Attempts int
	// Exhausted counts consecutive failures that this machine caused (ClassExhausted). They lengthen the delay and do not
	// park: the server is not to blame.
	Exhausted int
	// EverConnected is set by Connected. A missing binary is retried only then.
	EverConnected bool
	// Parked is set while only probes are made.
	Parked bool
	// Displaced is set when the last attempt gave its place to others (Policy.Displaced), until another one has ended or
	// has connected. It counts as no failure. The next attempt waits behind everything else, and is not displaced.
	Displaced bool
}

// Priority is the class in which the server asks the gate to start.
func (r Record) Priority() Priority {
	switch {
	case r.Parked, r.Displaced:
		return Probe
	case r.EverConnected:
		return Healthy
	}
	return Never
}

// Displaces reports whether a start of the server may take the place of a silent process: it has not been tried since it
// was configured or somebody asked for it, or it was connected before and is not parked. What has failed ever since, and
// what was displaced itself, waits for a place: silent servers must not displace each other for ever.
func (r Record) Displaces() bool {
	if r.Parked || r.Displaced {
		return false
	}
	return r.EverConnected || r.Attempts == 0 && r.Exhausted == 0
}

// Down is what ended: an attempt that never connected, or a connection.
type Down struct {
	Kind  messages.TransportKind
	Class messages.Class
	// RetryAfter is what the server asked for, 0 if nothing.
	RetryAfter time.Duration
	// Connected is how long the connection had lasted, from the first list on; 0 if the attempt never came so far.
	Connected time.Duration
}

// Decision is what follows. At is zero if Retry is messages.RetryNever, and not before now otherwise.
type Decision struct {
	Retry messages.Retry
	At    time.Time
}

// Down decides what follows the end of an attempt or a connection. rnd gives numbers from 0 to below 1 (rand.Float64)
// and is called once, if there is something to draw.
func (p Policy) Down(r Record, d Down, now time.Time, rnd func() float64) (Record, Decision) {
	stable := d.Connected >= p.Stable
	if stable {
		r = p.Steady(r)
	}
	mode := retryModeOf(d.Class)
	if mode != uncounted {
		r.Displaced = false // it has had an attempt of its own
	}
	if mode == never || mode == ifEverConnected && !r.EverConnected {
		r.Parked = false // nothing is probed
		return r, Decision{Retry: messages.RetryNever}
	}

	switch {
	case mode == uncounted:
		r.Exhausted++
	case !stable:
		r.Attempts, r.Exhausted = r.Attempts+1, 0
		r.Parked = r.Attempts >= p.parkAfter(d.Kind)
	}
	var delay time.Duration
	switch {
	case r.Parked:
		delay = drawDuration(rnd, scaleDuration(p.Probe, 1-p.ProbeJitter), scaleDuration(p.Probe, 1+p.ProbeJitter))
		if d.RetryAfter > delay {
			delay = p.withJitter(d.RetryAfter, rnd)
		}
	case d.RetryAfter > 0:
		delay = max(p.withJitter(d.RetryAfter, rnd), p.Floor)
	case mode == uncounted:
		delay = drawDuration(rnd, p.Floor, p.Interval(d.Kind, r.Exhausted))
	case stable:
		delay = drawDuration(rnd, 0, p.Quick)
	default:
		delay = drawDuration(rnd, p.Floor, p.Interval(d.Kind, r.Attempts))
	}
	if r.Parked {
		return r, Decision{messages.RetryParked, now.Add(delay)}
	}
	return r, Decision{messages.RetryAt, now.Add(delay)}
}

// Connected is called when a connection has done its handshake and its first list. The count of failures stays, until
// the connection has proved stable; a parked server is not parked any more, and is again with its next failure.
func (p Policy) Connected(r Record) Record {
	r.EverConnected, r.Parked, r.Exhausted, r.Displaced = true, false, 0, false
	return r
}

// Displaced is called when Gate.Displace has named the server, before its attempt ends with ClassExhausted: a failure
// that this machine caused.
func (p Policy) Displaced(r Record) Record {
	r.Displaced = true
	return r
}

// Steady is called when a connection has lasted for Policy.Stable: the count of failures returns to zero. Down does
// the same afterwards, so the call only serves those who look at the count meanwhile.
func (p Policy) Steady(r Record) Record {
	r.Attempts, r.Exhausted, r.Parked = 0, 0, false
	return r
}

// Cleared is called when a person asks for the server. The fast attempts begin anew. A changed spec begins with the
// zero Record instead.
func (p Policy) Cleared(r Record) Record { return p.Steady(r) }

// Woken is when a waiting server is tried again after the network or the machine has come back: now, or up to
// WakeSpread later.
func (p Policy) Woken(now time.Time, rnd func() float64) time.Time {
	return now.Add(drawDuration(rnd, 0, p.WakeSpread))
}

// Interval is the longest delay after so many consecutive failures, the first being 1. It is the interval of
// cenkalti/backoff, whose own jitter and clock are off, so that the result depends on the arguments only.
func (p Policy) Interval(kind messages.TransportKind, failures int) time.Duration {
	b := backoff.ExponentialBackOff{
		InitialInterval: p.baseInterval(kind), RandomizationFactor: 0, Multiplier: p.Factor, MaxInterval: p.Cap,
		MaxElapsedTime: 0, Stop: backoff.Stop, Clock: noClock{},
	}
	b.Reset()
	d := b.NextBackOff()
	for range failures - 1 {
		next := b.NextBackOff()
		if next == d {
			break // at the cap, or a factor of 1: it never grows again
		}
		d = next
	}
	return d
}

// noClock satisfies backoff, which reads a clock only to end after MaxElapsedTime.
type noClock struct{}

func (noClock) Now() time.Time { return time.Time{} }

func (p Policy) baseInterval(kind messages.TransportKind) time.Duration {
	if kind == messages.Stdio {
		return p.StdioBase
	}
	return p.NetworkBase
}

func (p Policy) parkAfter(kind messages.TransportKind) int {
	if kind == messages.Stdio {
		return p.StdioPark
	}
	return p.NetworkPark
}

// longest is where a wish ends: beyond it a sum of durations could overflow into the past. 100 years.
const longest = 100 * 365 * 24 * time.Hour

// withJitter is Retry-After with the jitter that only adds.
func (p Policy) withJitter(wish time.Duration, rnd func() float64) time.Duration {
	wish = min(wish, longest)
	return wish + drawDuration(rnd, 0, min(scaleDuration(wish, p.RetryAfterJitter), p.Cap))
}

// drawDuration is evenly distributed from low to below high, and low if the bounds are the wrong way round.
func drawDuration(rnd func() float64, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + scaleDuration(high-low, rnd())
}

func scaleDuration(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}
