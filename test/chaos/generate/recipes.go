package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/faults"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// recipe is a sequence that makes one occasion likely. It returns false if there is no server or no time for it.
type recipe struct {
	occasion string // empty: one that no scenario can ask for
	chance   float64
	add      func(*day) bool
}

var recipes = []recipe{
	{"park", 0.12, (*day).park},
	{"probe-success", 0.2, (*day).probeSuccess},
	{"disabled-while-connecting", 0.2, (*day).disabledWhileConnecting},
	{"retry-after", 0.12, (*day).retryAfter},
	{"withdrawn", 0.12, (*day).withdrawn},
	{"replayed", 0.15, (*day).replayed},
	{"stable-reset", 0.12, (*day).stableReset},
	{"", 0.1, (*day).wedged},
	{"", 0.1, (*day).locked},
	{"", 0.1, (*day).crowded},
	{"", 0.08, (*day).prolonged},
	{"", 0.1, (*day).idle},
	{"", 0.08, (*day).tasked},
	{"", 0.06, (*day).paged},
	{"", 0.06, (*day).blamed},
}

func (d *day) recipes() {
	if len(d.o.Only) > 0 {
		return
	}
	for _, r := range recipes {
		if d.likely(r.chance) && r.add(d) && r.occasion != "" {
			d.s.Sometimes = append(d.s.Sometimes, r.occasion)
		}
	}
}

func kindOf(name string) faults.Kind {
	k, _ := faults.Named(name)
	return k
}

// connecting are servers that the manager connects by itself from the start on.
func connecting(g scenario.Group) bool { return !g.Disabled && g.Connect != messages.Lazy }

// break adds a fault of a recipe.
func (d *day) add(name, server string, at, last time.Duration, with map[string]string) {
	d.s.Faults = append(d.s.Faults, scenario.Fault{
		Fault: name, With: with, On: scenario.Selector{server}, At: messages.Duration(at), For: messages.Duration(last),
	})
	d.remember(at, server)
	if last > 0 {
		d.remember(at+last, server)
	}
}

func (d *day) order(do, server string, at time.Duration) {
	c := scenario.Command{Do: do, At: messages.Duration(min(at, d.length))}
	if server != "" {
		c.On = scenario.Selector{server}
	}
	d.s.Commands = append(d.s.Commands, c)
	d.remember(at, server)
}

// failing lets a server die at each start, for so long after it would be parked.
func (d *day) failing(longer time.Duration) (server string, until time.Duration, ok bool) {
	name := pick(d, "crash-loop", "exit-after-list", "refuse", "wrong-content-type", "crash-loop", "server-error")
	server = d.needed(kindOf(name), connecting)
	if server == "" {
		return "", 0, false
	}
	k := d.group(server).Kind
	at := d.round(d.between(500*time.Millisecond, 20*time.Second))
	last := d.parked(k) + longer + 20*time.Second // each attempt takes some time as well
	if at+last > d.length-d.stable() {
		return "", 0, false
	}
	d.add(name, server, at, last, nil)
	if !kindOf(name).Ends { // it meets only attempts: end what stands
		d.add("crash", server, at+time.Millisecond, 0, nil)
	}
	return server, at + last, true
}

func (d *day) park() bool {
	_, _, ok := d.failing(d.lasting(0))
	return ok
}

// probeSuccess heals a parked server early enough for a probe to find it well.
func (d *day) probeSuccess() bool {
	_, until, ok := d.failing(0)
	return ok && until+2*d.probe() < d.length
}

// disabledWhileConnecting disables, disconnects or removes a server while it is slow to start.
func (d *day) disabledWhileConnecting() bool {
	k := kindOf(pick(d, "slow-start", "hang-start"))
	server := d.needed(k, connecting)
	if server == "" || d.length < 40*time.Second {
		return false
	}
	at := d.between(10*time.Second, 20*time.Second)
	with := map[string]string(nil)
	if k.Name == "slow-start" {
		with = map[string]string{"by": "20s"}
	}
	d.add(k.Name, server, at, 20*time.Second, with)
	// An attempt that a person asks for begins at once, and lasts as long as the start does.
	d.order("reconnect", server, at+time.Millisecond)
	during := at + d.between(100*time.Millisecond, 2*time.Second)
	undo := "enable"
	switch do := pick(d, "disable", "disable", "disconnect", "remove"); do {
	case "remove":
		d.order(do, server, during)
		undo = "add"
	default:
		d.order(do, server, during)
	}
	if d.likely(0.8) {
		d.order(undo, server, during+pick(d, near...))
	}
	return true
}

