package messages_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A caller on another machine learns when to come back as one in the same process does, never too early.
func TestAFailureSaysWhenToComeBack(t *testing.T) {
	for _, c := range []struct{ after, want time.Duration }{
		{0, 0}, {-time.Second, 0}, {1500 * time.Millisecond, 1500 * time.Millisecond}, {time.Nanosecond, time.Millisecond},
		{90 * time.Second, 90 * time.Second},
	} {
		var e *messages.Error
		sent := &messages.Error{Class: messages.ClassThrottled, Outcome: messages.OutcomeNotSent, Server: "a", Text: "later", RetryAfter: c.after}
		if err := messages.FailureOf(sent).ToError(); !errors.As(err, &e) || e.RetryAfter != c.want || e.Class != sent.Class {
			t.Errorf("%v: %+v", c.after, e)
		}
	}
	for _, ms := range []int64{math.MaxInt64, math.MinInt64} { // what another program makes of it
		var e *messages.Error
		if err := (&messages.Failure{RetryAfterMs: ms}).ToError(); !errors.As(err, &e) || e.RetryAfter < 0 {
			t.Errorf("%d ms: %v", ms, e.RetryAfter)
		}
	}
}
