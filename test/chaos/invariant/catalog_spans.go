package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// catalogSpan is a stretch of time in which the catalog showed the same of one server: entries that share state and epoch, or
// none.
type catalogSpan struct {
	from, to time.Duration
	// state is live, cached or lost; empty if there are no entries.
	state string
	epoch uint64
	count int
	hash  string
	// tools are the sorted names; set only where the plan denies some.
	tools string
	// parts are what views leave of it, as history.PartsOf writes them.
	parts string
	// event is the snapshot that began the span, endEvent the one that ended it, -1 if the history ended first.
	event    int
	endEvent int
	// mixed is set if the entries of one snapshot differ in state or epoch.
	mixed bool
}

// catalogSpans returns what the catalog showed of every server over time, from its first entry on.
func (c *checker) catalogSpans() map[string][]catalogSpan {
	out := map[string][]catalogSpan{}
	for _, i := range c.x.ServerEvents("") {
		e := c.x.Event(i)
		if e.Kind != history.Snapshot {
			continue
		}
		for k, entry := range e.Entries {
			all := out[entry.Server]
			if k > 0 && e.Entries[k-1].Server == entry.Server {
				all[len(all)-1].mixed = true
				continue
			}
			if n := len(all); n > 0 {
				all[n-1].to, all[n-1].endEvent = e.T, i
			}
			s := catalogSpan{from: e.T, epoch: entry.Epoch, count: entry.Count, hash: entry.Hash, tools: entry.Tools, parts: entry.Parts, event: i, endEvent: -1}
			if entry.Count > 0 {
				s.state = entry.State
			}
			out[entry.Server] = append(all, s)
		}
	}
	over := c.endTime()
	for _, all := range out {
		if n := len(all); n > 0 {
			all[n-1].to = over
		}
	}
	return out
}

// phasePiece is a stretch of time in which neither the catalog nor the published phase of a server changed. phase is nil while
// the manager publishes none: before its first event, or after the removal.
type phasePiece struct {
	from, to time.Duration
	phase    *phaseSpan
}

// splitByPhase cuts a stretch of time by the phases of a server. *k is the first span that can matter; it advances, so that a
// caller with rising times reads the spans once.
func splitByPhase(stays []phaseSpan, k *int, from, to time.Duration) []phasePiece {
	for *k < len(stays) && stays[*k].to <= from && stays[*k].endEvent >= 0 {
		*k++
	}
	var out []phasePiece
	at := from
	for i := *k; i < len(stays) && stays[i].T < to; i++ {
		if s := &stays[i]; s.to > at || s.endEvent < 0 {
			if s.T > at {
				out = append(out, phasePiece{at, s.T, nil})
				at = s.T
			}
			end := min(s.to, to)
			if s.endEvent < 0 {
				end = to
			}
			if end > at {
				out = append(out, phasePiece{at, end, s})
				at = end
			}
		}
	}
	if at < to {
		out = append(out, phasePiece{at, to, nil})
	}
	return out
}
