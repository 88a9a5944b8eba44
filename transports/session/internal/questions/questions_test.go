package questions_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/questions"
)

// A question that cannot be answered is refused before a person sees it, and what the person gave goes back as it is.
func TestElicitationIsCheckedBeforeAPersonIsAsked(t *testing.T) {
	accept := messages.ElicitResult{Action: messages.ElicitAccept, Content: []byte("{\n\"a\":1}")}
	for _, c := range []struct {
		params   string
		allowURL bool
		result   messages.ElicitResult
		want     string // the result; refused if empty
		asked    bool
	}{
		{`7`, true, accept, ``, false},
		{`{"message":"m"}`, true, accept, ``, false},
		{`{"mode":"url","url":"https://example.org"}`, false, accept, ``, false},
		{`{"mode":"url"}`, true, accept, ``, false},
		{`{"mode":"dance","requestedSchema":{}}`, true, accept, ``, false},
		{`{"requestedSchema":{}}`, false, accept, `{"action":"accept","content":{ "a":1}}`, true},
		{`{"mode":null,"requestedSchema":{}}`, false, messages.ElicitResult{Action: messages.ElicitDecline, Content: []byte(`{"a":1}`)}, `{"action":"decline"}`, true},
		{`{"mode":"url","url":"https://example.org"}`, true, accept, `{"action":"accept"}`, true},
		{`{"requestedSchema":{}}`, false, messages.ElicitResult{Action: messages.ElicitAccept, Content: []byte(`[1]`)}, ``, true},
		{`{"requestedSchema":{}}`, false, messages.ElicitResult{Action: "perhaps"}, ``, true},
	} {
		asked := false
		raw, refused := questions.AnswerElicitation(t.Context(), []byte(c.params), c.allowURL,
			func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error) {
				asked = true
				return c.result, nil
			})
		if string(raw) != c.want || (refused == nil) != (c.want != "") || asked != c.asked {
			t.Errorf("%s: %s, %+v, a person was asked: %v", c.params, raw, refused, asked)
		}
	}
}

// A server learns that its question was refused, and none of the words of the handler's error.
func TestAServerLearnsNothingOfAHandlersError(t *testing.T) {
	for _, err := range []error{
		errors.New("secret"), &messages.Error{Class: messages.ClassDenied, Text: "secret"}, &messages.Error{Class: messages.ClassConfig, Text: "secret", Err: messages.ErrNotShown},
	} {
		_, refused := questions.AnswerRoots(t.Context(), func(context.Context) ([]messages.Root, error) { return nil, err })
		if refused == nil || refused.Text == "" || strings.Contains(refused.Text, "secret") {
			t.Errorf("%v: the server gets %+v", err, refused)
		}
	}
	if raw, refused := questions.AnswerRoots(t.Context(), func(context.Context) ([]messages.Root, error) { return nil, nil }); string(raw) != `{"roots":[]}` {
		t.Errorf("no roots are %s, %+v", raw, refused)
	}
}

// Requests that wait for one elicitation are woken together, also if the server announces it twice; what nothing waits for is
// ignored and forgotten.
func TestACompletionWakesAllWhoWait(t *testing.T) {
	var completions questions.Completions
	elicitations := []questions.URLElicitation{{ID: "a"}}
	completions.Complete("a")
	one, forgetOne := completions.Watch(elicitations)
	two, forgetTwo := completions.Watch(elicitations)
	select {
	case <-one[0]:
		t.Error("an announcement from before counts")
	default:
	}
	completions.Complete("a")
	completions.Complete("a")
	<-one[0]
	<-two[0]
	forgetOne()
	forgetTwo()
	later, forget := completions.Watch(elicitations)
	defer forget()
	select {
	case <-later[0]:
		t.Error("an elicitation that was forgotten counts as completed")
	default:
	}
}
