package generate

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// commands draws what the owner does meanwhile: near to what breaks, and to his own other commands.
func (d *day) commands() {
	n := d.IntN(4)
	if d.likely(0.4) {
		n = d.IntN(12)
	}
	for range n {
		server := d.one(nil)
		at := d.when(server)
		switch pick(d, "toggle", "toggle", "disconnect", "reconnect", "reconnect", "replace", "respec", "respec", "refresh",
			"configure", "wake", "enable", "add") {
		case "toggle":
			d.order("disable", server, at)
			d.undo("enable", server, at)
		case "disconnect":
			d.order("disconnect", server, at)
			d.undo("enable", server, at)
		case "replace":
			d.order("remove", server, at)
			d.undo("add", server, at)
		case "reconnect":
			d.order("reconnect", server, at)
		case "respec":
			d.order("respec", server, at)
		case "refresh":
			d.order("refresh", server, at)
		case "enable":
			d.order("enable", server, at)
		case "add":
			d.order("add", server, at)
		case "configure":
			d.order("configure", "", at)
			if d.likely(0.4) {
				d.sets(at)
			}
		case "wake":
			d.order("wake", "", at)
		}
		d.again()
	}
}

// again repeats the last command, now and then: on the same server, or on others, each a little later.
func (d *day) again() {
	if !d.likely(0.05) {
		return
	}
	c := &d.s.Commands[len(d.s.Commands)-1]
	c.Every, c.Times = messages.Duration(d.round(d.between(time.Second, time.Minute))), 2+d.IntN(3)
	if len(c.On) > 0 && c.Do != "configure" && d.likely(0.5) {
		c.On, c.Spread = scenario.Selector{fmt.Sprintf("any:%d", 1+d.IntN(d.total()))}, messages.Duration(pick(d, near...))
	}
}

// sets says one set of servers after the other, each of which lacks some, and mostly the whole one in the end.
func (d *day) sets(at time.Duration) {
	all := d.total()
	say := func(some string) {
		at = min(at+pick(d, near...), d.length)
		d.s.Commands = append(d.s.Commands, scenario.Command{Do: "configure", On: scenario.Selector{some}, At: messages.Duration(at)})
		d.remember(at, "")
	}
	for range 1 + d.IntN(4) {
		say(fmt.Sprintf("any:%d", 1+d.IntN(all)))
	}
	if d.likely(0.8) {
		say("*")
	}
}

// undo follows a command soon, late, or never.
func (d *day) undo(do, server string, at time.Duration) {
	switch p := d.Float64(); {
	case p < 0.6:
		d.order(do, server, at+pick(d, near...))
	case p < 0.85:
		d.order(do, server, at+d.between(0, d.length-at))
	}
}

const (
	// calls is how many calls a day has, about. More find little more, and cost most of the time of a run.
	calls = 150
	// settling is what the wait for the healed world is taken for when calls are counted.
	settling = 3 * time.Minute
)

// load draws the calls: a few all day on all servers, and bursts about what happens.
func (d *day) load() {
	tools := []string{scenario.ReadTool, scenario.PutTool, scenario.WriteTool, scenario.WriteTool}
	if d.likely(0.9) {
		rate := 0.4 * calls / (d.length + settling).Seconds() / float64(d.total())
		d.s.Load = append(d.s.Load, d.calls(scenario.Load{Tool: pick(d, tools...), Rate: max(float64(int(rate*1000))/1000, 0.001)}))
	}
	for range d.IntN(3) {
		server := d.one(nil)
		from := d.when(server)
		if d.likely(0.7) {
			from = max(from-time.Second, 0)
		}
		last := d.between(2*time.Second, 15*time.Second)
		d.s.Load = append(d.s.Load, d.calls(scenario.Load{
			On: scenario.Selector{server}, Tool: pick(d, tools...), Rate: float64(1 + d.IntN(10)), From: messages.Duration(from),
			For: messages.Duration(d.round(last)),
		}))
	}
}

// reads draws what is read of the servers that have more than tools.
func (d *day) reads() {
	for range d.IntN(4) {
		server := d.one(func(g scenario.Group) bool { return g.Offers })
		if server == "" {
			return
		}
		d.s.Load = append(d.s.Load, scenario.Load{
			On: scenario.Selector{server}, Read: pick(d, scenario.Reads...), Rate: float64(1 + d.IntN(3)),
			From: messages.Duration(d.when(server)), For: messages.Duration(d.round(d.between(2*time.Second, 15*time.Second))),
		})
	}
}

// calls adds what a caller may ask for.
func (d *day) calls(l scenario.Load) scenario.Load {
	if d.likely(0.25) {
		l.Timeout = messages.Duration(pick(d, 100*time.Millisecond, time.Second, 5*time.Second))
	}
	if d.likely(0.3) {
		l.Callers = 2 + d.IntN(4)
	}
	if d.likely(0.2) {
		l.Cancel = pick(d, 0.2, 0.5, 1)
	}
	l.Task = d.likely(0.3) && d.one(func(g scenario.Group) bool { return g.Tasks == scenario.TasksOptional }) != ""
	if d.likely(0.15) {
		l.Size = pick(d, 100, 5000, 60000)
	}
	return l
}
