package invariant

import (
	"cmp"
	"reflect"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// An ownerCommand is one command of the owner, from begin, when he gave it, to its answer. doneEvent is -1, and end is 0, while
// there is none.
type ownerCommand struct {
	action           string
	event, doneEvent int
	begin, end       time.Duration
	answered         bool
	failed           bool
	refused          bool // the manager did nothing about it; class invalid
	// everyServer is set for a command that names no server, such as configure and wake.
	everyServer bool
	// impliedBySet marks a command that stands for the change which a SetServers with another set of servers means for this
	// server. It is answered when the set is accepted.
	impliedBySet bool
	// ofAll marks a command that stands for what a command to all servers does to this one. It is answered when each of them is done.
	ofAll bool
}

// ownerCommands returns the owner's commands for a server, in order, together with those for the whole manager (configure,
// wake). For the empty name it returns the latter alone. Rules (permit) and approvals ask
// nothing of a server and are left out. Callers only read the slice, which belongs to the cache.
func (c *checker) ownerCommands(server string) []ownerCommand {
	if known, ok := c.commandCache[server]; ok {
		return known
	}
	all := c.commandsExcept(server, func(do string) bool { return do == "permit" || do == "approve" })
	if c.commandCache == nil {
		c.commandCache = map[string][]ownerCommand{}
	}
	c.commandCache[server] = all
	return all
}

// permitCommands returns the commands that gave other rules for the tools of a server.
func (c *checker) permitCommands(server string) []ownerCommand {
	return c.commandsExcept(server, func(do string) bool { return do != "permit" })
}

// commandsExcept returns the commands for a server and for the whole manager, in order, without the ignored kinds.
func (c *checker) commandsExcept(server string, ignored func(do string) bool) []ownerCommand {
	var out []ownerCommand
	// commandIndex finds the command that a Done event answers; sets holds the numbers of the commands that are given as a
	// whole set.
	commandIndex := map[int]int{}
	sets, wholes := map[int]bool{}, map[int]bool{}
	for _, o := range c.plan.Commands {
		sets[o.ID] = o.Do == "configure" || o.BySet() || c.plan.Scenario.Manager.Configured && o.ChangesSet()
		wholes[o.ID] = o.Do == scenario.ConnectAll || o.Do == scenario.DisconnectAll
	}
	addEvent := func(i int) {
		e := c.x.Event(i)
		switch e.Kind {
		case history.Command:
			if ignored(e.Method) {
				return
			}
			commandIndex[e.Command] = len(out)
			out = append(out, ownerCommand{action: e.Method, event: i, doneEvent: -1, begin: e.T, everyServer: e.Server == "",
				impliedBySet: sets[e.Command] && e.Method != "configure", ofAll: wholes[e.Command]})
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
	// Both lists are sorted by time, so a merge keeps the order.
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

// A wantedState is the owner's wish for a server.
type wantedState uint8

const (
	wantUnknown wantedState = iota // a command is being carried out, or its effect cannot be known
	wantConnected
	wantDisabled
	wantRemoved
)

// A wantedSince is a wish from a time on, until the next one.
type wantedSince struct {
	from   time.Duration
	wanted wantedState
	event  int // the event that proves it, -1 for the plan
}

// An ownerIntent is the state in which the commands so far leave a server: exists after it was added, wanted unless it is
// disabled.
type ownerIntent struct{ exists, wanted bool }

// wantedState returns the wish that an intent amounts to.
func (s ownerIntent) wantedState() wantedState {
	switch {
	case !s.exists:
		return wantRemoved
	case s.wanted:
		return wantConnected
	}
	return wantDisabled
}

// afterCommand returns the intent after one more command. fresh is the wanted state that the spec gives to a server which is
// added. Commands that change neither field return s.
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

// intentsBefore returns the intent before each command, and after the last, by their order alone: "the commands of one sender
// take effect in the order in which they were sent".
func (c *checker) intentsBefore(server string, commands []ownerCommand) []ownerIntent {
	fresh := !c.serverSpec(server).Disabled
	out := make([]ownerIntent, len(commands)+1)
	out[0] = ownerIntent{true, fresh}
	spec, with := *c.serverSpec(server), c.settingsByCommand(server)
	for i, a := range commands {
		out[i+1] = out[i].afterCommand(a.action, fresh)
		// What a person has enabled or disabled stays so when its configuration says something else of it, but of that.
		if a.impliedBySet && out[i].exists && out[i+1].exists && c.plan.Scenario.Manager.Configured {
			out[i+1] = out[i]
		}
		if a.action != "adjust" {
			continue
		}
		before := spec
		spec = spec.Adjusted(with[c.x.Event(a.event).Command])
		// A whole set in which the server stands as before leaves it alone, also if it was disabled since.
		if a.impliedBySet && out[i].exists && reflect.DeepEqual(spec, before) {
			out[i+1] = out[i]
		}
	}
	return out
}

// settingsByCommand returns what the plan's adjusts and permits say of a server, by the numbers of the commands. The record of a
// command holds no settings.
func (c *checker) settingsByCommand(server string) map[int]map[string]string {
	with := map[int]map[string]string{}
	for _, o := range c.plan.Commands {
		if (o.Do == "adjust" || o.Do == "permit") && o.Server == server {
			with[o.ID] = o.With
		}
	}
	return with
}

// waitsUntil returns until when a command may have to wait for removals that were requested before it. A server that is added
// again starts when the connection of its earlier life is gone, and its commands wait as long.
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

// stuckDialEnd returns when a dial that is under way at t can end. The fault stuck-dial keeps the dial from returning, and the
// server's actor does nothing else until it returns. A dial of that time returns only with its answer, which other faults may hold longer.
func (c *checker) stuckDialEnd(server string, t time.Duration) time.Duration {
	for _, w := range c.faultWindows(server) {
		if w.fault != "stuck-dial" || w.from > t+c.skew {
			continue
		}
		t = max(t, w.to)
		for _, dial := range c.x.Conns(server) {
			begin, dialed := c.x.Time(dial.Open)
			if !dialed || begin < w.from-c.skew || begin > w.to+c.skew {
				continue
			}
			if answer, answered := c.x.Time(cmp.Or(max(dial.Opened, 0), max(dial.Refused, 0), dial.Released)); answered {
				t = max(t, answer)
			}
		}
	}
	return t
}

// wantedStates returns the owner's wishes for a server over time, by the order of his commands and not by what the manager
// published.
//
//   - disable, disconnect and remove hold from their answer on: "Toggle(false) and removal return after the admission gate is
//     closed and the snapshot is published"; without an answer from the time at which it was due. Until then the wish is
//     unknown.
//   - enable, add, respec and adjust hold from their begin on, because their answer comes only when the attempt has ended.
//   - reconnect, refresh and wake change no wish, and configure repeats the whole set as it is.
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
		// A wish that ends the server is certain only once it is answered, or overdue.
		if next.wantedState() != wantConnected {
			when = c.waitsUntil(server, commands, a) + c.skew + c.slack
			if a.answered && a.end < when {
				when, at = a.end, a.doneEvent
			}
		}
		out = append(out, wantedSince{a.begin, wantUnknown, a.event})
		// A later command that changes the wish before this one holds leaves no time in which it is known.
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

// wantedThroughout returns the wish that held over a whole stretch of time and the event that proves it; wantUnknown and -1 if
// the wish changed within.
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

// firstUnwanted returns the first stretch between two times in which the owner did not want a server, with the event that
// proves it; at is -1 if there is none.
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

// commandIn returns a command that can start or stop a server and that was given, or not yet answered, between two times. A
// refresh only lists tools and does not count.
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
