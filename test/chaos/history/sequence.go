package history

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Sequence follows the events that one watcher of a manager gets, and reports what must not happen: an event out of order, a
// missing event without a gap, the end of a call that never began or has ended before. The zero value has seen no event. It is
// not safe for concurrent use.
type Sequence struct {
	// Last is the number of the newest event, Missed the number of events that gaps reported as lost.
	Last, Missed uint64

	// started is set by the first event, whose number may be any. calls holds the calls that have begun and not ended, by id.
	started bool
	times   map[string]time.Time // of the newest event, by server
	calls   map[uint64]reportedCall
}

// SequenceAfter follows the events of a watcher that began to watch after the event last: its first event is the next one, or a gap. Calls that ran then
// may end without a beginning.
func SequenceAfter(last uint64) *Sequence {
	return &Sequence{Last: last, Missed: 1, started: true}
}

// reportedCall is a call as the watcher knows it.
type reportedCall struct{ server, tool string }

// Next takes the next event and returns what is wrong with it, empty if nothing is.
func (s *Sequence) Next(e messages.Event) (problem string) {
	if s.times == nil {
		s.times, s.calls = map[string]time.Time{}, map[uint64]reportedCall{}
	}
	last, started := s.Last, s.started
	s.Last, s.started = e.Seq, true
	if e.Kind == messages.EventGap {
		s.Missed += e.Missed
		if started && e.Seq != last+e.Missed {
			return fmt.Sprintf("it was told that %d events are missing after the event %d, up to the event %d", e.Missed, last, e.Seq)
		}
		return ""
	}
	if started && e.Seq != last+1 {
		return fmt.Sprintf("after the event %d it was told the event %d, and of no gap", last, e.Seq)
	}
	// Phases of one server must come in the order of their times; calls report the time at which they began or ended, in any
	// goroutine.
	if was := s.times[e.Server]; e.Time.Before(was) && e.Kind != messages.EventCallEnded && e.Kind != messages.EventCallStarted {
		return fmt.Sprintf("a %s of %s from %s was told after one from %s later", e.Kind, e.Server, e.Time.Format(time.TimeOnly), was.Sub(e.Time))
	}
	s.times[e.Server] = e.Time
	return s.followCall(e)
}

// followCall follows the beginnings and ends of calls. After a gap the beginning of a call may be missing.
func (s *Sequence) followCall(e messages.Event) (problem string) {
	own := reportedCall{e.Server, e.Tool}
	known, open := s.calls[e.CallID]
	switch e.Kind {
	case messages.EventCallStarted:
		if open {
			return fmt.Sprintf("the call %d of %s began twice", e.CallID, e.Server)
		}
		s.calls[e.CallID] = own
	case messages.EventCallEnded:
		if !open && s.Missed == 0 {
			return fmt.Sprintf("the call %d of tool %s of %s ended, and it was not told that it began, or it had ended", e.CallID, e.Tool, e.Server)
		}
		if open && known != own {
			return fmt.Sprintf("the call %d began at tool %s of %s and ended at tool %s of %s", e.CallID, known.tool, known.server, e.Tool, e.Server)
		}
		delete(s.calls, e.CallID)
	default:
	}
	return ""
}

// Open returns the number of calls that have begun and not ended.
func (s *Sequence) Open() int { return len(s.calls) }
