package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// stay is how long the manager published one phase of a server: from one Phase event to the next, or to Removed.
type stay struct {
	*history.Event
	at   int
	to   time.Duration
	next int // the event that ended it, -1 if the history ended first
}

// stays is what the manager published of a server, in order. A server that was removed has an end and no stay after it.
func (c *court) stays(server string) []stay {
	var out []stay
	open := false
	for _, i := range c.x.Of(server) {
		e := c.x.Event(i)
		if e.Side != history.Manager || e.Kind != history.Phase && e.Kind != history.Removed {
			continue
		}
		if open {
			out[len(out)-1].to, out[len(out)-1].next = e.T, i
		}
		if open = e.Kind == history.Phase; open {
			out = append(out, stay{Event: e, at: i, next: -1})
		}
	}
	if open {
		out[len(out)-1].to = c.end()
	}
	return out
}

// up is one uninterrupted time of being connected in one epoch.
type up struct {
	from, to time.Duration
	epoch    uint64
	at, next int // next is -1 if the history ended first
}

// connected joins the stays that say connected.
func connected(all []stay) []up {
	var out []up
	for _, s := range all {
		if s.Phase != messages.Connected {
			continue
		}
		if n := len(out); n > 0 && out[n-1].next == s.at && out[n-1].epoch == s.Epoch {
			out[n-1].to, out[n-1].next = s.to, s.next
			continue
		}
		out = append(out, up{s.T, s.to, s.Epoch, s.at, s.next})
	}
	return out
}

// describe is a phase as a person says it.
func describe(e *history.Event) string {
	switch {
	case e.Kind == history.Removed:
		return "removed"
	case e.Step != "":
		return string(e.Phase) + " (" + string(e.Step) + ")"
	case e.Retry != "":
		return string(e.Phase) + " (" + string(e.Retry) + ")"
	case e.Warm:
		return string(e.Phase) + " (warm)"
	}
	return string(e.Phase)
}
