package session

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A request whose idle timeout is paused has no deadline, and must not keep requestTimer from the other requests.
func TestAPausedClockKeepsTheAlarmFromNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Session{pending: map[int64]*pendingRequest{}}
		begin := time.Now()
		depart := func(timeout time.Duration) (*CallTimeout, *pendingRequest) {
			p := NewCallTimeout(t.Context(), timeout, 0)
			f, e := s.registerRequest(p, nil, false)
			if e != nil {
				t.Fatal(e)
			}
			return p, f
		}
		_, first := depart(10 * time.Millisecond)
		_, second := depart(20 * time.Millisecond)
		for range 20 {
			p, _ := depart(time.Millisecond)
			p.pauseIdle()
		}
		for i, f := range []*pendingRequest{first, second} {
			select {
			case <-f.answer:
				if took, want := time.Since(begin), time.Duration(i+1)*10*time.Millisecond; took != want {
					t.Errorf("request %d ended after %v, want %v", i, took, want)
				}
			case <-time.After(time.Minute):
				t.Errorf("request %d has not ended after a minute", i)
			}
		}
	})
}

// A function of AfterFunc that was stopped does not run at the end of the CallTimeout, in any order of stops, and
// stop reports true only once.
func TestWhoHasLeftAPatienceIsNotTold(t *testing.T) {
	for leaves := range 3 {
		p := NewCallTimeout(t.Context(), time.Hour, 0)
		notified := make([]int, 3)
		stops := make([]func() bool, 3)
		for i := range notified {
			stops[i] = p.AfterFunc(func() { notified[i]++ })
		}
		if !stops[leaves]() || stops[leaves]() {
			t.Errorf("listener %d did not leave once", leaves)
		}
		p.Stop()
		for i, n := range notified {
			if (i == leaves) != (n == 0) || n > 1 {
				t.Errorf("with listener %d gone, listener %d was told %d times", leaves, i, n)
			}
		}
	}
}

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
	if c := s.abandonedRequests[0].caller; c == ann || c == bob || s.abandonedRequests[1].caller != ann {
		t.Error("the oldest, which were two callers', are now one's")
	}
	for id := range int64(1000) {
		s.forgetAbandoned(id + 2)
	}
	if n := len(s.abandonedRequests); n != 1 {
		t.Errorf("after all answers %d are remembered, where one stands for those that are not told apart", n)
	}
}

