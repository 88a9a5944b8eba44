package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// nearDistances are distances at which two events may meet: in one instant, within a message, a handshake, the joining of
// changes (50 ms), a first delay, a grace period, a wait.
var nearDistances = []time.Duration{
	0, 0, time.Millisecond, 3 * time.Millisecond, 20 * time.Millisecond, 49 * time.Millisecond, 51 * time.Millisecond,
	200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

// drawTime draws the time of an event of a server, or of none for the empty name. It never lies at the very end, where the
// world is healed.
func (d *scenarioBuilder) drawTime(server string) time.Duration {
	var at time.Duration
	switch p := d.Float64(); {
	case p < 0.25: // anywhere
		at = d.roundTime(d.drawBetween(0, d.length))
	case p < 0.4: // while it starts: before, in and after the handshake and the list
		start := 20 * time.Millisecond
		if g := d.groupOf(server); g != nil && g.Start > 0 {
			start = time.Duration(g.Start)
		}
		at = d.drawBetween(0, 2*start)
	case p < 0.55: // about the end of the stable period, of the first connection or of a later one
		at = d.stablePeriod() + d.drawBetween(-200*time.Millisecond, 200*time.Millisecond)
		if m, ok := d.drawMoment(server); ok && d.drawChance(0.7) {
			at += m
		}
	default: // near to another event
		m, ok := d.drawMoment(server)
		if !ok {
			m = d.roundTime(d.drawBetween(0, d.length))
		}
		at = m + pick(d, nearDistances...)
		if d.drawChance(0.2) {
			at = m - pick(d, nearDistances...)
		}
	}
	return min(max(at, 0), d.length-time.Millisecond)
}

// drawMoment picks the time of an earlier event, mostly of the same server, else of any; false if there is none.
func (d *scenarioBuilder) drawMoment(server string) (time.Duration, bool) {
	var all, own []time.Duration
	for _, m := range d.moments {
		all = append(all, m.at)
		if m.server == server {
			own = append(own, m.at)
		}
	}
	switch {
	case len(own) > 0 && d.drawChance(0.7):
		return pick(d, own...), true
	case len(all) > 0:
		return pick(d, all...), true
	}
	return 0, false
}

// addMoment remembers the time of an event for later draws.
func (d *scenarioBuilder) addMoment(at time.Duration, on string) {
	d.moments = append(d.moments, moment{at, on})
}

// drawLength draws how long a fault lasts that begins at a time: mostly seconds, at most until the end of the day.
func (d *scenarioBuilder) drawLength(at time.Duration) time.Duration {
	var t time.Duration
	switch p := d.Float64(); {
	case p < 0.3:
		t = d.drawBetween(10*time.Millisecond, 2*time.Second)
	case p < 0.8:
		t = d.drawBetween(2*time.Second, time.Minute)
	default:
		t = d.drawBetween(time.Minute, 4*time.Minute)
	}
	return max(min(d.roundTime(t), d.length-at), time.Millisecond)
}

// roundTime keeps three digits, so that scenarios are short to read; the precision matters to no fault.
func (d *scenarioBuilder) roundTime(t time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if t/unit < 1000 {
			return t.Truncate(unit)
		}
	}
}

// stablePeriod returns how long a connection must last to clear the failure count on this day.
func (d *scenarioBuilder) stablePeriod() time.Duration {
	if t := d.s.Manager.Stable; t > 0 {
		return time.Duration(t)
	}
	return restart.DefaultPolicy().Stable
}

// probeInterval returns the pause between two probes of a parked server on this day.
func (d *scenarioBuilder) probeInterval() time.Duration {
	if t := d.s.Manager.Probe; t > 0 {
		return time.Duration(t)
	}
	return restart.DefaultPolicy().Probe
}

// timeToPark returns how long a server that fails at once takes to be parked: the sum of the longest delays before each
// attempt. The attempts' own time comes on top.
func (d *scenarioBuilder) timeToPark(kind messages.TransportKind) (t time.Duration) {
	p := restart.DefaultPolicy()
	n := p.NetworkPark
	if d.s.Manager.NetworkPark > 0 {
		n = d.s.Manager.NetworkPark
	}
	if kind == messages.Stdio {
		if n = p.StdioPark; d.s.Manager.StdioPark > 0 {
			n = d.s.Manager.StdioPark
		}
	}
	if d.s.Manager.Cap > 0 {
		p.Cap = time.Duration(d.s.Manager.Cap)
	}
	for i := range n {
		t += p.Interval(kind, i+1)
	}
	return t
}
