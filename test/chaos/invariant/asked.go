package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// asked is one command of the owner, from the moment at which it was given to its answer. done is -1 while there is none.
type asked struct {
	do          string
	at, done    int
	begin, end  time.Duration
	answered    bool
	failed      bool
	refused     bool // nothing was done about it
	everyServer bool
	// part: it is what a SetServers with another set of servers means for this one. It is answered when the set is accepted.
	part bool
}

// commands is what the owner asked of a server, in order, with what concerns all of them (configure, wake).
func (c *court) commands(server string) []asked {
	var out []asked
	of := map[int]int{}
	sets := map[int]bool{}
	for _, o := range c.plan.Commands {
		sets[o.ID] = o.Do == "configure" || o.BySet()
	}
	take := func(i int) {
		e := c.x.Event(i)
		switch e.Kind {
		case history.Command:
			of[e.Command] = len(out)
			out = append(out, asked{do: e.Method, at: i, done: -1, begin: e.T, everyServer: e.Server == "",
				part: sets[e.Command] && e.Method != "configure"})
		case history.Done:
			if k, ok := of[e.Command]; ok {
				out[k].done, out[k].end, out[k].answered, out[k].failed = i, e.T, true, e.Class != messages.ClassNone
				out[k].refused = e.Class == messages.ClassInvalid
			}
		default:
		}
	}
	own, all := c.x.Of(server), c.x.Of("")
	if server == "" {
		all = nil
	}
	for len(own) > 0 || len(all) > 0 {
		if len(all) == 0 || len(own) > 0 && c.x.Event(own[0]).T < c.x.Event(all[0]).T {
			take(own[0])
			own = own[1:]
		} else {
			take(all[0])
			all = all[1:]
		}
	}
	return out
}

// wish is what the owner wants of a server.
type wish uint8

const (
	unsure wish = iota // a command is being carried out, or nobody can say what it did
	on
	off
	gone
)

// since is a wish from a time on.
type since struct {
	from time.Duration
	wish wish
	at   int // the event that says so, -1 for the plan
}

// standing is what the commands so far make of a server: whether it is there, and whether it is wanted.
type standing struct{ there, wanted bool }

func (s standing) wish() wish {
	switch {
	case !s.there:
		return gone
	case s.wanted:
		return on
	}
	return off
}

// then is what a command makes of it. fresh is what the spec says of a server that is added.
func (s standing) then(do string, fresh bool) standing {
	switch do {
	case "enable":
		s.wanted = s.there
	case "disable", "disconnect":
		s.wanted = false
	case "add", "respec", "adjust":
		return standing{true, fresh}
	case "remove":
		return standing{}
	}
	return s
}

// standings is what a server was before each of the commands, by their order alone: "the commands of one sender take effect in the
// order in which they were sent".
func (c *court) standings(server string, commands []asked) []standing {
	fresh := !c.server(server).Disabled
	out := make([]standing, len(commands)+1)
	out[0] = standing{true, fresh}
	for i, a := range commands {
		out[i+1] = out[i].then(a.do, fresh)
	}
	return out
}

// held is until when a command may have to wait for the removals that were asked for before it: a server that is added again begins
// when the connection of the one before is gone, and what is asked of it waits as long.
func (c *court) held(server string, commands []asked, of asked) (until time.Duration) {
	until = of.begin
	for _, r := range commands {
		if r.at == of.at {
			break
		}
		if r.do == "remove" {
			until = max(until, c.stuck(server, r.begin)+drain+stopLadder+c.late)
		}
	}
	return until
}

// stuck is when a dial that is under way at a time can be ended: one that does not return holds everything that comes after it.
func (c *court) stuck(server string, t time.Duration) time.Duration {
	for _, w := range c.faults(server) {
		if w.fault == "stuck-dial" && w.from <= t+c.moment {
			t = max(t, w.to)
		}
	}
	return t
}

// wishes is what was wanted of a server over time, by the order of what the owner said and not by what the manager made of it.
//
//   - disable, disconnect and remove hold when they have been answered: "Toggle(false) and removal return after the admission gate is
//     closed and the snapshot is published"; or when they should have been, if they were not. Until then nobody can say.
//   - enable, add, respec and adjust hold from the moment at which they are given: they are answered when the attempt has ended.
//   - reconnect, refresh and wake wish nothing new, and configure says the whole set as it is.
func (c *court) wishes(server string) []since {
	commands := c.commands(server)
	stood := c.standings(server, commands)
	out := []since{{0, stood[0].wish(), -1}}
	for i, a := range commands {
		next := stood[i+1]
		if next == stood[i] {
			continue
		}
		when, at := a.begin+c.moment, a.at
		if next.wish() != on {
			when = c.held(server, commands, a) + c.moment + c.late
			if a.answered && a.end < when {
				when, at = a.end, a.done
			}
		}
		out = append(out, since{a.begin, unsure, a.at})
		overtaken := false
		for j := i + 1; j < len(commands) && commands[j].begin < when; j++ {
			overtaken = overtaken || stood[j+1] != stood[j]
		}
		if !overtaken {
			out = append(out, since{when, next.wish(), at})
		}
	}
	return out
}

// wished is the wish that has held over a whole stretch of time, unsure if it was not one.
func wished(all []since, from, to time.Duration) (w wish, at int) {
	w, at = unsure, -1
	for i, s := range all {
		if s.from > to {
			break
		}
		next := to + 1
		if i+1 < len(all) {
			next = all[i+1].from
		}
		if s.from <= from && next > to {
			w, at = s.wish, s.at
		}
	}
	return w, at
}

// unwished is the first stretch between two times in which the owner did not want a server, with the event that says so.
func unwished(all []since, from, to time.Duration) (begin, end time.Duration, at int) {
	for i, s := range all {
		if s.wish != off && s.wish != gone {
			continue
		}
		begin, end = max(s.from, from), to
		if i+1 < len(all) {
			end = min(end, all[i+1].from)
		}
		if begin < end {
			return begin, end, s.at
		}
	}
	return 0, 0, -1
}

// askedIn reports whether a command that can bring a server into motion was given, or had not been answered, between two
// times. Those that ask only to look (refresh) do not count.
func (c *court) askedIn(all []asked, from, to time.Duration) (asked, bool) {
	for _, a := range all {
		if a.do == "refresh" || a.begin > to+c.moment {
			continue
		}
		if a.begin >= from-c.moment || !a.answered || a.end+c.moment >= from {
			return a, true
		}
	}
	return asked{}, false
}
