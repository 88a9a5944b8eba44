package session

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/definitions"
)

// The records of abandoned requests are bounded. The oldest are merged in such a way that no caller counts as the
// only one by mistake.
func TestWhatLingersIsBounded(t *testing.T) {
	s := &Session{pending: map[int64]*pendingRequest{}}
	ann, bob := &messages.Answerer{}, &messages.Answerer{}
	s.rememberAbandoned(messages.WithAnswerer(t.Context(), bob), 1)
	for id := range int64(1000) {
		s.rememberAbandoned(messages.WithAnswerer(t.Context(), ann), id+2)
	}
	if n := len(s.abandonedRequests); n != maxAbandoned {
		t.Errorf("%d are remembered, %d is the bound", n, maxAbandoned)
	}
	if c := s.abandonedRequests[0].caller; c.answerer == ann || c.answerer == bob || s.abandonedRequests[1].caller.answerer != ann {
		t.Error("the oldest, which were two callers', are now one's")
	}
	for id := range int64(1000) {
		s.forgetAbandoned(id + 2)
	}
	if n := len(s.abandonedRequests); n != 1 {
		t.Errorf("after all answers %d are remembered, where one stands for those that are not told apart", n)
	}
}

// A request to read something is checked before anything is sent.
func TestWhatIsReadIsCheckedFirst(t *testing.T) {
	s := &Session{pending: map[int64]*pendingRequest{}}
	check := func(method, about, want string) {
		t.Helper()
		e := s.checkReadRequest(method, "URI", about)
		if want == "" && e != nil || want != "" && (e == nil || e.Outcome != messages.OutcomeNotSent || !strings.Contains(e.Text, want)) {
			t.Errorf("%.20q: %v, want %q", about, e, want)
		}
	}
	check("resources/read", "x:///1", "before the handshake")
	s.info.Store(&Info{ProtocolVersion: "2025-11-25", Capabilities: Capabilities{Resources: true}})
	check("resources/read", "x:///1", "")
	check("resources/read", "", "is empty")
	check("resources/read", "x:///\xff", "not valid UTF-8")
	check("resources/read", strings.Repeat("x", definitions.MaxURI), "")
	check("resources/read", strings.Repeat("x", definitions.MaxURI+1), "longer than 8192 bytes")
	check("resources/subscribe", "x:///1", "does not declare the capability resources.subscribe")
	check("prompts/get", "p", "does not declare the capability prompts")
	check("completion/complete", "p", "does not declare the capability completions")
	s.info.Store(&Info{ProtocolVersion: "2024-11-05", Capabilities: Capabilities{Prompts: true}})
	check("resources/read", "x:///1", "does not declare the capability resources")
	check("prompts/get", "p", "")
	check("completion/complete", "p", "")
}

// What another client wrote is held to the same: a server is not asked for what it does not declare (seed 9766664).
func TestWhatIsForwardedIsDeclared(t *testing.T) {
	s := &Session{pending: map[int64]*pendingRequest{}}
	s.info.Store(&Info{ProtocolVersion: "2025-11-25", Capabilities: Capabilities{Resources: true}})
	for _, method := range []string{"prompts/get", "completion/complete", "resources/subscribe"} {
		if _, err := s.Forward(t.Context(), method, "x", nil, nil); messages.OutcomeOf(err) != messages.OutcomeNotSent ||
			!strings.Contains(err.Error(), "does not declare the capability") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A server of the modern era identifies itself in _meta; serverInfo in the result counts too, and _meta wins if both
// are there.
func TestTheNameOfAServerIsReadInBothPlaces(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"2"}}`
	for text, want := range map[string]string{
		`{"supportedVersions":["2026-07-28"],"instructions":"i","serverInfo":{"name":"s","version":"1"}}`:            "s 1",
		`{"supportedVersions":["2026-07-28"],"instructions":"i",` + meta + `}`:                                       "m 2",
		`{"supportedVersions":["2026-07-28"],"instructions":"i","serverInfo":{"name":"s"},` + meta + `}`:             "m 2",
		`{"supportedVersions":["2026-07-28"],"instructions":"i","serverInfo":{"name":"s","version":"1"},"_meta":{}}`: "s 1",
	} {
		d := readDiscovery([]byte(text))
		if got := d.info.ServerInfo.Name + " " + d.info.ServerInfo.Version; got != want || len(d.supported) != 1 || d.info.Instructions != "i" {
			t.Errorf("%s: %+v", text, d)
		}
	}
}

// A question that names a task belongs to that task's call, and to no other.
func TestAQuestionBelongsToTheTaskThatItNames(t *testing.T) {
	ann, bob := &messages.Answerer{}, &messages.Answerer{}
	s := &Session{pending: map[int64]*pendingRequest{}, followedTasks: map[*followedTask]struct{}{
		{id: "anns", ctx: messages.WithAnswerer(t.Context(), ann)}: {},
		{id: "bobs", ctx: messages.WithAnswerer(t.Context(), bob)}: {},
		{id: "over"}: {},
	}}
	for range 10 { // the order of a map is chance
		for task, want := range map[string]*messages.Answerer{"anns": ann, "bobs": bob, "nobodys": nil, "over": nil, "": nil} {
			b := s.originOf(0, []byte(`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"`+task+`"}}}`))
			if (b.callerCtx != nil) != (want != nil) || want != nil && (messages.AnswererOf(b.callerCtx) != want || b.task == nil || b.task.id != task) {
				t.Errorf("a question about the task %q belongs to %+v", task, b)
			}
		}
	}
}
