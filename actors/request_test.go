package actors

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
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
				if got := mayRepeatRequest(err, harmless); got != want {
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
	NoteAnswer(t.Context()) // belongs to no request
	if answered.Load() {
		t.Error("noted too early")
	}
	if NoteAnswer(ctx); !answered.Load() {
		t.Error("not noted")
	}
}

// TestAnAnswerAboutNoRequestIsCounted: in the legacy era a question does not say which request it is about.
func TestAnAnswerAboutNoRequestIsCounted(t *testing.T) {
	answers := new(atomic.Uint64)
	h := trackAnswers(session.Handlers{Elicit: func(ctx context.Context, _ messages.ElicitRequest) (messages.ElicitResult, error) {
		NoteAnswer(ctx)
		return messages.ElicitResult{}, nil
	}}, answers)
	answered := new(atomic.Bool)
	if _, err := h.Elicit(context.WithValue(t.Context(), answeredKey{}, answered), messages.ElicitRequest{}); err != nil {
		t.Fatal(err)
	}
	if !answered.Load() || answers.Load() != 0 {
		t.Errorf("about a request: %v, %d", answered.Load(), answers.Load())
	}
	if _, err := h.Elicit(t.Context(), messages.ElicitRequest{}); err != nil {
		t.Fatal(err)
	}
	if answers.Load() != 1 || h.Sample != nil {
		t.Errorf("about none: %d", answers.Load())
	}
}
