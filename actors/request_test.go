package actors

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestWhatIsSentAgain is the whole rule of what a tool call or a read may be repeated after.
func TestWhatIsSentAgain(t *testing.T) {
	for _, class := range messages.Classes {
		for _, outcome := range []messages.Outcome{messages.OutcomeNotSent, messages.OutcomeUnknown, messages.OutcomeRejected} {
			err := &messages.Error{Outcome: outcome, Class: class}
			for _, harmless := range []bool{true, false} {
				for _, connected := range []bool{true, false} {
					want := false
					switch outcome {
					case messages.OutcomeNotSent:
						want = class != messages.ClassInvalid && class != messages.ClassDenied && class != messages.ClassUnauthorized
					case messages.OutcomeUnknown:
						lost := class == messages.ClassNetwork || class == messages.ClassExited || class == messages.ClassSession ||
							class == messages.ClassCanceled || class == messages.ClassNone // without a class it is one of the network
						final := class == messages.ClassInvalid || class == messages.ClassDenied || class == messages.ClassUnauthorized
						want = harmless && !final && (lost || !connected)
					}
					if got := mayRepeat(err, harmless, connected); got != want {
						t.Errorf("%s, %s, harmless %v, connected %v: %v", outcome, class, harmless, connected, got)
					}
				}
			}
		}
	}
	if mayRepeat(&messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassThrottled, Err: messages.ErrQueueFull}, true, true) {
		t.Error("the next connection has the same queue")
	}
}

// A spec that gives calls more time than maxCallTimeout has by default gives it to each call.
func TestALongCallTimeoutIsNotCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		request := newCallTimeout(t.Context(), &messages.Spec{CallTimeout: messages.Duration(2 * DefaultMaxCallTimeout)})
		defer request.Stop()
		if time.Sleep(2*DefaultMaxCallTimeout - time.Second); request.HasExpired() {
			t.Errorf("it has ended before %s", 2*DefaultMaxCallTimeout)
		}
		if time.Sleep(2 * time.Second); !request.HasExpired() {
			t.Errorf("it has not ended after %s", 2*DefaultMaxCallTimeout)
		}
	})
}

// TestAnAnswerIsNoted: the request that a person has answered something for knows it, whatever was made from its context.
func TestAnAnswerIsNoted(t *testing.T) {
	request := newCallTimeout(t.Context(), &messages.Spec{})
	defer request.Stop()
	ctx, cancel := context.WithCancel(request)
	defer cancel()
	NoteAnswer(t.Context()) // belongs to no request
	if request.Answered() {
		t.Error("noted too early")
	}
	if NoteAnswer(ctx); !request.Answered() {
		t.Error("not noted")
	}
}

// TestAnAnswerAboutNoRequestIsCounted: in the legacy era a question does not say which request it is about.
func TestAnAnswerAboutNoRequestIsCounted(t *testing.T) {
	answers := new(atomic.Uint64)
	h := trackAnswers(session.Handlers{Elicit: func(ctx context.Context, _ messages.ElicitRequest) (messages.ElicitResult, error) {
		NoteAnswer(ctx)
		return messages.ElicitResult{}, nil
	}}, answers, "")
	request := newCallTimeout(t.Context(), &messages.Spec{CallTimeout: -1, MaxCallTimeout: -1}) // a request without bounds is one as well
	defer request.Stop()
	if _, err := h.Elicit(request, messages.ElicitRequest{}); err != nil {
		t.Fatal(err)
	}
	if !request.Answered() || answers.Load() != 0 {
		t.Errorf("about a request: %v, %d", request.Answered(), answers.Load())
	}
	if _, err := h.Elicit(t.Context(), messages.ElicitRequest{}); err != nil {
		t.Fatal(err)
	}
	if answers.Load() != 1 || h.Sample != nil {
		t.Errorf("about none: %d", answers.Load())
	}
}
