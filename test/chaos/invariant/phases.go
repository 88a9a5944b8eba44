package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// A phaseSpan is the time for which the manager published one phase of a server: from its Phase event to the next one, or to
// Removed.
type phaseSpan struct {
	*history.Event
	// The index of the Phase event.
	event    int
	to       time.Duration
	endEvent int // the event that ended it, -1 if the history ended first
}

// phaseSpans returns what the manager published of a server, in order. After a removal there is a hole until the server is
// added again.
func (c *checker) phaseSpans(server string) []phaseSpan {
	var out []phaseSpan
	open := false
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.Side != history.Manager || e.Kind != history.Phase && e.Kind != history.Removed {
			continue
		}
		if open {
			out[len(out)-1].to, out[len(out)-1].endEvent = e.T, i
		}
		if open = e.Kind == history.Phase; open {
			out = append(out, phaseSpan{Event: e, event: i, endEvent: -1})
		}
	}
	if open {
		out[len(out)-1].to = c.endTime()
	}
	return out
}

// A connectedSpan is one uninterrupted time of being connected in one epoch. It may join several Phase events, such as a new
// tool count.
type connectedSpan struct {
	from, to        time.Duration
	epoch           uint64
	event, endEvent int // endEvent is -1 if the history ended first
}

// connectedSpans joins adjacent phases that say connected in the same epoch.
func connectedSpans(all []phaseSpan) []connectedSpan {
	var out []connectedSpan
	for _, s := range all {
		if s.Phase != messages.Connected {
			continue
		}
		if n := len(out); n > 0 && out[n-1].endEvent == s.event && out[n-1].epoch == s.Epoch {
			out[n-1].to, out[n-1].endEvent = s.to, s.endEvent
			continue
		}
		out = append(out, connectedSpan{s.T, s.to, s.Epoch, s.event, s.endEvent})
	}
	return out
}

// describePhase renders a phase for a violation, with its step, its retry word or its warmth.
func describePhase(e *history.Event) string {
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
