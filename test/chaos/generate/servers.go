package generate

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// drawServers draws the servers of the day: one, a few, or as many as the options allow.
func (d *scenarioBuilder) drawServers() {
	n := 1 + d.IntN(min(4, d.o.Servers))
	if d.drawChance(0.4) {
		n = 1 + d.IntN(d.o.Servers)
	}
	for remaining := n; remaining > 0; {
		g := d.drawServer(d.drawKind(), "")
		if remaining > 2 && d.drawChance(0.2) { // a group of equal servers
			g.Count = 2 + d.IntN(remaining-1)
		}
		d.s.Servers = append(d.s.Servers, g)
		remaining -= max(g.Count, 1)
	}
	d.giveSimilarNames()
}

// serverCount returns the number of servers, those of groups included.
func (d *scenarioBuilder) serverCount() (n int) {
	for _, g := range d.s.Servers {
		n += max(g.Count, 1)
	}
	return n
}

// drawKind draws the transport of a server. Most users run processes, so most servers are processes.
func (d *scenarioBuilder) drawKind() messages.TransportKind {
	return pick(d,
		messages.Stdio, messages.Stdio, messages.Stdio, messages.Stdio, messages.HTTP, messages.HTTP, messages.HTTP,
		messages.SSE, messages.WebSocket, messages.SDK)
}

// drawServer draws one server. An empty era is drawn as well: modern on 30 % of the servers, except over SSE, which exists only
// in the legacy era.
func (d *scenarioBuilder) drawServer(kind messages.TransportKind, era messages.Era) scenario.Group {
	g := scenario.Group{Name: fmt.Sprintf("s%d", len(d.s.Servers)+1), Kind: kind, Era: era}
	if era == "" && kind != messages.SSE && d.drawChance(0.3) {
		g.Era = messages.EraModern
	}
	ms := func(t time.Duration) messages.Duration { return messages.Duration(t) }
	if d.drawChance(0.2) {
		g.Tools = 4 + d.IntN(30)
		g.Pages = 1 + d.IntN(4)
	}
	if d.drawChance(0.4) {
		g.Start = ms(d.roundTime(d.drawBetween(time.Millisecond, 2*time.Second)))
	}
	if d.drawChance(0.3) {
		g.Latency = ms(d.roundTime(d.drawBetween(time.Millisecond, 500*time.Millisecond)))
	}
	if d.drawChance(0.6) {
		g.ConnectTimeout = ms(pick(d, 3*time.Second, 5*time.Second, 10*time.Second))
	}
	if d.drawChance(0.5) {
		g.CallTimeout = ms(pick(d, time.Second, 3*time.Second, 10*time.Second))
	}
	// Only a trusted server's calls may be sent again.
	g.Trusted = d.drawChance(0.4)
	g.Disabled = d.drawChance(0.04)
	if d.drawChance(0.12) {
		d.makeLazy(&g)
	}
	if d.drawChance(0.12) {
		d.makeBounded(&g)
	}
	if d.drawChance(0.12) && kind != messages.SSE {
		g.Tasks = pick(d, scenario.TasksOptional, scenario.TasksRequired)
	}
	g.Offers = d.drawChance(0.15)
	if g.CallTimeout > 0 && d.drawChance(0.3) {
		g.MaxCallTimeout = g.CallTimeout * messages.Duration(1+d.IntN(4))
	}
	return g
}

// fitTimeouts raises a MaxCallTimeout below the CallTimeout, or below the default of one minute: the two are drawn apart, and a
// plan with such a pair is refused. It raises a ConnectTimeout that a healthy server could miss, because I11 requires that every
// attempt to connect to a healthy server succeeds.
func (d *scenarioBuilder) fitTimeouts() {
	for i := range d.s.Servers {
		g := &d.s.Servers[i]
		if g.MaxCallTimeout > 0 {
			g.MaxCallTimeout = max(g.MaxCallTimeout, cmp.Or(g.CallTimeout, messages.Duration(time.Minute)))
		}
		if g.ConnectTimeout > 0 {
			g.ConnectTimeout = max(g.ConnectTimeout, messages.Duration(d.roundTime(slowestConnect(g)+time.Second)))
		}
	}
}

