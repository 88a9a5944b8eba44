package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// call calls a tool without waiting for its end: heard is what has come on the stream of the call.
func (e *endpoint) call(a *agent, tool string) (heard func() string, ended chan struct{}) {
	w := &lockedRecorder{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(e.t.Context(), http.MethodPost, "http://localhost/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":"`+tool+`","method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + a.token}, "Mcp-Session-Id": {a.id}}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		e.h.ServeHTTP(w, r)
	}()
	return func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.Body.String()
	}, ended
}

// waitsAndAsks is a server with two tools: wait waits for release, ask waits for mayAsk and asks for a name. It says in begun that it has a call.
func waitsAndAsks(name string, begun, mayAsk, release chan struct{}) *supervisortest.Server {
	return supervisortest.NewServer(name, supervisortest.Tool{Name: "wait", Handle: func(ctx context.Context, _ supervisortest.Call) (string, error) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return "waited", nil
	}}, supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
		begun <- struct{}{}
		<-mayAsk
		got, err := c.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`))
		return string(got), err
	}})
}

// An agent has two calls at a server that does not say about which of them it asks, and a newer one at another server: the question comes on
// the stream of a call at the server that asks. On that of the other server's it would end with that call, and be taken for its question.
func TestAQuestionComesOnTheStreamOfItsServer(t *testing.T) {
	begun, mayAsk, release := make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
	e := start(t, gateway.PrefixAlways, waitsAndAsks("one", begun, mayAsk, release), waitsAndAsks("two", begun, mayAsk, release))
	a := e.agent("a", "/mcp", `{"elicitation":{}}`)
	askHeard, askEnded := e.call(a, "one__ask")
	<-begun
	waitHeard, waitEnded := e.call(a, "one__wait")
	<-begun
	otherHeard, otherEnded := e.call(a, "two__wait") // the newest request of the session
	<-begun
	close(mayAsk)
	for !strings.Contains(askHeard()+waitHeard()+otherHeard(), "elicitation/create") {
		select {
		case <-askEnded:
			t.Fatalf("no agent was asked: %s", askHeard())
		case <-time.After(time.Millisecond):
		}
	}
	if got := otherHeard(); strings.Contains(got, "elicitation/create") {
		t.Errorf("the question of one came on the stream of a call at two: %s", got)
	}
	a.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": a.id},
		`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"anna"}}}`)
	<-askEnded
	if got := askHeard(); !strings.Contains(got, `\"name\":\"anna\"`) {
		t.Errorf("the answer did not come: %s", got)
	}
	close(release)
	<-waitEnded
	<-otherEnded
}

// Of several calls of the agent at the server that asks, the question comes on the stream of the newest.
func TestAQuestionComesOnTheNewestStream(t *testing.T) {
	begun, mayAsk, release := make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
	e := start(t, gateway.PrefixAlways, waitsAndAsks("one", begun, mayAsk, release))
	a := e.agent("a", "/mcp", `{"elicitation":{}}`)
	waitHeard, waitEnded := e.call(a, "one__wait")
	<-begun
	askHeard, askEnded := e.call(a, "one__ask")
	<-begun
	close(mayAsk)
	awaitHeard(t, askEnded, func() string { return askHeard() + waitHeard() })
	if got := waitHeard(); strings.Contains(got, "elicitation/create") {
		t.Errorf("the question came on the stream of the older call: %s", got)
	}
	a.answer(`{"action":"accept","content":{"name":"anna"}}`)
	<-askEnded
	close(release)
	<-waitEnded
}

// An instance asks one of its principal's agents that can answer, although another one has the newest request there.
func TestAnInstanceAsksAnAgentThatCanAnswer(t *testing.T) {
	begun, mayAsk, release := make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
	one := waitsAndAsks("one", begun, mayAsk, release)
	one.Spec.Share = messages.SharePrincipal
	e, _ := startEndpoint(t, supervisor.Config{}, nil, map[string]serve.Principal{"a": {Name: "ann"}}, one)
	able, mute := e.agent("a", "/mcp", `{"elicitation":{}}`), e.agent("a", "/mcp", `{}`)
	askHeard, askEnded := e.call(able, "one__ask")
	<-begun
	_, waitEnded := e.call(mute, "one__wait")
	<-begun
	close(mayAsk)
	awaitHeard(t, askEnded, askHeard)
	able.answer(`{"action":"accept","content":{"name":"anna"}}`)
	<-askEnded
	if got := askHeard(); !strings.Contains(got, `\"name\":\"anna\"`) {
		t.Errorf("the answer did not come: %s", got)
	}
	close(release)
	<-waitEnded
}

// awaitHeard returns when the agent has heard a question.
func awaitHeard(t *testing.T, ended <-chan struct{}, heard func() string) {
	t.Helper()
	for !strings.Contains(heard(), "elicitation/create") {
		select {
		case <-ended:
			t.Fatalf("no agent was asked: %s", heard())
		case <-time.After(time.Millisecond):
		}
	}
}

// answer answers the agent's first question.
func (a *agent) answer(result string) {
	a.post(context.Background(), "/mcp", map[string]string{"Authorization": "Bearer " + a.token, "Mcp-Session-Id": a.id},
		`{"jsonrpc":"2.0","id":1,"result":`+result+`}`)
}

