package generate

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// drawCommands draws the owner's commands, near to faults and to his own other commands. A command that takes a server away is
// mostly followed by the one that brings it back.
func (d *scenarioBuilder) drawCommands() {
	// Most owners do little in a day; two in five are busy.
	n := d.IntN(4)
	if d.drawChance(0.4) {
		n = d.IntN(12)
	}
	for range n {
		server := d.pickServer(nil)
		at := d.drawTime(server)
		// Words that stand twice are drawn twice as often.
		switch pick(d, "toggle", "toggle", "disconnect", "reconnect", "reconnect", "replace", "respec", "respec", "refresh",
			"configure", "wake", "enable", "add") {
		case "toggle":
			d.addCommand("disable", server, at)
			d.addUndo("enable", server, at)
		case "disconnect":
			d.addCommand("disconnect", server, at)
			d.addUndo("enable", server, at)
		case "replace":
			d.addCommand("remove", server, at)
			d.addUndo("add", server, at)
		case "reconnect":
			d.addCommand("reconnect", server, at)
		case "respec":
			d.addCommand("respec", server, at)
		case "refresh":
			d.addCommand("refresh", server, at)
		case "enable":
			d.addCommand("enable", server, at)
		case "add":
			d.addCommand("add", server, at)
		case "configure":
			d.addCommand("configure", "", at)
			if d.drawChance(0.4) {
				d.drawServerSets(at)
			}
		case "wake":
			d.addCommand("wake", "", at)
		}
		d.repeatCommand()
	}
}

// repeatCommand repeats the last command on one day in twenty: on the same server, or on others, each a little later.
func (d *scenarioBuilder) repeatCommand() {
	if !d.drawChance(0.05) {
		return
	}
	c := &d.s.Commands[len(d.s.Commands)-1]
	c.Every, c.Times = messages.Duration(d.roundTime(d.drawBetween(time.Second, time.Minute))), 2+d.IntN(3)
	if len(c.On) > 0 && c.Do != "configure" && d.drawChance(0.5) {
		c.On, c.Spread = scenario.Selector{fmt.Sprintf("any:%d", 1+d.IntN(d.serverCount()))}, messages.Duration(pick(d, nearDistances...))
	}
}

// drawServerSets adds commands that set one set of servers after the other. Each lacks some servers, and the last mostly holds
// all of them.
func (d *scenarioBuilder) drawServerSets(at time.Duration) {
	all := d.serverCount()
	addSet := func(some string) {
		at = min(at+pick(d, nearDistances...), d.length)
		d.s.Commands = append(d.s.Commands, scenario.Command{Do: "configure", On: scenario.Selector{some}, At: messages.Duration(at)})
		d.addMoment(at, "")
	}
	for range 1 + d.IntN(4) {
		addSet(fmt.Sprintf("any:%d", 1+d.IntN(all)))
	}
	if d.drawChance(0.8) {
		addSet("*")
	}
}

// addUndo adds the command that brings a server back: soon (60 %), at any later time (25 %), or never.
func (d *scenarioBuilder) addUndo(do, server string, at time.Duration) {
	switch p := d.Float64(); {
	case p < 0.6:
		d.addCommand(do, server, at+pick(d, nearDistances...))
	case p < 0.85:
		d.addCommand(do, server, at+d.drawBetween(0, d.length-at))
	}
}

const (
	// callsPerDay is roughly the number of calls of a day. More calls find little more, and cost most of the time of a run.
	callsPerDay = 150
	// settleTime estimates the wait for the healed world, during which the steady calls go on.
	settleTime = 6 * time.Minute
)

// drawLoad draws the calls: a few all day on all servers, and bursts near to faults and commands.
func (d *scenarioBuilder) drawLoad() {
	// WriteTool stands twice because only a tool with an effect can show that it ran twice.
	tools := []string{scenario.ReadTool, scenario.PutTool, scenario.WriteTool, scenario.WriteTool}
	if d.drawChance(0.9) {
		d.s.Load = append(d.s.Load, d.withCallOptions(scenario.Load{Tool: pick(d, tools...), Rate: d.steadyRate()}))
	}
	for range d.IntN(3) {
		server := d.pickServer(nil)
		from := d.drawTime(server)
		// A burst mostly begins a second before the moment, so that calls are in flight at it.
		if d.drawChance(0.7) {
			from = max(from-time.Second, 0)
		}
		last := d.drawBetween(2*time.Second, 15*time.Second)
		d.s.Load = append(d.s.Load, d.withCallOptions(scenario.Load{
			On: scenario.Selector{server}, Tool: pick(d, tools...), Rate: float64(1 + d.IntN(10)), From: messages.Duration(from),
			For: messages.Duration(d.roundTime(last)),
		}))
	}
}

// spreadSteadyCalls divides the calls of all day among the servers of the whole day: many of them were drawn after the calls.
func (d *scenarioBuilder) spreadSteadyCalls() {
	for i := range d.s.Load {
		if l := &d.s.Load[i]; len(l.On) == 0 && l.For == 0 && l.Read == "" {
			l.Rate = d.steadyRate()
		}
	}
}

// steadyRate is the rate that spreads 40 % of a day's calls over all servers and the whole day. Three digits keep the scenario's
// text short.
func (d *scenarioBuilder) steadyRate() float64 {
	rate := 0.4 * callsPerDay / (d.length + settleTime).Seconds() / float64(d.serverCount())
	return max(float64(int(rate*1000))/1000, 0.001)
}

// drawReads draws reads of servers that offer resources and prompts.
func (d *scenarioBuilder) drawReads() {
	// Reads come in bursts of up to 15 s, because each costs as much of a run's time as a call.
	for range d.IntN(4) {
		server := d.pickServer(func(g scenario.Group) bool { return g.Offers })
		if server == "" {
			return
		}
		d.s.Load = append(d.s.Load, scenario.Load{
			On: scenario.Selector{server}, Read: pick(d, scenario.Reads...), Rate: float64(1 + d.IntN(3)),
			From: messages.Duration(d.drawTime(server)), For: messages.Duration(d.roundTime(d.drawBetween(2*time.Second, 15*time.Second))),
		})
	}
}

// withCallOptions adds the options of a caller at random: a timeout, several callers, cancellation, a task, the size of a
// result.
func (d *scenarioBuilder) withCallOptions(l scenario.Load) scenario.Load {
	if d.drawChance(0.25) {
		l.Timeout = messages.Duration(pick(d, 100*time.Millisecond, time.Second, 5*time.Second))
	}
	if d.drawChance(0.3) {
		l.Callers = 2 + d.IntN(4)
	}
	if d.drawChance(0.2) {
		l.Cancel = pick(d, 0.2, 0.5, 1)
	}
	l.Task = d.drawChance(0.3) && d.pickServer(func(g scenario.Group) bool { return g.Tasks == scenario.TasksOptional }) != ""
	if d.drawChance(0.15) {
		l.Size = pick(d, 100, 5000, 60000)
	}
	return l
}
