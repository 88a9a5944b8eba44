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
}

// commands is what the owner asked of a server, in order, with what concerns all of them (configure, wake).
func (c *court) commands(server string) []asked {
	var out []asked
	of := map[int]int{}
	take := func(i int) {
		e := c.x.Event(i)
		switch e.Kind {
		case history.Command:
			of[e.Command] = len(out)
			out = append(out, asked{do: e.Method, at: i, done: -1, begin: e.T, everyServer: e.Server == ""})
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

// wishes is what was wanted of a server over time, by what the owner said and not by what the manager made of it.
//
//   - disable and disconnect hold when they have been answered: "Toggle(false) and removal return after the admission gate is
//     closed and the snapshot is published". Until then nobody can say.
//   - enable, add and respec hold from the moment at which they are given: they are answered when the attempt has ended.
//   - reconnect, refresh and wake wish nothing new, and configure says the whole set as it is.
func (c *court) wishes(server string) []since {
	spec := c.server(server)
	fresh := on
	if spec.Disabled {
		fresh = off
	}
	out := []since{{0, fresh, -1}}
	commands := c.commands(server)
	for i, a := range commands {
		last := out[len(out)-1].wish
		var result wish
		when := a.begin + c.moment
		switch a.do {
		case "enable":
			result = on
			if last == gone || a.refused {
				result = last // an unknown server is refused
			}
		case "add", "respec":
			result = fresh
		case "disable", "disconnect", "remove":
			result, when = off, a.end
			if a.do == "remove" {
				result = gone
			}
			switch {
			case !a.answered:
				result = unsure
			case a.failed:
				result = last // refused, or the owner did not wait
				if last != gone {
					result = unsure
				}
			}
		default:
			continue
		}
		out = append(out, since{a.begin, unsure, a.at})
		overtaken := false
		for _, b := range commands[i+1:] {
			overtaken = overtaken || b.begin < when && b.do != "reconnect" && b.do != "refresh" && b.do != "wake"
		}
		if result != unsure && !overtaken {
			at := a.at
			if a.done >= 0 && when == a.end {
				at = a.done
			}
			out = append(out, since{when, result, at})
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