// retryAfter has a server ask to wait while it is connected anew.
func (d *day) retryAfter() bool {
	server := d.needed(kindOf("throttle"), connecting)
	if server == "" || d.length < time.Minute {
		return false
	}
	at := d.between(time.Second, d.length/2)
	d.add("throttle", server, at, d.between(5*time.Second, 20*time.Second), map[string]string{
		"after": pick(d, "1s", "4s", "10s", "30s"), "status": pick(d, "429", "503"),
	})
	d.add("reset", server, at+time.Millisecond, 0, nil)
	return true
}

// withdrawn lets a server stay away for longer than its tools stay in the catalog.
func (d *day) withdrawn() bool {
	server := d.needed(kindOf("crash"), connecting)
	if server == "" || d.length < time.Minute {
		return false
	}
	d.add("crash", server, d.between(5*time.Second, d.length/2), 0, map[string]string{"down": "40s"})
	return true
}

// replayed lets a trusted server die with calls that may be sent again.
func (d *day) replayed() bool {
	server := d.needed(kindOf("die-mid-call"), connecting)
	if server == "" || d.length < time.Minute {
		return false
	}
	g := d.group(server)
	g.Trusted, g.CallTimeout = true, messages.Duration(30*time.Second)
	at := d.between(5*time.Second, d.length/2)
	d.add("die-mid-call", server, at, 5*time.Second, map[string]string{"chance": "0.5"})
	d.s.Manager.CallWait = messages.Duration(5 * time.Second)
	d.s.Load = append(d.s.Load, scenario.Load{
		On: scenario.Selector{server}, Tool: pick(d, scenario.ReadTool, scenario.PutTool), Rate: 4, From: messages.Duration(at),
		For: messages.Duration(20 * time.Second),
	}, scenario.Load{ // and what must not be
		On: scenario.Selector{server}, Tool: scenario.WriteTool, Rate: 2, From: messages.Duration(at),
		For: messages.Duration(10 * time.Second),
	})
	return true
}

// stableReset lets a server fail and hold then.
func (d *day) stableReset() bool {
	server := d.needed(kindOf("crash"), connecting)
	if server == "" || d.length < 2*d.stable()+time.Minute {
		return false
	}
	for at := time.Second; at < 3*time.Second; at += time.Second {
		d.add("crash", server, at, 0, nil)
	}
	return true
}

// wedged takes a server away that does not end when it is asked to, so that there is a time between the wish and the end.
func (d *day) wedged() bool {
	server := d.needed(kindOf("ignore-term"), connecting)
	if server == "" || d.length < time.Minute {
		return false
	}
	at := d.between(5*time.Second, d.length/2)
	d.add("ignore-term", server, at, 20*time.Second, nil)
	do, undo := "remove", "add"
	if d.likely(0.4) {
		do, undo = pick(d, "disable", "disconnect"), "enable"
	}
	during := at + d.between(100*time.Millisecond, 5*time.Second)
	d.order(do, server, during)
	d.order(undo, server, during+d.between(time.Millisecond, 10*time.Second))
	return true
}

// locked has a server refuse the credentials for a while, until somebody asks for it again.
func (d *day) locked() bool {
	server := d.needed(kindOf("unauthorized"), connecting)
	if server == "" || d.length < time.Minute {
		return false
	}
	at := d.between(5*time.Second, d.length/2)
	last := d.between(5*time.Second, 25*time.Second)
	d.add("unauthorized", server, at, last, nil)
	d.add("reset", server, at+time.Millisecond, 0, nil)
	d.order("reconnect", server, at+last+d.between(time.Second, 5*time.Second))
	return true
}
