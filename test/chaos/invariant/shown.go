package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// shown is how long the catalog showed the same of one server: all of its entries have one state, or it has none.
type shown struct {
	from, to time.Duration
	state    string // live, cached, lost; empty if there are none
	epoch    uint64
	count    int
	hash     string
	tools    string // the names, where some are denied
	at       int    // the snapshot that began it
	next     int    // the one that ended it, -1 if the history ended first
	mixed    bool
}

// shows is what the catalog showed of every server over time, from its first entry on.
func (c *court) shows() map[string][]shown {
	out := map[string][]shown{}
	for _, i := range c.x.Of("") {
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
				all[n-1].to, all[n-1].next = e.T, i
			}
			s := shown{from: e.T, epoch: entry.Epoch, count: entry.Count, hash: entry.Hash, tools: entry.Tools, at: i, next: -1}
			if entry.Count > 0 {
				s.state = entry.State
			}
			out[entry.Server] = append(all, s)
		}
	}
	over := c.end()
	for _, all := range out {
		if n := len(all); n > 0 {
			all[n-1].to = over
		}
	}
	return out
}

// piece is a stretch of time in which the catalog shows one thing and the manager says one phase; phase is nil while the
// server has none: before its first word, or after its removal.
type piece struct {
	from, to time.Duration
	phase    *stay
}

// split cuts a stretch of time by the phases of a server. It goes on from *k, the first stay that can matter.
func split(stays []stay, k *int, from, to time.Duration) []piece {
	for *k < len(stays) && stays[*k].to <= from && stays[*k].next >= 0 {
		*k++
	}
	var out []piece
	at := from
	for i := *k; i < len(stays) && stays[i].T < to; i++ {
		if s := &stays[i]; s.to > at || s.next < 0 {
			if s.T > at {
				out = append(out, piece{at, s.T, nil})
				at = s.T
			}
			end := min(s.to, to)
			if s.next < 0 {
				end = to
			}
			if end > at {
				out = append(out, piece{at, end, s})
				at = end
			}
		}
	}
	if at < to {
		out = append(out, piece{at, to, nil})
	}
	return out
}
