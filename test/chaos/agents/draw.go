package agents

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// action is what an agent does in one operation.
type action string

const (
	listTools     action = "list"
	callTool      action = "call"
	giveUpCall    action = "give-up"
	readOffers    action = "offers"
	watchResource action = "watch"
	unwatch       action = "unwatch"
	setLevel      action = "level"
	leave         action = "leave"
	abandon       action = "abandon"
	misbehave     action = "misbehave"
)

// weights are the shares of the actions, in hundredths.
var weights = []struct {
	do     action
	share  int
	offers bool // it asks servers for more than tools, which no event shows
}{
	{callTool, 40, false}, {listTools, 18, false}, {giveUpCall, 9, false}, {readOffers, 9, true}, {watchResource, 6, true}, {unwatch, 3, true},
	{setLevel, 3, false}, {leave, 3, false}, {abandon, 3, false}, {misbehave, 6, false},
}

// operation is one drawn action. number is free for the action to choose by.
type operation struct {
	at           time.Duration
	do           action
	server, tool string
	number       int
	// asTask is set for a call that is to become a task, where its server has tasks.
	asTask bool
}

// drawOperations returns what an agent does, in order of time. It is a pure function: an agent's draws depend on the seed and on its
// name, and on no other agent.
func drawOperations(p scenario.Plan, a scenario.PlannedAgent) (all []operation) {
	rnd := scenario.Rand(p.Seed, "agent "+a.Name)
	// A lazy server is dialled and kept by what is read from it, and the history would not show why.
	onlyTools := slices.ContainsFunc(p.Servers, func(s scenario.Server) bool { return s.Connect == messages.Lazy }) ||
		slices.ContainsFunc(p.Commands, func(c scenario.PlannedCommand) bool { return c.With["connect"] != "" })
	writesLogs := slices.ContainsFunc(p.Servers, func(s scenario.Server) bool { return s.Logs && s.Name == a.View })
	for at := a.Begin; ; {
		at += time.Duration(rnd.ExpFloat64() / a.Rate * float64(time.Second))
		if at >= a.End {
			break
		}
		op := operation{at: at, do: drawAction(rnd, onlyTools), number: rnd.IntN(1 << 20)}
		op.server, op.tool = a.View, []string{scenario.ReadTool, scenario.PutTool, scenario.WriteTool, scenario.WriteTool}[rnd.IntN(4)]
		if server := p.Servers[rnd.IntN(len(p.Servers))].Name; a.View == "" {
			op.server = server
		}
		if named := namedServers(a); len(named) > 0 && rnd.IntN(2) == 0 {
			// What a view hides is asked for, too.
			op.server = named[rnd.IntN(len(named))]
			if rnd.IntN(3) == 0 && !onlyTools {
				op.do = []action{readOffers, readOffers, watchResource}[rnd.IntN(3)]
			}
		}
		op.asTask = !isStarted(p, op.server) && (op.do == callTool || op.do == giveUpCall) && op.number>>9%2 == 0
		if writesLogs && rnd.IntN(6) == 0 {
			op.do = setLevel
		}
		if a.View == "" && strings.ContainsAny(op.server, "_.") && op.do != listTools {
			op.do = listTools // only a list tells how the tools of such a server are called
		}
		all = append(all, op)
	}
	all = append(all, drawTaskCrowd(p, a)...)
	if !onlyTools {
		all = append(all, drawWatcher(p, a)...)
	}
	// What is shown in the end is judged, too.
	if last := p.End - lastList; last > p.Heal {
		all = append(all, operation{at: last, do: listTools})
	}
	return all
}

// taskCrowdSize is the number of the calls of an agent that become tasks all at once, twice: together they are more than one principal may have.
const taskCrowdSize = 40

// drawTaskCrowd lets every tenth agent of one server with tasks have a crowd of them, and another one when those of the first have ended.
func drawTaskCrowd(p scenario.Plan, a scenario.PlannedAgent) (all []operation) {
	rnd := scenario.Rand(p.Seed, "tasks at once of "+a.Name)
	isTasked := slices.ContainsFunc(p.Servers, func(s scenario.Server) bool { return s.Name == a.View && s.Tasks != "" })
	if !isTasked || isStarted(p, a.View) || a.Era == messages.EraModern || rnd.IntN(10) > 0 {
		return nil
	}
	at := a.Begin + time.Second + time.Duration(rnd.Int64N(int64(2*time.Second)))
	for n := range 2 * taskCrowdSize {
		op := operation{at: at + time.Duration(n%taskCrowdSize)*time.Millisecond, do: callTool, server: a.View, tool: scenario.WriteTool, number: rnd.IntN(1<<20) | 1, asTask: true}
		if n >= taskCrowdSize {
			op.at += 5 * time.Second
		}
		if op.at < a.End {
			all = append(all, op)
		}
	}
	return all
}

