package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// These recipes are about calls and lists of servers that are mostly well.

// enabledServer returns a server that is not disabled, with the name of one of its group. If there is none and the options
// allow one more, it is added; nil if not, or if the day is shorter than 90 s.
func (d *scenarioBuilder) enabledServer(may func(scenario.Group) bool) (*scenario.Group, string) {
	name := d.serverForFault(faultKind("hang-call"), func(g scenario.Group) bool { return !g.Disabled && (may == nil || may(g)) })
	if name == "" || d.length < 90*time.Second {
		return nil, ""
	}
	return d.groupOf(name), name
}

// addBurst adds calls to one server for some time, at rate calls per second. The caller may change the returned load until the
// next one is added.
func (d *scenarioBuilder) addBurst(name, tool string, rate float64, from, last time.Duration) *scenario.Load {
	d.s.Load = append(d.s.Load, scenario.Load{
		On: scenario.Selector{name}, Tool: tool, Rate: rate, From: messages.Duration(from), For: messages.Duration(last),
	})
	d.addMoment(from, name)
	return &d.s.Load[len(d.s.Load)-1]
}

// crowdServer lets several callers make more calls to a server than it may have in flight, so that calls queue, take turns and
// are refused.
func (d *scenarioBuilder) crowdServer() bool {
	g, name := d.enabledServer(nil)
	if g == nil {
		return false
	}
	d.makeBounded(g)
	g.Latency = messages.Duration(pick(d, 200*time.Millisecond, time.Second))
	g.ConnectTimeout = 0 // the default: with such a latency a list of several pages takes more than 3 s
	at := d.drawBetween(5*time.Second, d.length/2)
	for range 1 + d.IntN(2) {
		l := d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), float64(3+d.IntN(8)), at, d.roundTime(d.drawBetween(3*time.Second, 10*time.Second)))
		l.Callers = 2 + d.IntN(4)
		if d.drawChance(0.3) {
			l.Timeout = messages.Duration(pick(d, 500*time.Millisecond, 2*time.Second))
		}
		if d.drawChance(0.4) {
			l.Cancel = pick(d, 0.2, 0.5)
		}
	}
	if d.drawChance(0.4) { // calls wait in the queue when the connection ends
		d.addCommand(pick(d, "reconnect", "disable", "respec", "disconnect"), name, at+d.drawBetween(time.Second, 4*time.Second))
	} else if d.drawChance(0.5) && faultKind("crash").Applies(g.Kind, g.Era) {
		d.addFault("crash", name, at+d.drawBetween(time.Second, 4*time.Second), 0, nil)
	}
	return true
}

// prolongCalls lets a server send progress, which extends a call's timeout, for longer than MaxCallTimeout allows.
func (d *scenarioBuilder) prolongCalls() bool {
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Tasks == "" })
	if g == nil {
		return false
	}
	g.CallTimeout = messages.Duration(3 * time.Second)
	g.MaxCallTimeout = messages.Duration(pick(d, 3*time.Second, 10*time.Second, 20*time.Second))
	at := d.drawBetween(5*time.Second, d.length/3)
	d.addFault("endless-progress", name, at, time.Duration(g.MaxCallTimeout)+15*time.Second, map[string]string{
		"every": pick(d, "500ms", "1s", "2s"),
	})
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), 0.5, at, 8*time.Second)
	return true
}

// callLazily lets calls come to a lazy server about when its idle timeout ends.
func (d *scenarioBuilder) callLazily() bool {
	g, name := d.enabledServer(nil)
	if g == nil {
		return false
	}
	d.makeLazy(g)
	rest := time.Duration(max(g.IdleTimeout, messages.Duration(500*time.Millisecond)))
	// One call per idle timeout, on the average, for twelve of them.
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), 1/rest.Seconds(), d.drawBetween(time.Second, d.length/3), min(12*rest, d.length/2))
	return true
}

// runTasks lets callers request tasks, some with a timeout shorter than the task.
func (d *scenarioBuilder) runTasks() bool {
	g, name := d.enabledServer(func(g scenario.Group) bool { return g.Kind != messages.SSE })
	if g == nil {
		return false
	}
	g.Tasks = pick(d, scenario.TasksOptional, scenario.TasksRequired)
	at := d.drawBetween(5*time.Second, d.length/2)
	l := d.addBurst(name, pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool), 1.5, at, d.roundTime(d.drawBetween(5*time.Second, 15*time.Second)))
	l.Task = d.drawChance(0.8)
	if d.drawChance(0.4) {
		l.Timeout = messages.Duration(pick(d, time.Second, 3*time.Second))
	}
	return true
}

// refuseCalls lets a server refuse calls with an HTTP status that blames the request. The manager must not take these for
// failures of the connection.
func (d *scenarioBuilder) refuseCalls() bool {
	k := faultKind("server-error")
	name := d.serverForFault(k, connectsByItself)
	if name == "" || d.length < 90*time.Second {
		return false
	}
	at := d.drawBetween(5*time.Second, d.length/2)
	d.addFault(k.Name, name, at, 10*time.Second, map[string]string{
		"status": pick(d, "400", "405", "406", "409", "413", "415"), "when": "call", "chance": pick(d, "0.5", "0.9"),
	})
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool), 1, at, 10*time.Second)
	return true
}

// listInPages has a server return the empty text as the cursor of its first page. It is a valid cursor, so the client must
// request the second page with it.
func (d *scenarioBuilder) listInPages() bool {
	g, name := d.enabledServer(nil)
	if g == nil {
		return false
	}
	g.Tools, g.Pages = 4+d.IntN(20), 2+d.IntN(3)
	at := d.drawBetween(0, d.length/2)
	d.addFault("empty-cursor", name, at, 20*time.Second, map[string]string{"what": "second"})
	d.addCommand(pick(d, "refresh", "reconnect"), name, at+d.drawBetween(0, 2*time.Second))
	return true
}
