package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// A Close of 2 s begins at 10 s: a call that its server has goes on for 1 s.
func TestClosingsAreJudged(t *testing.T) {
	const second = time.Second
	called := []history.Event{
		{T: 9 * second, Kind: history.Call, Server: "s1", Call: "c1"},
		{T: 9 * second, Kind: history.Received, Server: "s1", Method: "tools/call", Call: "c1"},
	}
	ends := func(at time.Duration, outcome messages.Outcome) history.Event {
		return history.Event{T: at, Kind: history.End, Server: "s1", Call: "c1", Outcome: outcome}
	}
	answers := func(at time.Duration) history.Event {
		return history.Event{T: at, Kind: history.Answered, Server: "s1", Method: "tools/call", Call: "c1"}
	}
	for _, c := range []struct {
		name, want string
		took       time.Duration
		err        error
		events     []history.Event
	}{
		{"it is answered in time", "", second / 2, nil, append(called, answers(10*second+second/2), ends(10*second+second/2, messages.OutcomeResult))},
		{"its time passes", "", 2 * second, context.DeadlineExceeded, append(called, ends(11*second, messages.OutcomeUnknown))},
		{"it is cut off", "was cut off at 10.1s, after 100ms: it had 1s", 2 * second, nil, append(called, ends(10*second+second/10, messages.OutcomeUnknown))},
		// Seed 20870231.
		{"its caller gives it up", "", 2 * second, nil, append(called, history.Event{T: 10*second + second/10, Kind: history.GivenUp, Server: "s1", Call: "c1"},
			ends(10*second+second/10, messages.OutcomeUnknown))},
		{"it goes on", "ended only at 12s", 2 * second, nil, append(called, ends(12*second, messages.OutcomeUnknown))},
		{"its answer is lost", "was answered at 10.5s, and ended at 11s with not-sent", 2 * second, nil, append(called, answers(10*second+second/2), ends(11*second, messages.OutcomeNotSent))},
		{"Close goes on", "Close returned after 3s", 3 * second, nil, nil},
		{"Close gives up", "Close gave up after 1s", second, context.DeadlineExceeded, nil},
		{"Close fails", "returned another error: broken", 2 * second, errors.New("broken"), nil},
	} {
		var found []string
		closed := closing{limit: 2 * second, begun: 10 * second, returned: 10*second + c.took, err: c.err}
		closed.judge(c.events, func(_, format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) })
		if got := strings.Join(found, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