// watcherPause is the mean time between two things that an agent which watches does. With every second read the resource changes.
const watcherPause = 1500 * time.Millisecond

// drawWatcher lets every second agent, and each that a view holds, watch one resource for all of its time, and read it again and again. Now and then it ends the watch and begins another one a moment later, while its server may still be asked to end the first.
func drawWatcher(p scenario.Plan, a scenario.PlannedAgent) (all []operation) {
	rnd := scenario.Rand(p.Seed, "watcher "+a.Name)
	server, number := drawOffering(p, a, rnd)
	if server == "" || rnd.IntN(2) == 0 && len(a.Within) == 0 {
		return nil
	}
	add := func(at time.Duration, do action, number int) {
		if at < a.End {
			all = append(all, operation{at: at, do: do, server: server, tool: scenario.ReadTool, number: number})
		}
	}
	at := a.Begin + 200*time.Millisecond + time.Duration(rnd.Int64N(int64(time.Second)))
	add(at, watchResource, number)
	for at < a.End {
		at += watcherPause/2 + time.Duration(rnd.Int64N(int64(watcherPause)))
		switch rnd.IntN(8) {
		case 0:
			add(at, unwatch, number)
			add(at+time.Duration(1+rnd.IntN(60))*time.Millisecond, watchResource, number)
		case 1:
			if a.Era != messages.EraModern {
				add(at, watchResource, number) // its server may be away, which ends nothing
			}
		default:
			add(at, readOffers, number)
		}
	}
	add(a.End-time.Millisecond, unwatch, number)
	return all
}

// drawOffering returns a server that an agent sees, or that its views name, and that has resources, and the number by which an operation reads or
// watches the one of that server; no server if there is none.
func drawOffering(p scenario.Plan, a scenario.PlannedAgent, rnd *rand.Rand) (server string, number int) {
	var offering, named []string
	for _, s := range p.Servers {
		if s.Offers && s.Lacks == "" && (a.View == "" || a.View == s.Name) {
			offering = append(offering, s.Name)
		}
	}
	for _, name := range namedServers(a) {
		if slices.Contains(offering, name) {
			named = append(named, name)
		}
	}
	switch {
	case len(offering) == 0:
		return "", 0
	case len(named) > 0:
		server = named[rnd.IntN(len(named))]
	default:
		server = offering[rnd.IntN(len(offering))]
	}
	// The remainder by the number of servers chooses the server, that by five the kind of the read.
	for number = 2; offering[number%len(offering)] != server; number += 5 {
		if number > 5*len(offering) {
			return "", 0
		}
	}
	return server, number
}

// isStarted reports whether a server may be started by what is asked of it.
func isStarted(p scenario.Plan, server string) bool {
	return slices.ContainsFunc(p.Servers, func(s scenario.Server) bool { return s.Name == server && s.Connect == messages.Lazy }) ||
		slices.ContainsFunc(p.Commands, func(c scenario.PlannedCommand) bool { return c.With["connect"] != "" })
}

// namedServers returns the servers that the views of an agent name.
func namedServers(a scenario.PlannedAgent) (names []string) {
	if a.View != "" {
		return nil
	}
	for _, v := range a.Within {
		names = append(names, v.Servers...)
		for _, rule := range slices.Concat(v.Deny, v.Only) {
			server, _, _ := strings.Cut(rule, ":")
			names = append(names, server)
		}
	}
	return names
}

// lastList is how long before the end every agent lists once more.
const lastList = 3 * time.Second

// drawAction draws what to do.
func drawAction(rnd *rand.Rand, onlyTools bool) action {
	n := rnd.IntN(100)
	for _, w := range weights {
		if n -= w.share; n < 0 {
			if onlyTools && w.offers {
				return listTools
			}
			return w.do
		}
	}
	return callTool
}
