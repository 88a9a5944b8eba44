package generate

import (
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// adjustShare is the share of days on which the owner changes settings that no connection depends on.
const adjustShare = 0.3

// drawAdjustments lets the owner of a server change its bounds, its filter or how it is connected, while calls show which
// settings are in force. Mostly no other command or fault meets that server. It has a source of chance of its own, as
// drawAdditions has.
func (d *scenarioBuilder) drawAdjustments(seed uint64) {
	if len(d.o.Only) > 0 {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate adjusted")
	// A day shorter than 90 s leaves no room for an adjustment, its calls and the time to judge them.
	if !d.drawChance(adjustShare) || d.length < 90*time.Second {
		return
	}
	g, name := d.undisturbedServer()
	if g == nil {
		return
	}
	at := d.roundTime(d.drawBetween(5*time.Second, d.length/2))
	for range 1 + d.IntN(3) {
		switch d.IntN(5) {
		case 0:
			at = d.adjustTimeout(name, at)
		case 1:
			at = d.adjustFilter(name, at)
		case 2, 3:
			at = d.adjustLimits(g, name, at)
		case 4:
			at = d.adjustLazily(name, at)
		}
		// The next adjustment and its calls need some 40 s.
		if at > d.length-40*time.Second {
			return
		}
	}
}

// undisturbedServer adds a server that no fault and no command meets, where the options allow one more, and otherwise picks any
// server that is there all day.
func (d *scenarioBuilder) undisturbedServer() (*scenario.Group, string) {
	if d.serverCount() >= d.o.Servers || d.drawChance(0.25) {
		return d.enabledServer(nil)
	}
	g := d.drawServer(d.drawKind(), "")
	// These settings would end its connection or keep its calls from being judged.
	g.Disabled, g.Tasks, g.Offers, g.ConnectTimeout = false, "", false, 0
	d.s.Servers = append(d.s.Servers, g)
	return &d.s.Servers[len(d.s.Servers)-1], g.Name
}

// addAdjust adds the command, with settings such as "callTimeout=2s".
func (d *scenarioBuilder) addAdjust(name string, at time.Duration, words ...string) {
	d.addCommand("adjust", name, at)
	with := map[string]string{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		with[key] = value
	}
	d.s.Commands[len(d.s.Commands)-1].With = with
}

// adjustTimeout changes how long a call may take, before and while some calls get no answer. It returns when the last of these
// calls has ended under the longest timeout.
func (d *scenarioBuilder) adjustTimeout(name string, at time.Duration) time.Duration {
	last := d.roundTime(d.drawBetween(8*time.Second, 16*time.Second))
	d.addFault("hang-call", name, at, last+4*time.Second, nil)
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), 0.7, at, last)
	d.addAdjust(name, at+pick(d, 0, 2*time.Second, last/2), "callTimeout="+pick(d, "700ms", "2s", "6s", "20s"))
	return at + last + 25*time.Second
}

// adjustFilter denies tools that callers call meanwhile, and mostly allows them again.
func (d *scenarioBuilder) adjustFilter(name string, at time.Duration) time.Duration {
	last := d.roundTime(d.drawBetween(4*time.Second, 10*time.Second))
	tool := pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool)
	d.addBurst(name, tool, 3, at, last)
	d.addAdjust(name, at+last/3, "deny="+pick(d, tool, tool, "read,put", "read,put,write"))
	if d.drawChance(0.7) {
		d.addAdjust(name, at+2*last/3, "deny="+pick(d, "", "", scenario.PutTool))
	}
	// A change of the connection in between must not lose the filter.
	if d.drawChance(0.3) {
		d.addCommand(pick(d, "reconnect", "refresh", "disable"), name, at+last/2)
		d.addCommand("enable", name, at+last)
	}
	return at + last + time.Second
}

// adjustLimits changes how many calls may be in flight while callers make more. The latency keeps calls in flight long enough
// to reach the bound.
func (d *scenarioBuilder) adjustLimits(g *scenario.Group, name string, at time.Duration) time.Duration {
	g.Latency = messages.Duration(pick(d, 300*time.Millisecond, time.Second))
	g.ConnectTimeout = 0
	first := 1 + d.IntN(2)
	d.addAdjust(name, at, "maxInFlight="+strconv.Itoa(first), "maxQueued="+pick(d, "3", "8", "30"))
	last := d.roundTime(d.drawBetween(4*time.Second, 8*time.Second))
	l := d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), float64(2+d.IntN(6)), at+time.Second, last)
	l.Callers = 1 + d.IntN(4)
	if d.drawChance(0.3) {
		l.Timeout = messages.Duration(3 * time.Second)
	}
	// The bound grows by one, grows by more, falls to one or is taken away.
	then := pick(d, first+1, first+4, 1, 0)
	d.addAdjust(name, at+time.Second+last/2, "maxInFlight="+strconv.Itoa(then), "maxQueued="+pick(d, "2", "30"))
	if d.drawChance(0.4) {
		d.addAdjust(name, at+time.Second+3*last/4, "maxInFlight="+pick(d, "0", "5"))
	}
	return at + last + 5*time.Second
}

// adjustLazily makes a server lazy with a short idle timeout, and mostly eager again: while it rests, or while it is idle and
// does not rest yet.
func (d *scenarioBuilder) adjustLazily(name string, at time.Duration) time.Duration {
	idle := pick(d, time.Second, 3*time.Second, 8*time.Second)
	d.addAdjust(name, at, "connect=lazy", "idleTimeout="+idle.String())
	d.addBurst(name, pick(d, scenario.ReadTool, scenario.WriteTool), 0.4, at, 10*time.Second)
	if d.drawChance(0.3) {
		d.addAdjust(name, at+10*time.Second+idle/2, "idleTimeout="+pick(d, "500ms", "0s", "12s"))
	}
	if d.drawChance(0.8) {
		d.addAdjust(name, at+10*time.Second+pick(d, 0, idle/2, 2*idle, 15*time.Second), "connect=eager")
	}
	return at + 30*time.Second
}
