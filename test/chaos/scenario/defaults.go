package scenario

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// The defaults of a scenario that the comments of its types do not name.
const (
	simDuration  = 10 * time.Minute
	realDuration = 20 * time.Second

	defaultTools   = 3
	defaultStart   = 20 * time.Millisecond
	defaultLatency = 2 * time.Millisecond
	defaultConnect = 30 * time.Second
	defaultCall    = 60 * time.Second
	defaultGate    = 8 // restart.DefaultLimits on two processors
	defaultRate    = 1.0

	defaultWithdraw     = 5 * time.Second
	defaultProbeEvery   = 15 * time.Second
	defaultProbeTimeout = 10 * time.Second
	defaultStrikes      = 3
	defaultQuiet        = 50 * time.Millisecond
	defaultMaxWait      = time.Second
)

// durationOr returns d, or standard if d is zero.
func durationOr(d messages.Duration, standard time.Duration) time.Duration {
	return cmp.Or(time.Duration(d), standard)
}

func (g Group) toolCount() int { return cmp.Or(g.Tools, defaultTools) }

// serverIDs returns the names of the servers of a group. Their numbers have three digits, more if the group needs them,
// so that they sort in order.
func (g Group) serverIDs() []string {
	if g.Count < 2 {
		return []string{g.Name}
	}
	width := max(3, len(fmt.Sprint(g.Count-1)))
	ids := make([]string, g.Count)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%0*d", g.Name, width, i)
	}
	return ids
}

// longestConnect is the longest silence in an attempt that the manager allows by itself: opening.MaxSilence.
const longestConnect = 5 * time.Minute

// connectTimeout returns how long an attempt may take.
func (g Group) connectTimeout() time.Duration {
	if g.NoConnectTimeout {
		return longestConnect
	}
	return durationOr(g.ConnectTimeout, defaultConnect)
}

// planServers returns the servers of the group with defaults filled in.
func (g Group) planServers() []Server {
	var out []Server
	for _, id := range g.serverIDs() {
		out = append(out, Server{
			Name: id, Group: g.Name, Kind: cmp.Or(g.Kind, messages.Stdio), Era: cmp.Or(g.Era, messages.EraLegacy),
			Tools: g.toolCount(), Pages: cmp.Or(g.Pages, 1), Start: durationOr(g.Start, defaultStart), Latency: durationOr(g.Latency, defaultLatency),
			Trusted: g.Trusted, Disabled: g.Disabled, Connect: cmp.Or(g.Connect, messages.Eager),
			ConnectTimeout: g.connectTimeout(), NoConnectTimeout: g.NoConnectTimeout, CallTimeout: durationOr(g.CallTimeout, defaultCall),
			MaxCallTimeout: time.Duration(g.MaxCallTimeout), IdleTimeout: time.Duration(g.IdleTimeout),
			MaxInFlight: g.MaxInFlight, MaxQueued: g.MaxQueued, Tasks: g.Tasks, Offers: g.Offers, Lacks: g.Lacks, Headers: g.Headers, Logs: g.Logs, OneHost: g.OneHost, Web: g.Web, Renews: g.Renews, Personal: g.Personal, Pin: g.Pin,
		})
	}
	return out
}

// restartPolicy returns the restart policy that the manager gets.
func (m Manager) restartPolicy() restart.Policy {
	p := restart.DefaultPolicy()
	p.Stable, p.Probe, p.Cap = durationOr(m.Stable, p.Stable), durationOr(m.Probe, p.Probe), durationOr(m.Cap, p.Cap)
	p.StdioPark, p.NetworkPark = cmp.Or(m.StdioPark, p.StdioPark), cmp.Or(m.NetworkPark, p.NetworkPark)
	return p
}

// gateLimits returns the limits of the start gate. They do not depend on the machine, because a plan must be the same
// everywhere.
func (m Manager) gateLimits() restart.Limits {
	l := restart.DefaultLimits(1)
	l.Processes = cmp.Or(m.Gate, defaultGate)
	return l
}
