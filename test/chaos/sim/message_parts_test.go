package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A subscriber must get each event once, and none after its end.
func TestWhatASubscriberIsSent(t *testing.T) {
	type sent struct {
		number uint64
		at     time.Duration
	}
	for _, c := range []struct {
		name  string
		sent  []sent
		ended time.Duration
		bad   bool
	}{
		{"each once", []sent{{1, time.Second}, {2, time.Second}, {4, 2 * time.Second}}, 0, false},
		{"the earlier watch goes on for a moment", []sent{{2, time.Second}, {1, time.Second}}, 0, false},
		{"one twice", []sent{{1, time.Second}, {2, time.Second}, {1, time.Second}}, 0, true},
		{"in the instant of the end", []sent{{1, time.Second}, {2, time.Minute}}, time.Minute, false},
		{"after the end", []sent{{1, time.Second}, {2, time.Minute + time.Second}}, time.Minute, true},
	} {
		var r receivedEvents
		problem := ""
		for _, e := range c.sent {
			if c.ended > 0 && e.at >= c.ended {
				r.endedAt = c.ended
			}
			if p := r.noteEvent(e.number, e.at); p != "" {
				problem = p
			}
		}
		if (problem != "") != c.bad {
			t.Errorf("%s: %q", c.name, problem)
		}
	}
}

// A tool that no server has is refused for that reason, however many calls have ended before.
func TestAnswersToALongSeries(t *testing.T) {
	unknown := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: "no tool", Err: messages.ErrUnknownTool}
	crowded := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassThrottled, Text: "too many", Err: errors.New("too many")}
	if p := seriesProblem(5000, &messages.CallToolReply{Failure: messages.FailureOf(unknown)}); p != "" {
		t.Error(p)
	}
	for _, r := range []*messages.CallToolReply{{Failure: messages.FailureOf(crowded)}, {}} {
		if seriesProblem(5000, r) == "" {
			t.Errorf("%v is taken for a refusal of an unknown tool", r)
		}
	}
}
