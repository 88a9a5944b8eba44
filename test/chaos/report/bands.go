package report

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// state is the state that a band shows: the published phase, or one of two reasons (parked, warm) that matter to a
// reader who looks at a whole run.
type state byte

const (
	// The server is not configured, or not yet.
	absent    state = 'X'
	pending   state = 'P'
	connected state = 'C'
	failed    state = 'F'
	// parked means failed, and only probed from time to time.
	parked    state = 'K'
	needsAuth state = 'A'
	disabled  state = 'D'
	// warm means disabled, with the connection kept.
	warm state = 'W'
)

// stateOf returns the state that a Phase event begins.
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

// band is a time in which a server stayed in one state. It ends at the beginning of the next one.
type band struct {
	begin time.Duration
	state state
}

// bandsOf returns the states of one server from its events, in order of time, the first from 0 on. It stops at the
// closing of the manager, which disables every server and would hide the last real state.
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
		// Two phases may show as one state, such as the steps of pending.
		case last.state == next:
		// A state without a duration cannot be drawn; the list of events has it.
		case last.begin == e.T:
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

// joinShortBands joins bands that are too short to be seen, until at most most are left, and returns the shortest
// duration that a remaining band may have. A band that is dropped takes the state of the one before it.
func joinShortBands(bands []band, most int, end time.Duration) ([]band, time.Duration) {
	grain := time.Duration(0)
	// The threshold doubles in each round, so that few rounds suffice for any number of bands.
	for step := end / 1_000_000; len(bands) > most; step = max(2*step, 1) {
		grain = step
		// The capacity of 1 makes append copy, because bands may be read once more by the caller.
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

// timePerState returns how long a server was in each state.
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
