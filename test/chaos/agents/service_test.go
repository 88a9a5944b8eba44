package agents

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// endedService answers every call with a failure of a class.
type endedService struct {
	serve.Service
	class messages.Class
}

func (s endedService) Handle(context.Context, *serve.Request) ([]byte, *serve.Error) {
	return []byte(`{"content":[],"isError":true,"_meta":{"mcpvisor/outcome":"unknown","mcpvisor/class":"` + string(s.class) + `"}}`), nil
}

// TestOnlyWhatIsTakenBackIsGivenUp: of a call whose agent has gone the endpoint's end is recorded as giving it up only if the call was
// cancelled by it. One that ends by its own time in that instant is not (seed 9300912).
func TestOnlyWhatIsTakenBackIsGivenUp(t *testing.T) {
	for class, want := range map[messages.Class][]history.Kind{
		messages.ClassCanceled: {history.GivenUp, history.End},
		messages.ClassTimeout:  {history.End},
	} {
		var got []history.Kind
		f := &Fleet{Options: Options{
			Record: func(e history.Event) { got = append(got, e.Kind) },
			Now:    func() time.Duration { return time.Second },
			Check:  func(string, string, string) {},
		}}
		a := newAgent(f, scenario.PlannedAgent{Name: "agent-1"}, 1)
		f.service = &observedService{Service: endedService{class: class}, orphans: map[string]*agent{"a1-1": a}, done: map[string]served{}, begun: map[string]bool{}, making: map[string]int{},
			callers: map[string]string{"a1-1": "anna"}}
		a.calls["a1-1"] = &openCall{event: history.Event{Side: history.Caller, Kind: history.Call, Call: "a1-1", Server: "s1", Tool: "write"}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = f.service.Handle(ctx, &serve.Request{Session: &serve.Session{Principal: serve.Principal{Name: "anna"}}, Method: "tools/call", Params: json.RawMessage(`{"name":"write","arguments":{"call":"a1-1"}}`)})
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", class, got, want)
		}
	}
}

// TestWhatAnotherPrincipalIsToldIsNoAnswer: a request with the state of another principal names its call. What it is answered is not what the
// agent of the call is told that leaves afterwards (seed 9310525).
func TestWhatAnotherPrincipalIsToldIsNoAnswer(t *testing.T) {
	s := &observedService{Service: endedService{class: messages.ClassRejected}, orphans: map[string]*agent{}, done: map[string]served{}, begun: map[string]bool{}, making: map[string]int{}, callers: map[string]string{}}
	s.noteCaller("a1-1", "anna")
	for _, principal := range []string{"ben", "anna"} {
		_, _ = s.Handle(t.Context(), &serve.Request{Session: &serve.Session{Principal: serve.Principal{Name: principal}}, Method: "tools/call",
			Params: json.RawMessage(`{"name":"write","arguments":{"call":"a1-1"}}`)})
		if _, kept := s.done["a1-1"]; kept != (principal == "anna") {
			t.Errorf("the answer to %s is kept: %v", principal, kept)
		}
	}
}

// TestARefusedStreamIsLeft: the refusal of a stream whose session has ended has no reader, and holds neither its handler nor the end of
// the agents (an alarm of I12 on busy machines, of entries that a manager kept which was not closed).
func TestARefusedStreamIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fleet{lifetime: t.Context()}
		f.client = f.memoryTransport(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the session is not known", http.StatusNotFound)
		}))
		l := newHTTPLink(&session{agent: newAgent(f, scenario.PlannedAgent{Name: "agent-1"}, 1)})
		if _, more := l.readStream(t.Context(), 0, ""); more {
			t.Error("the agent opens another stream of a session that has ended")
		}
		f.running.Wait()
	})
}

// TestASessionIsInUseWhileItsRequestIsServed: a prompt waits for the answer of an agent that has gone, and its session stays until the request has
// ended, or must have (seed 20301114).
func TestASessionIsInUseWhileItsRequestIsServed(t *testing.T) {
	now := time.Second
	s := &observedService{Service: endedService{}, now: func() time.Duration { return now }}
	r := &serve.Request{Session: &serve.Session{}, Method: "prompts/get", Header: http.Header{}}
	first, second := s.beginUse(r), s.beginUse(r)
	count := func(want int, when string) {
		t.Helper()
		if n := s.countUsed(15 * time.Second); n != want {
			t.Errorf("%s: %d sessions are in use, want %d", when, n, want)
		}
	}
	now += 10 * time.Minute
	count(1, "while two requests are served")
	first()
	count(1, "while one is served")
	second()
	now += 10 * time.Second
	count(1, "a moment afterwards")
	now += 10 * time.Second
	count(0, "later")
	_ = s.beginUse(r)
	now += longestRequest
	count(0, "while a request does not end")
	s.beginUse(&serve.Request{Session: &serve.Session{}, Method: "prompts/get"})
	count(0, "with an agent on lines")
}
