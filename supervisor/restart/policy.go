package restart

import (
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Policy computes the times of restarts. The zero value is not valid: begin with DefaultPolicy. It is a value and can be
// compared; its methods are pure and safe for concurrent use.
type Policy struct {
	// NetworkBase is the interval after the first failure of a server reached over the network or in process; 0.5 s.
	// Shorter recovers faster from a blip and hits a struggling server more often.
	NetworkBase time.Duration
	// StdioBase is the same for a child process; 1 s. A process start costs a second of CPU where a dial costs a packet.
	StdioBase time.Duration
	// Factor multiplies the interval with each consecutive failure; 2. A factor nearer to 1 means more attempts before Cap.
	Factor float64
	// Cap is the longest interval; 60 s. It bounds how long a healed server that is not parked stays away.
	Cap time.Duration
	// Floor is the shortest delay of all that are drawn from an interval; 200 ms. Full jitter alone could draw zero,
	// several times in a row.
	Floor time.Duration
	// Stable is the time that a connection must have lasted, handshake and first list done, for its end to count as no failure
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

// DefaultPolicy returns the policy of the package comment.
func DefaultPolicy() Policy {
	return Policy{
		NetworkBase: 500 * time.Millisecond, StdioBase: time.Second, Factor: 2, Cap: time.Minute,
		Floor: 200 * time.Millisecond, Stable: time.Minute, Quick: 500 * time.Millisecond, StdioPark: 6, NetworkPark: 10,
		Probe: 5 * time.Minute, ProbeJitter: 0.1, RetryAfterJitter: 0.1, WakeSpread: 5 * time.Second,
	}
}

// Validate returns an error that names every field with an impossible value, and why; nil if the policy can be used.
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

// Record has the policy's memory of one server. The zero value is a server that was never tried; a
// changed spec begins with it too, because the new one has never connected.
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

// Priority returns the class in which the server's next start is queued.
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
// was configured or requested by a person, or it was connected before and is not parked. A server that has failed ever since, and
// one that was displaced itself, wait for a place: silent servers must not displace each other for ever.
func (r Record) Displaces() bool {
	if r.Parked || r.Displaced {
		return false
	}
	return r.EverConnected || r.Attempts == 0 && r.Exhausted == 0
}

// Down describes what ended: an attempt that never connected, or a connection.
type Down struct {
	Kind  messages.TransportKind
	Class messages.Class
	// RetryAfter is the wait that the server asked for, 0 if it asked for none.
	RetryAfter time.Duration
	// Connected is the time that the connection had lasted, from the first list on; 0 if the attempt never came so far.
	Connected time.Duration
}

// Decision says what follows. At is zero if Retry is messages.RetryNever, and not before now otherwise.
type Decision struct {
	Retry messages.Retry
	At    time.Time
}

// Down decides what follows the end of an attempt or a connection, and returns the record with the end counted. rnd returns
// numbers from 0 to below 1 (rand.Float64) and is called at most once.
func (p Policy) Down(r Record, d Down, now time.Time, rnd func() float64) (Record, Decision) {
	stable := d.Connected >= p.Stable
	if stable {
		r = p.Steady(r)
	}
	mode := retryModeOf(d.Class)
	if mode != uncounted {
		// The server has had an attempt that was not displaced.
		r.Displaced = false
	}
	// Without a timer there is nothing to probe, so the server is not parked either.
	if mode == never || mode == ifEverConnected && !r.EverConnected {
		r.Parked = false
		return r, Decision{Retry: messages.RetryNever}
	}

	// A failure of this machine lengthens the delay only; the end of a stable connection counts as none.
	switch {
	case mode == uncounted:
		r.Exhausted++
	case !stable:
		r.Attempts, r.Exhausted = r.Attempts+1, 0
		r.Parked = r.Attempts >= p.parkAfter(d.Kind)
	}
	var delay time.Duration
	switch {
	// A parked server is probed at its interval; a longer Retry-After is respected.
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

// Connected records that a connection has done its handshake and its first list. The count of failures stays until
// the connection has proved stable; a parked server is no longer parked, but is again after its next failure.
func (p Policy) Connected(r Record) Record {
	r.EverConnected, r.Parked, r.Exhausted, r.Displaced = true, false, 0, false
	return r
}

// Displaced records that Gate.Displace has named the server. The owner calls it before the attempt ends with ClassExhausted, which
// is a failure that this machine caused.
func (p Policy) Displaced(r Record) Record {
	r.Displaced = true
	return r
}

// Steady resets the count of failures, for a connection that has lasted for Policy.Stable. Down does the same when the connection
// ends, so the call matters only if the count is read before.
func (p Policy) Steady(r Record) Record {
	r.Attempts, r.Exhausted, r.Parked = 0, 0, false
	return r
}

// Cleared resets the count because a person requests the server: the fast attempts begin anew. A changed spec begins with the
// zero Record instead.
func (p Policy) Cleared(r Record) Record { return p.Steady(r) }

// Woken returns when a waiting server is tried again after the network or the machine has come back: within WakeSpread from now,
// so that all servers do not start at the same moment.
func (p Policy) Woken(now time.Time, rnd func() float64) time.Time {
	return now.Add(drawDuration(rnd, 0, p.WakeSpread))
}

// Interval returns the longest delay after so many consecutive failures, the first being 1. It is the interval of
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
			// The interval is at the cap, or the factor is 1: it never grows again.
			break
		}
		d = next
	}
	return d
}

// noClock satisfies backoff, which reads a clock only to end after MaxElapsedTime.
type noClock struct{}

func (noClock) Now() time.Time { return time.Time{} }

// baseInterval returns the first interval for a kind of server.
func (p Policy) baseInterval(kind messages.TransportKind) time.Duration {
	if kind == messages.Stdio {
		return p.StdioBase
	}
	return p.NetworkBase
}

// parkAfter returns how many failures in a row park a server of a kind.
func (p Policy) parkAfter(kind messages.TransportKind) int {
	if kind == messages.Stdio {
		return p.StdioPark
	}
	return p.NetworkPark
}

// longest bounds a Retry-After: with a longer one the sum of time and duration could overflow into the past. 100 years.
const longest = 100 * 365 * 24 * time.Hour

// withJitter returns a Retry-After with jitter, which only adds: the server must not be asked before its time.
func (p Policy) withJitter(wish time.Duration, rnd func() float64) time.Duration {
	wish = min(wish, longest)
	return wish + drawDuration(rnd, 0, min(scaleDuration(wish, p.RetryAfterJitter), p.Cap))
}

// drawDuration returns an evenly distributed duration from low to below high; low if high is not above it.
func drawDuration(rnd func() float64, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + scaleDuration(high-low, rnd())
}

func scaleDuration(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}
