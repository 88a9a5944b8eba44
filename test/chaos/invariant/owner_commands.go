package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// ownerCommand is one command of the owner, from the moment at which it was given to its answer. done is -1 while there is none.
type ownerCommand struct {
	action           string
	event, doneEvent int
	begin, end       time.Duration
	answered         bool
	failed           bool
	refused          bool // nothing was done about it
	everyServer      bool
	// impliedBySet: it is what a SetServers with another set of servers means for this one. It is answered when the set is accepted.
	impliedBySet bool
}

// ownerCommands is what the owner asked of a server, in order, with what concerns all of them (configure, wake).
func (c *checker) ownerCommands(server string) []ownerCommand {
	var out []ownerCommand
	commandIndex := map[int]int{}
	sets := map[int]bool{}
	for _, o := range c.plan.Commands {
		sets[o.ID] = o.Do == "configure" || o.BySet()
	}
	addEvent := func(i int) {
		e := c.x.Event(i)
		switch e.Kind {
		case history.Command:
			commandIndex[e.Command] = len(out)
			out = append(out, ownerCommand{action: e.Method, event: i, doneEvent: -1, begin: e.T, everyServer: e.Server == "",
				impliedBySet: sets[e.Command] && e.Method != "configure"})
		case history.Done:
			if k, ok := commandIndex[e.Command]; ok {
				out[k].doneEvent, out[k].end, out[k].answered, out[k].failed = i, e.T, true, e.Class != messages.ClassNone
				out[k].refused = e.Class == messages.ClassInvalid
			}
		default:
		}
	}
	own, all := c.x.ServerEvents(server), c.x.ServerEvents("")
	if server == "" {
		all = nil
	}
	for len(own) > 0 || len(all) > 0 {
		if len(all) == 0 || len(own) > 0 && c.x.Event(own[0]).T < c.x.Event(all[0]).T {
			addEvent(own[0])
			own = own[1:]
		} else {
			addEvent(all[0])
			all = all[1:]
		}
	}
	return out
}

// wantedState is what the owner wants of a server.
type wantedState uint8

const (
	wantUnknown wantedState = iota // a command is being carried out, or nobody can say what it did
	wantConnected
	wantDisabled
	wantRemoved
)

// wantedSince is a wish from a time on.
type wantedSince struct {
	from   time.Duration
	wanted wantedState
	event  int // the event that says so, -1 for the plan
}

// ownerIntent is what the commands so far make of a server: whether it is there, and whether it is wanted.
type ownerIntent struct{ exists, wanted bool }

func (s ownerIntent) wantedState() wantedState {
	switch {
	case !s.exists:
		return wantRemoved
	case s.wanted:
		return wantConnected
	}
	return wantDisabled
}

// afterCommand is what a command makes of it. fresh is what the spec says of a server that is added.
func (s ownerIntent) afterCommand(do string, fresh bool) ownerIntent {
	switch do {
	case "enable":
		s.wanted = s.exists
	case "disable", "disconnect":
		s.wanted = false
	case "add", "respec", "adjust":
		return ownerIntent{true, fresh}
	case "remove":
		return ownerIntent{}
	}
	return s
}

// intentsBefore is what a server was before each of the commands, by their order alone: "the commands of one sender take effect in the
// order in which they were sent".
func (c *checker) intentsBefore(server string, commands []ownerCommand) []ownerIntent {
	fresh := !c.serverSpec(server).Disabled
	out := make([]ownerIntent, len(commands)+1)
	out[0] = ownerIntent{true, fresh}
	for i, a := range commands {
		out[i+1] = out[i].afterCommand(a.action, fresh)
	}
	return out
}

// waitsUntil is until when a command may have to wait for the removals that were asked for before it: a server that is added again begins
// when the connection of the one before is gone, and what is asked of it waits as long.
func (c *checker) waitsUntil(server string, commands []ownerCommand, command ownerCommand) (until time.Duration) {
	until = command.begin
	for _, r := range commands {
		if r.event == command.event {
			break
		}
		if r.action == "remove" {
			until = max(until, c.stuckDialEnd(server, r.begin)+drainTime+stopLadder+c.slack)
		}
	}
	return until
}

// stuckDialEnd is when a dial that is under way at a time can be ended: one that does not return holds everything that comes after it.
func (c *checker) stuckDialEnd(server string, t time.Duration) time.Duration {
	for _, w := range c.faultWindows(server) {
		if w.fault == "stuck-dial" && w.from <= t+c.skew {
			t = max(t, w.to)
		}
	}
	return t
}

// wantedStates is what was wanted of a server over time, by the order of what the owner said and not by what the manager made of it.
//
//   - disable, disconnect and remove hold when they have been answered: "Toggle(false) and removal return after the admission gate is
//     closed and the snapshot is published"; or when they should have been, if they were not. Until then nobody can say.
//   - enable, add, respec and adjust hold from the moment at which they are given: they are answered when the attempt has ended.
//   - reconnect, refresh and wake wish nothing new, and configure says the whole set as it is.
func (c *checker) wantedStates(server string) []wantedSince {
	commands := c.ownerCommands(server)
	intents := c.intentsBefore(server, commands)
	out := []wantedSince{{0, intents[0].wantedState(), -1}}
	for i, a := range commands {
		next := intents[i+1]
		if next == intents[i] {
			continue
		}
		when, at := a.begin+c.skew, a.event
		if next.wantedState() != wantConnected {
			when = c.waitsUntil(server, commands, a) + c.skew + c.slack
			if a.answered && a.end < when {
				when, at = a.end, a.doneEvent
			}
		}
		out = append(out, wantedSince{a.begin, wantUnknown, a.event})
		overtaken := false
		for j := i + 1; j < len(commands) && commands[j].begin < when; j++ {
			overtaken = overtaken || intents[j+1] != intents[j]
		}
		if !overtaken {
			out = append(out, wantedSince{when, next.wantedState(), at})
		}
	}
	return out
}

// wantedThroughout is the wish that has held over a whole stretch of time, unsure if it was not one.
func wantedThroughout(all []wantedSince, from, to time.Duration) (w wantedState, at int) {
	w, at = wantUnknown, -1
	for i, s := range all {
		if s.from > to {
			break
		}
		next := to + 1
		if i+1 < len(all) {
			next = all[i+1].from
		}
		if s.from <= from && next > to {
			w, at = s.wanted, s.event
		}
	}
	return w, at
}

// firstUnwanted is the first stretch between two times in which the owner did not want a server, with the event that says so.
func firstUnwanted(all []wantedSince, from, to time.Duration) (begin, end time.Duration, at int) {
	for i, s := range all {
		if s.wanted != wantDisabled && s.wanted != wantRemoved {
			continue
		}
		begin, end = max(s.from, from), to
		if i+1 < len(all) {
			end = min(end, all[i+1].from)
		}
		if begin < end {
			return begin, end, s.event
		}
	}
	return 0, 0, -1
}

// commandIn reports whether a command that can bring a server into motion was given, or had not been answered, between two
// times. Those that ask only to look (refresh) do not count.
func (c *checker) commandIn(all []ownerCommand, from, to time.Duration) (ownerCommand, bool) {
	for _, a := range all {
		if a.action == "refresh" || a.begin > to+c.skew {
			continue
		}
		if a.begin >= from-c.skew || !a.answered || a.end+c.skew >= from {
			return a, true
		}
	}
	return ownerCommand{}, false
}
