package messages_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
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

// TestAFailureLosesNothing: every field of an Error reaches the other side, and every sentinel that it wraps; the wrapped error itself
// stays here, and so does the error object of the server, whose Code and Data travel.
func TestAFailureLosesNothing(t *testing.T) {
	full := messages.Error{
		Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassUnauthorized, Server: "a", Tool: "b", Text: "no", Fix: "sign in",
		Code: -32001, Data: json.RawMessage(`{"a":1}`), RetryAfter: 3 * time.Second, Retry: messages.RetryNever, Task: "t-1", Nearest: "read",
		Challenge: &messages.Challenge{Scheme: "Bearer", Scope: "read", ResourceMetadata: "https://example.com/m", Text: "expired"},
	}
	for v, i := reflect.ValueOf(full), 0; i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; name != "Err" && name != "Reply" && v.Field(i).IsZero() {
			t.Errorf("the test does not set %s", name)
		}
	}
	var got *messages.Error
	if err := messages.FailureOf(&full).ToError(); !errors.As(err, &got) || !reflect.DeepEqual(*got, full) {
		t.Errorf("%+v", got)
	}
	for _, cause := range []error{messages.ErrUnknownServer, messages.ErrUnknownTool, messages.ErrUnknownResource,
		messages.ErrUnknownPrompt, messages.ErrDisabled, messages.ErrQueueFull, messages.ErrMemory, messages.ErrClosed,
		messages.ErrCallerRefused, messages.ErrTooManyInstances} {
		err := messages.FailureOf(&messages.Error{Class: messages.ClassInvalid, Text: "x", Err: fmt.Errorf("inner: %w", cause)}).ToError()
		if !errors.Is(err, cause) {
			t.Errorf("%v is lost: %v", cause, err)
		}
	}
}
