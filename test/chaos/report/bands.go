package report

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// state is what a band shows: the published phase, and two of its reasons that matter to whoever looks at a whole day.
type state byte

const (
	absent    state = 'X' // not configured, or not yet
	pending   state = 'P'
	connected state = 'C'
	failed    state = 'F'
	parked    state = 'K' // failed, and only probed
	needsAuth state = 'A'
	disabled  state = 'D'
	warm      state = 'W' // disabled, and the connection is kept
)

// stateOf is the state that a Phase event begins.
func stateOf(e *history.Event) state {
	switch e.Phase {
	case messages.Pending:
		return pending
	case messages.Connected:
		return connected
	case messages.Failed:
		if e.Retry == messages.RetryParked {
			return parked
		}
		return failed
	case messages.NeedsAuth:
		return needsAuth
	case messages.Disabled:
		if e.Warm {
			return warm
		}
		return disabled
	}
	return absent
}

// band is a time in which a server stayed in one state. It ends where the next one begins.
type band struct {
	begin time.Duration
	state state
}

// bandsOf are the states of one server from its events, in order of time, up to the closing of the manager: that every server
// is disabled then tells nothing. The first begins at 0.
func bandsOf(h *history.History, events []int, closing time.Duration) []band {
	out := []band{{0, absent}}
	for _, i := range events {
		e := &h.Events[i]
		if e.T >= closing {
			break
		}
		next := absent
		switch e.Kind {
		case history.Phase:
			next = stateOf(e)
		case history.Removed:
		default:
			continue
		}
		last := &out[len(out)-1]
		switch {
		case last.state == next:
		case last.begin == e.T: // a state of no length is not seen, and the events have it
			last.state = next
			if n := len(out); n > 1 && out[n-2].state == next {
				out = out[:n-1]
			}
		default:
			out = append(out, band{e.T, next})
		}
	}
	return out
}

// joinShortBands joins bands that are too short to be seen, until there are at most so many, and says what the shortest one that
// is left may be. A band that is left out takes the state of the one before it.
func joinShortBands(bands []band, most int, end time.Duration) ([]band, time.Duration) {
	grain := time.Duration(0)
	for step := end / 1_000_000; len(bands) > most; step = max(2*step, 1) {
		grain = step
		kept := bands[:1:1]
		for i := 1; i < len(bands); i++ {
			until := end
			if i+1 < len(bands) {
				until = bands[i+1].begin
			}
			last := kept[len(kept)-1]
			if until-bands[i].begin < grain || last.state == bands[i].state {
				continue
			}
			kept = append(kept, bands[i])
		}
		if grain > end {
			return kept[:1], grain
		}
		bands = kept
	}
	return bands, grain
}

// timePerState is how long a server was in each state.
func timePerState(bands []band, end time.Duration) map[state]time.Duration {
	out := map[state]time.Duration{}
	for i, b := range bands {
		until := end
		if i+1 < len(bands) {
			until = bands[i+1].begin
		}
		out[b.state] += max(until-b.begin, 0)
	}
	return out
}
