package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// A recipe is a sequence of faults and commands that makes one occasion likely. add returns false if the day has no server or
// no time for it.
type recipe struct {
	occasion string // the word in Scenario.Sometimes; empty where no check counts the occasion
	// chance is the share of days with this recipe.
	chance float64
	add    func(*scenarioBuilder) bool
}

// recipes are drawn in this order; the order is part of what a seed means.
var recipes = []recipe{
	{"park", 0.12, (*scenarioBuilder).parkServer},
	{"probe-success", 0.2, (*scenarioBuilder).probeSuccess},
	{"disabled-while-connecting", 0.2, (*scenarioBuilder).disabledWhileConnecting},
	{"retry-after", 0.12, (*scenarioBuilder).retryAfter},
	{"withdrawn", 0.12, (*scenarioBuilder).withdrawTools},
	{"replayed", 0.15, (*scenarioBuilder).replayCalls},
	{"stable-reset", 0.12, (*scenarioBuilder).stableReset},
	{"", 0.1, (*scenarioBuilder).delayEnd},
	{"", 0.1, (*scenarioBuilder).denyCredentials},
	{"", 0.1, (*scenarioBuilder).crowdServer},
	{"", 0.08, (*scenarioBuilder).prolongCalls},
	{"", 0.1, (*scenarioBuilder).callLazily},
	{"", 0.08, (*scenarioBuilder).runTasks},
	{"", 0.06, (*scenarioBuilder).listInPages},
	{"", 0.06, (*scenarioBuilder).refuseCalls},
}

// drawRecipes adds each recipe with its probability and names its occasion, so that the report tells whether it came about.
// With Options.Only only the named faults may happen.
func (d *scenarioBuilder) drawRecipes() {
	if len(d.o.Only) > 0 {
		return
	}
	for _, r := range recipes {
		if d.drawChance(r.chance) && r.add(d) && r.occasion != "" {
			d.s.Sometimes = append(d.s.Sometimes, r.occasion)
		}
	}
}

// faultKind returns the description of a fault by a name that is known to exist.
func faultKind(name string) faults.Kind {
	k, _ := faults.Lookup(name)
	return k
}

// connectsByItself reports whether the manager connects a server from the start, without a command or a call.
func connectsByItself(g scenario.Group) bool { return !g.Disabled && g.Connect != messages.Lazy }

// addFault adds a fault of a recipe to one server; last is 0 for an instant one.
func (d *scenarioBuilder) addFault(name, server string, at, last time.Duration, with map[string]string) {
	d.s.Faults = append(d.s.Faults, scenario.Fault{
		Fault: name, With: with, On: scenario.Selector{server}, At: messages.Duration(at), For: messages.Duration(last),
	})
	d.addMoment(at, server)
	if last > 0 {
		d.addMoment(at+last, server)
	}
}

// addCommand adds a command for a server, or for the manager with an empty name.
func (d *scenarioBuilder) addCommand(do, server string, at time.Duration) {
	c := scenario.Command{Do: do, At: messages.Duration(min(at, d.length))}
	if server != "" {
		c.On = scenario.Selector{server}
	}
	d.s.Commands = append(d.s.Commands, c)
	d.addMoment(at, server)
}

// addFailing lets a server die at each start for longer after the time at which it is parked. until is the end of the fault.
// The connection must still have time to become stable before the end of the day.
func (d *scenarioBuilder) addFailing(longer time.Duration) (server string, until time.Duration, ok bool) {
	name := pick(d, "crash-loop", "exit-after-list", "refuse", "wrong-content-type", "crash-loop", "server-error")
	server = d.serverForFault(faultKind(name), connectsByItself)
	if server == "" {
		return "", 0, false
	}
	k := d.groupOf(server).Kind
	at := d.roundTime(d.drawBetween(500*time.Millisecond, 20*time.Second))
	last := d.timeToPark(k) + longer + 20*time.Second // each attempt takes some time as well
	if at+last > d.length-d.stablePeriod() {
		return "", 0, false
	}
	d.addFault(name, server, at, last, nil)
	if !faultKind(name).EndsConnections { // the fault meets only attempts, so a crash ends the present connection
		d.addFault("crash", server, at+time.Millisecond, 0, nil)
	}
	return server, at + last, true
}

// parkServer keeps a server failing until it is parked.
func (d *scenarioBuilder) parkServer() bool {
	_, _, ok := d.addFailing(d.drawLength(0))
	return ok
}

// probeSuccess heals a parked server early enough for a probe to find it healthy: two probe intervals before the end of the
// day.
func (d *scenarioBuilder) probeSuccess() bool {
	_, until, ok := d.addFailing(0)
	return ok && until+2*d.probeInterval() < d.length
}