// A server learned that no agent could be asked, and not why, so that neither the model nor its person could know what to change.
func TestTheServerLearnsWhyNobodyCouldBeAsked(t *testing.T) {
	begun, mayAsk, release := make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
	close(mayAsk)
	e := start(t, gateway.PrefixAlways, waitsAndAsks("one", begun, mayAsk, release))
	a, b, mute := e.agent("a", "/mcp", `{"elicitation":{}}`), e.agent("b", "/mcp", `{"elicitation":{}}`), e.agent("b", "/mcp", `{}`)
	heard, ended := e.call(mute, "one__ask")
	<-ended
	if got := heard(); !strings.Contains(got, "nobody could be asked: the agent has not declared elicitation") {
		t.Errorf("of an agent that cannot answer: %s", got)
	}
	_, waitEnded := e.call(a, "one__wait")
	<-begun
	<-begun
	heard, ended = e.call(b, "one__ask")
	<-ended
	if got := heard(); !strings.Contains(got, "nobody could be asked: agents share the server, and it does not say to whose request the question belongs") {
		t.Errorf("beside the call of another agent: %s", got)
	}
	close(release)
	<-waitEnded
}

// The advice to share a server by principal is none for the instance of one, whose agents lack what is asked for, or have no request there.
func TestWhyNobodyIsAskedOfAnInstance(t *testing.T) {
	cfg := supervisor.Config{}
	gateway.PassQuestions(&cfg)
	for caller, want := range map[string]string{"": "with share: principal", "ann": "no agent that can be asked so"} {
		ctx := t.Context()
		if caller != "" {
			ctx = supervisor.WithCaller(ctx, caller)
		}
		_, elicit := cfg.Elicit(ctx, supervisor.ElicitRequest{Server: "one"})
		_, sample := cfg.Sample(ctx, supervisor.SampleRequest{Server: "one"})
		for _, err := range []error{elicit, sample} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("asked for %q: %v", caller, err)
			}
		}
	}
}

// A server of the legacy era that asks for the roots while a call runs, because it is told that they have changed, gets those of the call's agent
// and then those of the other agents that share it. Once it got the agent's alone, and worked in no directory of the others any more.
func TestRootsAskedDuringACallAreThoseOfAllAgents(t *testing.T) {
	asks := supervisortest.NewServer("one", supervisortest.Tool{Name: "ask", Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
		got, err := c.Ask(ctx, "roots/list", nil)
		return string(got), err
	}})
	var cfg supervisor.Config
	questions := gateway.PassQuestions(&cfg)
	questions.ShareRoots(func(string) []supervisor.Root {
		return []supervisor.Root{{URI: "file:///a"}, {URI: "file:///b", Name: "b"}}
	})
	m := supervisortest.StartConfig(t, cfg, asks)
	e := serveAll(t, m, gateway.Config{Manager: m, Questions: []*gateway.Questions{questions}})
	a := e.agent("a", "/mcp", `{"roots":{}}`)
	heard, ended := e.call(a, "one__ask")
	for !strings.Contains(heard(), "roots/list") {
		select {
		case <-ended:
			t.Fatalf("the agent was not asked: %s", heard())
		case <-time.After(time.Millisecond):
		}
	}
	a.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": a.id},
		`{"jsonrpc":"2.0","id":1,"result":{"roots":[{"uri":"file:///a","name":"mine"}]}}`)
	<-ended
	const want = `{\"roots\":[{\"uri\":\"file:///a\",\"name\":\"mine\"},{\"uri\":\"file:///b\",\"name\":\"b\"}]}`
	if got := heard(); !strings.Contains(got, want) {
		t.Errorf("the server got %s", got)
	}
	// An agent without roots is not asked, and leaves those of the others.
	if got := e.agent("a", "/mcp", `{}`).ask("tools/call", `{"name":"one__ask","arguments":{}}`); !strings.Contains(got, `file:///a\"},{\"uri\":\"file:///b`) {
		t.Errorf("without an agent's own the server got %s", got)
	}
}

// TestAQuestionIsNoTask has a server wish for a task in its question, although the gateway announces no such tasks. The gateway leaves the wish out:
// an agent that knows tasks would answer with one for which the server cannot ask. So the server gets its answer at once.
func TestAQuestionIsNoTask(t *testing.T) {
	e := start(t, gateway.PrefixAlways, supervisortest.NewServer("one", supervisortest.Tool{Name: "ask",
		Handle: func(ctx context.Context, c supervisortest.Call) (string, error) {
			got, err := c.Ask(ctx, "sampling/createMessage", json.RawMessage(`{"messages":[],"task":{"ttl":60000},"maxTokens":7}`))
			return string(got), err
		}}))
	a := e.agent("a", "/mcp", `{"sampling":{},"tasks":{"requests":{"sampling":{"createMessage":{}}}}}`)
	heard, ended := e.call(a, "one__ask")
	for !strings.Contains(heard(), "sampling/createMessage") {
		select {
		case <-ended:
			t.Fatalf("the agent was not asked: %s", heard())
		case <-time.After(time.Millisecond):
		}
	}
	if got := heard(); strings.Contains(got, "ttl") || !strings.Contains(got, `"params":{"messages":[],"maxTokens":7}`) {
		t.Errorf("the agent was asked %s", got)
	}
	a.post(t.Context(), "/mcp", map[string]string{"Authorization": "Bearer a", "Mcp-Session-Id": a.id},
		`{"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m"}}`)
	<-ended
	if got := heard(); !strings.Contains(got, `yes`) {
		t.Errorf("the server got %s", got)
	}
}