// readTool reads every member of a tool's definition.
func TestEveryMemberOfAToolIsRead(t *testing.T) {
	yes, no := true, false
	tool, reason := readTool([]byte(`{"name":"n","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},` +
		`"annotations":{"title":"a","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},` +
		`"icons":[{"src":"https://example.org/i.png","mimeType":"image/png","sizes":["48x48"]}],"execution":{"taskSupport":"required"}}`))
	tool.Raw = nil
	want := messages.Tool{Name: "n", Title: "T", Description: "d", InputSchema: []byte(`{"type":"object"}`), OutputSchema: []byte(`{"type":"object"}`),
		Annotations: &messages.Annotations{Title: "a", ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
		Icons:       []messages.Icon{{Src: "https://example.org/i.png", MIMEType: "image/png", Sizes: []string{"48x48"}}}, TaskSupport: "required"}
	if reason != "" || !reflect.DeepEqual(tool, want) {
		t.Errorf("%+v, %q", tool, reason)
	}
}

// A request to read something is checked before anything is sent.
func TestWhatIsReadIsCheckedFirst(t *testing.T) {
	s := &Session{pending: map[int64]*pendingRequest{}}
	has := func(*Capabilities) bool { return true }
	check := func(about, want string, declared func(*Capabilities) bool) {
		t.Helper()
		e := s.checkReadRequest("resources", "URI", about, declared)
		if want == "" && e != nil || want != "" && (e == nil || e.Outcome != messages.OutcomeNotSent || !strings.Contains(e.Text, want)) {
			t.Errorf("%.20q: %v, want %q", about, e, want)
		}
	}
	check("x:///1", "before the handshake", has)
	s.info.Store(&Info{})
	check("x:///1", "", has)
	check("", "is empty", has)
	check("x:///\xff", "not valid UTF-8", has)
	check(strings.Repeat("x", maxURI), "", has)
	check(strings.Repeat("x", maxURI+1), "longer than 8192 bytes", has)
	check("x:///1", "does not declare the capability resources", func(*Capabilities) bool { return false })
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

// The readers of resources, templates and prompts read every member, and quarantine a definition without a key.
func TestEveryMemberOfAnOfferIsRead(t *testing.T) {
	const rest = `"name":"n","title":"T","description":"d","mimeType":"text/plain","icons":[{"src":"https://example.org/i.png"}],` +
		`"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12"}`
	size, half := int64(7), 0.5
	icons := []messages.Icon{{Src: "https://example.org/i.png"}}
	notes := &messages.ResourceAnnotations{Audience: []string{"user"}, Priority: &half, LastModified: "2025-01-12"}
	resource, key, reason := readResource([]byte(`{"uri":"x:///1","size":7,` + rest + `}`))
	resource.Raw = nil
	if want := (messages.Resource{URI: "x:///1", Name: "n", Title: "T", Description: "d", MIMEType: "text/plain", Size: &size, Icons: icons,
		Annotations: notes}); key != "x:///1" || reason != "" || !reflect.DeepEqual(resource, want) {
		t.Errorf("%+v, %q, %q", resource, key, reason)
	}
	template, key, reason := readTemplate([]byte(`{"uriTemplate":"x:///{n}",` + rest + `}`))
	template.Raw = nil
	if want := (messages.ResourceTemplate{URITemplate: "x:///{n}", Name: "n", Title: "T", Description: "d", MIMEType: "text/plain", Icons: icons,
		Annotations: notes}); key != "x:///{n}" || reason != "" || !reflect.DeepEqual(template, want) {
		t.Errorf("%+v, %q, %q", template, key, reason)
	}
	prompt, key, reason := readPrompt([]byte(`{` + rest + `,"arguments":[{"name":"a","title":"A","description":"e","required":true},{"title":"no name"}]}`))
	prompt.Raw = nil
	if want := (messages.Prompt{Name: "n", Title: "T", Description: "d", Icons: icons,
		Arguments: []messages.PromptArgument{{Name: "a", Title: "A", Description: "e", Required: true}}}); key != "n" || reason != "" ||
		!reflect.DeepEqual(prompt, want) {
		t.Errorf("%+v, %q, %q", prompt, key, reason)
	}
	for _, raw := range []string{`7`, `{}`, `{"uri":"","uriTemplate":"","name":""}`, `{"uri":7,"uriTemplate":7,"name":7}`} {
		_, _, one := readResource([]byte(raw))
		_, _, two := readTemplate([]byte(raw))
		_, _, three := readPrompt([]byte(raw))
		if one == "" || two == "" || three == "" {
			t.Errorf("%s is an offer: %q, %q, %q", raw, one, two, three)
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
			b := s.originOf(0, []byte(`{"_meta":{"`+relatedTask+`":{"taskId":"`+task+`"}}}`))
			if (b.callerCtx != nil) != (want != nil) || want != nil && (messages.AnswererOf(b.callerCtx) != want || b.task == nil || b.task.id != task) {
				t.Errorf("a question about the task %q belongs to %+v", task, b)
			}
		}
	}
}

// Of the versions that both sides know, firstCommon takes the one that comes first in our order, not in the server's.
func TestOurOrderOfVersionsCounts(t *testing.T) {
	for _, c := range []struct {
		ours, theirs []string
		want         string
	}{
		{[]string{"c", "b", "a"}, []string{"a", "b"}, "b"}, {[]string{"c", "b", "a"}, []string{"b", "a", "c"}, "c"},
		{[]string{"c"}, []string{"a"}, ""}, {nil, []string{"a"}, ""}, {[]string{"a"}, nil, ""},
	} {
		if got := firstCommon(c.ours, c.theirs); got != c.want {
			t.Errorf("of %q and %q: %q, want %q", c.ours, c.theirs, got, c.want)
		}
	}
}
