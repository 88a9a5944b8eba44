package scenario

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// settleTime returns the time that the healed world may take to be well again, as invariant I11 bounds it:
//
//	the longest wait before the next attempt + connect timeout × ⌈servers ÷ gate⌉ + 5 s
//
// The longest wait is the cap of the intervals, 60 s; the probe interval and its jitter, if a server may have been
// parked; or the Retry-After that a server demanded, if that is longer. A network connection that died silently is
// noticed only by the probes of a connected server, so that their time is added where there are network servers and
// faults that last.
func (p *Plan) settleTime() time.Duration {
	wait := p.Policy.Cap
	if p.mayPark() {
		wait = max(wait, p.Policy.Probe+time.Duration(float64(p.Policy.Probe)*p.Policy.ProbeJitter))
	}
	if demanded := p.longestRetryAfter(); demanded > wait {
		wait = demanded + min(time.Duration(float64(demanded)*p.Policy.RetryAfterJitter), p.Policy.Cap)
	}
	timeout := time.Duration(0)
	network := false
	for _, s := range p.Servers {
		timeout = max(timeout, s.ConnectTimeout)
		network = network || s.Kind != messages.Stdio && s.Kind != messages.SDK
	}
	turns := (len(p.Servers) + p.Limits.Processes - 1) / p.Limits.Processes
	bound := wait + timeout*time.Duration(turns) + 5*time.Second
	if network && p.hasLastingFault() {
		bound += p.ProbeEvery + time.Duration(p.ProbeStrikes)*p.ProbeTimeout
	}
	return bound
}

// mayPark reports whether a server may fail often enough in a row to be parked. A fault that lasts may fail every
// attempt; an instant one only ends the present connection.
func (p *Plan) mayPark() bool {
	ends := map[string]int{}
	for _, f := range p.Faults {
		if f.End > f.Begin {
			return true
		}
		if ends[f.Server]++; ends[f.Server] >= min(p.Policy.StdioPark, p.Policy.NetworkPark) {
			return true
		}
	}
	return false
}

// hasLastingFault reports whether the plan has a fault that is no instant.
func (p *Plan) hasLastingFault() bool {
	for _, f := range p.Faults {
		if f.End > f.Begin {
			return true
		}
	}
	return false
}

// longestRetryAfter returns the longest Retry-After among the faults of the plan.
func (p *Plan) longestRetryAfter() (longest time.Duration) {
	for _, f := range p.Faults {
		if d, err := time.ParseDuration(f.With["after"]); err == nil && f.Fault == "throttle" {
			longest = max(longest, d)
		}
	}
	return longest
}