// slowestConnect returns how long a healthy server may need until its list is complete. Its start, and its latency for the
// handshake and for each page, each take up to one and a half times the value that the scenario says.
func slowestConnect(g *scenario.Group) time.Duration {
	answers := 1 + max(g.Pages, 1)
	return (time.Duration(g.Start) + time.Duration(answers)*time.Duration(g.Latency)) * 3 / 2
}

// makeLazy makes a server lazy: its first call connects it, and mostly a short idle timeout lets it rest again.
func (d *scenarioBuilder) makeLazy(g *scenario.Group) {
	g.Connect = messages.Lazy
	if d.drawChance(0.8) {
		g.IdleTimeout = messages.Duration(pick(d, 500*time.Millisecond, 5*time.Second, 30*time.Second))
	}
}

// makeBounded bounds the calls in flight at a server, and mostly the calls that may wait to a few.
func (d *scenarioBuilder) makeBounded(g *scenario.Group) {
	g.MaxInFlight = 1 + d.IntN(3)
	if d.drawChance(0.8) {
		g.MaxQueued = 1 + d.IntN(6)
	}
}

// giveSimilarNames gives two servers names that become equal when the characters are removed that a model's provider refuses,
// or names of which one seems to go on in a tool of the other. The catalog must keep their tools apart.
func (d *scenarioBuilder) giveSimilarNames() {
	var single []*scenario.Group
	for i := range d.s.Servers {
		if g := &d.s.Servers[i]; g.Count < 2 {
			single = append(single, g)
		}
	}
	if len(single) < 2 || !d.drawChance(0.12) {
		return
	}
	a, b := single[0], single[1]
	a.Name = pick(d, "sx", "s.x", "s-x")
	b.Name = pick(d, "s_x", "sx__read", "s__x")
}

// pickServer returns the name of a server that satisfies may, or of any for nil; empty if there is none.
func (d *scenarioBuilder) pickServer(may func(scenario.Group) bool) string {
	var names []string
	for _, g := range d.s.Servers {
		if may != nil && !may(g) {
			continue
		}
		if g.Count < 2 {
			names = append(names, g.Name)
		} else {
			names = append(names, fmt.Sprintf("%s-%03d", g.Name, d.IntN(g.Count)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[d.IntN(len(names))]
}

// serverForFault returns the name of a server that a fault applies to. If there is none, it adds one as long as the options
// allow it.
func (d *scenarioBuilder) serverForFault(k faults.Kind, also func(scenario.Group) bool) string {
	may := func(g scenario.Group) bool { return k.Applies(g.Kind, g.Era) && (also == nil || also(g)) }
	if name := d.pickServer(may); name != "" || d.serverCount() >= d.o.Servers {
		return name
	}
	// A drawn server may fail the caller's condition, so the draw is repeated.
	// After 20 tries the fault is left out: an unlikely condition must not keep a seed from giving a day.
	for range 20 {
		g := d.drawServer(pick(d, k.Servers...), pick(d, k.Eras...))
		if g.Kind != messages.SSE || g.Era != messages.EraModern {
			// The legacy era is the default, which a scenario leaves out.
			if g.Era == messages.EraLegacy {
				g.Era = ""
			}
			if may(g) {
				d.s.Servers = append(d.s.Servers, g)
				return g.Name
			}
		}
	}
	return ""
}

// groupOf returns the group of a server by the server's name, nil for an unknown one. The pointer is valid until a server is
// added.
func (d *scenarioBuilder) groupOf(server string) *scenario.Group {
	for i := range d.s.Servers {
		g := &d.s.Servers[i]
		if g.Name == server {
			return g
		}
		for n := range g.Count {
			if fmt.Sprintf("%s-%03d", g.Name, n) == server {
				return g
			}
		}
	}
	return nil
}