// disabledWhileConnecting disables, disconnects or removes a server while its start is slow.
func (d *scenarioBuilder) disabledWhileConnecting() bool {
	k := faultKind(pick(d, "slow-start", "hang-start"))
	server := d.serverForFault(k, connectsByItself)
	if server == "" || d.length < 40*time.Second {
		return false
	}
	at := d.drawBetween(10*time.Second, 20*time.Second)
	with := map[string]string(nil)
	if k.Name == "slow-start" {
		with = map[string]string{"by": "20s"}
	}
	d.addFault(k.Name, server, at, 20*time.Second, with)
	// A reconnect starts its attempt at once, and the attempt lasts as long as the slow start.
	d.addCommand("reconnect", server, at+time.Millisecond)
	during := at + d.drawBetween(100*time.Millisecond, 2*time.Second)
	undo := "enable"
	switch do := pick(d, "disable", "disable", "disconnect", "remove"); do {
	case "remove":
		d.addCommand(do, server, during)
		undo = "add"
	default:
		d.addCommand(do, server, during)
	}
	if d.drawChance(0.8) {
		d.addCommand(undo, server, during+pick(d, nearDistances...))
	}
	return true
}

// retryAfter lets a server answer new connections with a Retry-After, and ends the present one.
func (d *scenarioBuilder) retryAfter() bool {
	server := d.serverForFault(faultKind("throttle"), connectsByItself)
	if server == "" || d.length < time.Minute {
		return false
	}
	at := d.drawBetween(time.Second, d.length/2)
	d.addFault("throttle", server, at, d.drawBetween(5*time.Second, 20*time.Second), map[string]string{
		"after": pick(d, "1s", "4s", "10s", "30s"), "status": pick(d, "429", "503"),
	})
	d.addFault("reset", server, at+time.Millisecond, 0, nil)
	return true
}

// withdrawTools keeps a server away for 40 s, longer than its tools stay in the catalog.
func (d *scenarioBuilder) withdrawTools() bool {
	server := d.serverForFault(faultKind("crash"), connectsByItself)
	if server == "" || d.length < time.Minute {
		return false
	}
	d.addFault("crash", server, d.drawBetween(5*time.Second, d.length/2), 0, map[string]string{"down": "40s"})
	return true
}

// replayCalls lets a trusted server die during calls that the manager may send again, and during others that it must not.
func (d *scenarioBuilder) replayCalls() bool {
	server := d.serverForFault(faultKind("die-mid-call"), connectsByItself)
	if server == "" || d.length < time.Minute {
		return false
	}
	g := d.groupOf(server)
	g.Trusted, g.CallTimeout = true, messages.Duration(30*time.Second)
	at := d.drawBetween(5*time.Second, d.length/2)
	d.addFault("die-mid-call", server, at, 5*time.Second, map[string]string{"chance": "0.5"})
	d.s.Manager.CallWait = messages.Duration(5 * time.Second)
	d.s.Load = append(d.s.Load, scenario.Load{
		On: scenario.Selector{server}, Tool: pick(d, scenario.ReadTool, scenario.PutTool), Rate: 4, From: messages.Duration(at),
		For: messages.Duration(20 * time.Second),
	}, scenario.Load{ // calls with an effect must not be sent again
		On: scenario.Selector{server}, Tool: scenario.WriteTool, Rate: 2, From: messages.Duration(at),
		For: messages.Duration(10 * time.Second),
	})
	return true
}

// stableReset crashes a server twice and lets it live for the stable period afterwards.
func (d *scenarioBuilder) stableReset() bool {
	server := d.serverForFault(faultKind("crash"), connectsByItself)
	if server == "" || d.length < 2*d.stablePeriod()+time.Minute {
		return false
	}
	for at := time.Second; at < 3*time.Second; at += time.Second {
		d.addFault("crash", server, at, 0, nil)
	}
	return true
}

// delayEnd takes away a server that ignores the request to end, so that time passes between the command and the end of the
// process.
func (d *scenarioBuilder) delayEnd() bool {
	server := d.serverForFault(faultKind("ignore-term"), connectsByItself)
	if server == "" || d.length < time.Minute {
		return false
	}
	at := d.drawBetween(5*time.Second, d.length/2)
	d.addFault("ignore-term", server, at, 20*time.Second, nil)
	do, undo := "remove", "add"
	if d.drawChance(0.4) {
		do, undo = pick(d, "disable", "disconnect"), "enable"
	}
	during := at + d.drawBetween(100*time.Millisecond, 5*time.Second)
	d.addCommand(do, server, during)
	d.addCommand(undo, server, during+d.drawBetween(time.Millisecond, 10*time.Second))
	return true
}

// denyCredentials lets a server refuse its credentials for a while; a reconnect after that finds them valid. The manager does
// not retry by itself here.
func (d *scenarioBuilder) denyCredentials() bool {
	server := d.serverForFault(faultKind("unauthorized"), connectsByItself)
	if server == "" || d.length < time.Minute {
		return false
	}
	at := d.drawBetween(5*time.Second, d.length/2)
	last := d.drawBetween(5*time.Second, 25*time.Second)
	d.addFault("unauthorized", server, at, last, nil)
	d.addFault("reset", server, at+time.Millisecond, 0, nil)
	d.addCommand("reconnect", server, at+last+d.drawBetween(time.Second, 5*time.Second))
	return true
}
