package messages_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// classes are all of Class; TestMayRetryNeedsThatNothingRan goes through them.
var classes = []messages.Class{
	messages.ClassNone, messages.ClassConfig, messages.ClassMissing, messages.ClassUnauthorized, messages.ClassForbidden,
	messages.ClassUnsupported, messages.ClassProtocol, messages.ClassTimeout, messages.ClassExited, messages.ClassNetwork,
	messages.ClassThrottled, messages.ClassSession, messages.ClassExhausted, messages.ClassCanceled, messages.ClassDenied,
	messages.ClassInvalid, messages.ClassRejected, messages.ClassPanic,
}

// TestMayRetryNeedsThatNothingRan: a call that may have run is never repeated, whatever its class and its time; of the refused ones
// only those that the server was too busy for.
func TestMayRetryNeedsThatNothingRan(t *testing.T) {
	for _, class := range classes {
		for _, outcome := range []messages.Outcome{"", messages.OutcomeResult, messages.OutcomeToolError, messages.OutcomeUnknown,
			messages.OutcomeRejected} {
			for _, retry := range []messages.Retry{"", messages.RetryAt, messages.RetryParked} {
				e := &messages.Error{Outcome: outcome, Class: class, Retry: retry, RetryAfter: time.Second}
				busy := outcome == messages.OutcomeRejected && class == messages.ClassThrottled
				if at, ok := e.MayRetry(); ok != busy || at.IsZero() == ok {
					t.Errorf("%q %q %q: %v %v", outcome, class, retry, at, ok)
				}
			}
		}
	}
}

// TestMayRetryNeedsNoOneToAct: what fails again until something is changed is not repeated.
func TestMayRetryNeedsNoOneToAct(t *testing.T) {
	for _, c := range []struct {
		e    messages.Error
		want bool
	}{
		{messages.Error{Class: messages.ClassNetwork, Retry: messages.RetryAt}, true},
		{messages.Error{Class: messages.ClassMissing, Retry: messages.RetryAt}, true}, // it has connected before: it is being upgraded
		{messages.Error{Class: messages.ClassProtocol, Retry: messages.RetryParked}, true},
		{messages.Error{Class: messages.ClassNetwork, Retry: messages.RetryNever}, false},
		{messages.Error{Class: messages.ClassUnauthorized, Retry: messages.RetryNever}, false},
		{messages.Error{Class: messages.ClassCanceled, Retry: messages.RetryAt}, false}, // its caller gave it up
		{messages.Error{Class: messages.ClassThrottled, Err: messages.ErrQueueFull}, true},
		{messages.Error{Class: messages.ClassExhausted, Err: messages.ErrMemory}, true},
		{messages.Error{Class: messages.ClassSession}, true},
		{messages.Error{Class: messages.ClassTimeout}, true},
		{messages.Error{Class: messages.ClassCanceled, Err: messages.ErrClosed}, false},
		{messages.Error{Class: messages.ClassNetwork, Retry: messages.RetryAt, Err: messages.ErrClosed}, false},
		{messages.Error{Class: messages.ClassInvalid, Err: messages.ErrUnknownTool}, false},
		{messages.Error{Class: messages.ClassInvalid, Err: messages.ErrDisabled}, false},
		{messages.Error{Class: messages.ClassDenied}, false},
		{messages.Error{Class: messages.ClassUnauthorized}, false},
		{messages.Error{}, false},
	} {
		c.e.Outcome = messages.OutcomeNotSent
		if _, ok := c.e.MayRetry(); ok != c.want {
			t.Errorf("%+v: %v", c.e, ok)
		}
		// A caller on another machine decides the same.
		var there *messages.Error
		if err := messages.FailureOf(&c.e).ToError(); !errors.As(err, &there) {
			t.Fatal(err)
		} else if _, ok := there.MayRetry(); ok != c.want || errors.Is(there, messages.ErrNotConnected) != (c.e.Retry != "") {
			t.Errorf("%+v over the wire: %v", c.e, ok)
		}
	}
}

// TestMayRetrySaysWhen: at the server's time, and never so soon that a loop would spin.
func TestMayRetrySaysWhen(t *testing.T) {
	for _, c := range []struct{ after, least time.Duration }{{0, 90 * time.Millisecond}, {time.Minute, 59 * time.Second}} {
		e := &messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassNetwork, RetryAfter: c.after}
		if at, ok := e.MayRetry(); !ok || time.Until(at) < c.least {
			t.Errorf("%v: %v", c.after, time.Until(at))
		}
	}
}
