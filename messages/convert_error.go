package messages

import (
	"errors"
	"math"
	"time"
)

// FailureOf returns the protobuf form of err; nil for nil. An error of another type becomes its text.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return &Failure{Class: string(ClassOf(err)), Text: Line(err.Error(), 400)}
	}
	f := &Failure{
		Op: e.Op, Outcome: string(e.Outcome), Class: string(e.Class), Server: e.Server, Tool: e.Tool,
		Text: e.Text, Fix: e.Fix, Code: int64(e.Code), Data: e.Data, RetryAfterMs: wholeMillis(e.RetryAfter),
		Retry: string(e.Retry), Task: e.Task, Nearest: e.Nearest, Challenge: e.Challenge.toProto(),
	}
	// The wrapped error stays on this side; the other one gets its own sentinel by name.
	for name, cause := range failureCauses {
		if errors.Is(err, cause) {
			f.Cause = name
		}
	}
	return f
}

// failureCauses are the sentinels that errors wrap, at most one each, by their names in Failure. The other sentinels follow from the
// outcome, the class and the retry.
var failureCauses = map[string]error{
	"unknown-server": ErrUnknownServer, "unknown-tool": ErrUnknownTool, "unknown-resource": ErrUnknownResource,
	"unknown-prompt": ErrUnknownPrompt, "disabled": ErrDisabled, "queue-full": ErrQueueFull, "memory": ErrMemory, "closed": ErrClosed,
	"caller-refused": ErrCallerRefused, "too-many-instances": ErrTooManyInstances,
}

// wholeMillis rounds up, because a client that comes back sooner than a server asked for is refused again.
func wholeMillis(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// FailuresOf returns the protobuf form of every *Error that err joins; one for any other error, none for nil.
func FailuresOf(err error) []*Failure {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Failure
		for _, part := range joined.Unwrap() {
			all = append(all, FailureOf(part))
		}
		return all
	}
	return []*Failure{FailureOf(err)}
}

// ToError returns the failure as a Go error, in which errors.As finds an *Error; nil for nil.
func (f *Failure) ToError() error {
	if f == nil {
		return nil
	}
	return &Error{
		Op: f.GetOp(), Outcome: Outcome(f.GetOutcome()), Class: Class(f.GetClass()), Server: f.GetServer(),
		Tool: f.GetTool(), Text: f.GetText(), Fix: f.GetFix(), Code: int(f.GetCode()), Data: f.GetData(),
		RetryAfter: max(time.Duration(min(f.GetRetryAfterMs(), math.MaxInt64/int64(time.Millisecond)))*time.Millisecond, 0),
		Retry:      Retry(f.GetRetry()), Task: f.GetTask(), Nearest: f.GetNearest(), Challenge: f.GetChallenge().toChallenge(), Err: failureCauses[f.GetCause()],
	}
}

func (c *Challenge) toProto() *FailureChallenge {
	if c == nil {
		return nil
	}
	return protoOf(*c, &FailureChallenge{})
}

func (p *FailureChallenge) toChallenge() *Challenge {
	if p == nil {
		return nil
	}
	c := goOf[Challenge](p)
	return &c
}
