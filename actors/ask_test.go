package actors

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestWhatIsAskedAgain is the whole rule of what a question may be repeated after.
func TestWhatIsAskedAgain(t *testing.T) {
	for _, class := range messages.Classes {
		for _, outcome := range []messages.Outcome{messages.OutcomeNotSent, messages.OutcomeUnknown, messages.OutcomeRejected} {
			err := &messages.Error{Outcome: outcome, Class: class}
			for _, harmless := range []bool{true, false} {
				want := false
				switch outcome {
				case messages.OutcomeNotSent:
					want = class != messages.ClassInvalid && class != messages.ClassDenied && class != messages.ClassUnauthorized
				case messages.OutcomeUnknown:
					lost := class == messages.ClassNetwork || class == messages.ClassExited || class == messages.ClassSession ||
						class == messages.ClassCanceled
					want = harmless && lost
				}
				if class == messages.ClassNone && outcome == messages.OutcomeUnknown {
					want = harmless // an error without a class is one of the network
				}
				if got := again(err, harmless); got != want {
					t.Errorf("%s, %s, harmless %v: %v", outcome, class, harmless, got)
				}
			}
		}
	}
}

// TestAnAnswerIsNoted: the request that a person has answered something for knows it, whatever was made from its context.
func TestAnAnswerIsNoted(t *testing.T) {
	answered := new(atomic.Bool)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), answeredKey{}, answered))
	defer cancel()
	NoteAnswer(t.Context()) // nobody's
	if answered.Load() {
		t.Error("noted too early")
	}
	if NoteAnswer(ctx); !answered.Load() {
		t.Error("not noted")
	}
}
