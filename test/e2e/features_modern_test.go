package e2e_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// Everything that the Go SDK's everything-server offers and asks in the modern era, over a pipe and over HTTP, through the
// facade. Over HTTP it speaks this era only without sessions.
//
// The changes of lists come before the watched resource: on a pipe, the end of any subscription makes this server (v1.8.0)
// forget all those to lists.
func TestGoServerInTheModernEraOverStdioAndHTTP(t *testing.T) {
	checkLeaks(t)
	sdk := peers.Go(t)
	p := &testHandlers{roots: []supervisor.Root{{URI: "file:///work", Name: "work"}}}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{
		"stdio":     {Command: sdk, LogLevel: "debug"},
		"stateless": {Type: messages.HTTP, URL: startServer(t, goSDKServer(sdk, "true")).url("/"), LogLevel: "debug"},
	}}
	p.configure(&cfg)
	m := startManager(t, cfg)
	names := []string{"stdio", "stateless"}
	awaitConnected(t, m, names...)
	features := []struct {
		name string
		show func(t *testing.T, m *supervisor.Manager, p *testHandlers, server string)
	}{
		{"discover", goDiscover},
		{"resources-and-templates", goResources},
		{"prompts", goPrompts},
		{"listen-prompts-changed", goPromptsChanged},
		{"listen-tools-changed", goToolsChanged},
		{"listen-resource-updates", goUpdates},
		{"completion", goCompletion},
		{"progress", goProgress},
		{"logging", goLogging},
		{"input-required-elicitation", goElicitation},
		{"input-required-sampling", goSampling},
		{"input-required-roots", goRoots},
		{"input-required-several-at-once", goSeveral},
		{"input-required-rounds-and-state", goRounds},
		{"input-required-prompt", goPromptAsks},
		{"capabilities-are-declared", goCapabilities},
		{"header-of-an-argument", goHeader},
		{"ping", func(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) { checkPing(t, m, server) }},
	}
	for _, f := range features {
		t.Run(f.name, func(t *testing.T) {
			for _, server := range names {
				t.Run(server, func(t *testing.T) { f.show(t, m, p, server) })
			}
		})
	}
	for _, name := range names {
		if st := statusOf(t, m, name); st.Status != messages.Connected || st.Restarts != 0 || st.Era != messages.EraModern {
			t.Errorf("%s: %s, era %s, %d restarts", name, st.Status, st.Era, st.Restarts)
		}
	}
}

func goDiscover(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	st := statusOf(t, m, server)
	if st.Era != messages.EraModern || st.ProtocolVersion != "2026-07-28" ||
		st.ServerInfo.Name != "mcp-conformance-test-server" || len(st.Tools) < 20 {
		t.Errorf("%s, version %s, %+v, %d tools", st.Era, st.ProtocolVersion, st.ServerInfo, len(st.Tools))
	}
}

func goResources(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	all, err := m.Resources(testContext(t, bound), server)
	if err != nil || len(all) != 3 || !slices.ContainsFunc(all, func(r messages.Resource) bool {
		return r.URI == "test://static-binary" && r.MIMEType == "image/png" && r.Server == server
	}) {
		t.Errorf("resources %+v, %v", all, err)
	}
	text, err := m.ReadServerResource(testContext(t, bound), server, "test://static-text")
	if err != nil || text.Text() != "This is the content of the static text resource." {
		t.Errorf("a text: %+v, %v", text, err)
	}
	binary, err := m.ReadServerResource(testContext(t, bound), server, "test://static-binary")
	if err != nil || len(binary.Contents()) != 1 {
		t.Fatalf("bytes: %+v, %v", binary, err)
	}
	if b, err := binary.Contents()[0].Bytes(); err != nil || !strings.HasPrefix(string(b), "\x89PNG") {
		t.Errorf("the bytes: %.20q, %v", b, err)
	}
	templates, err := m.ResourceTemplates(testContext(t, bound), server)
	if err != nil || len(templates) != 1 || templates[0].URITemplate != "test://template/{id}/data" {
		t.Errorf("templates %+v, %v", templates, err)
	}
	made, err := m.ReadServerResource(testContext(t, bound), server, "test://template/grüße 1/data")
	if err == nil && !containsWords(made.Text(), `"templateTest": true`) || err != nil && !errors.Is(err, supervisor.ErrRejected) {
		t.Errorf("made of a template: %+v, %v", made, err)
	}
	made, err = m.ReadServerResource(testContext(t, bound), server, "test://template/17/data")
	if err != nil || !containsWords(made.Text(), `"id": "17"`) {
		t.Errorf("made of a template: %+v, %v", made, err)
	}
	if _, err = m.ReadServerResource(testContext(t, bound), server, "test://nothing"); !errors.Is(err,
		supervisor.ErrUnknownResource) {
		t.Errorf("a resource that is not there: %v", err)
	}
}

func goUpdates(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	const uri = "test://watched-resource"
	w := m.Watch(256)
	defer w.Close()
	if err := m.SubscribeResource(testContext(t, bound), server, uri); err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, w, "the resource was updated", func(e messages.Event) bool {
		return e.Kind == messages.EventResourceUpdated && e.Server == server && e.URI == uri
	})
	if err := m.UnsubscribeResource(testContext(t, bound), server, uri); err != nil {
		t.Error(err)
	}
}

func goPrompts(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	all, err := m.Prompts(testContext(t, bound), server)
	i := slices.IndexFunc(all, func(p messages.Prompt) bool { return p.Name == "test_prompt_with_arguments" })
	if err != nil || i < 0 || all[i].Title != "Prompt With Arguments" || len(all[i].Arguments) != 2 {
		t.Fatalf("prompts %+v, %v", all, err)
	}
	got, err := m.GetPrompt(testContext(t, bound), "mcp__"+server+"__test_prompt_with_arguments",
		map[string]string{"arg1": "ä", "arg2": `"b"`})
	if err != nil || got.Description != "A prompt with arguments" || len(got.Messages()) != 1 ||
		got.Messages()[0].Content.Text != `Prompt with arguments: arg1='ä', arg2='"b"'` {
		t.Errorf("a prompt: %+v, %v", got, err)
	}
	got, err = m.GetServerPrompt(testContext(t, bound), server, "test_prompt_with_image", nil)
	if err != nil || got.Messages()[0].Content.Type != "image" || got.Messages()[0].Content.MIMEType != "image/png" {
		t.Errorf("a prompt with an image: %+v, %v", got, err)
	}
	if _, err := m.GetServerPrompt(testContext(t, bound), server, "nothing", nil); !errors.Is(err, supervisor.ErrUnknownPrompt) {
		t.Errorf("a prompt that is not there: %v", err)
	}
}

func goPromptsChanged(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	if _, err := m.Prompts(testContext(t, bound), server); err != nil {
		t.Fatal(err)
	}
	w := m.Watch(256)
	defer w.Close()
	mustCall(t, m, server, "test_trigger_prompt_change", nil)
	awaitEvent(t, w, "the prompts changed", func(e messages.Event) bool {
		return e.Kind == messages.EventPrompts && e.Server == server
	})
	all, err := m.Prompts(testContext(t, bound), server)
	if err != nil || !slices.ContainsFunc(all, func(p messages.Prompt) bool {
		return p.Name == "__transient_prompt_for_list_changed"
	}) {
		t.Errorf("prompts %+v, %v", all, err)
	}
}

func goToolsChanged(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	const added = "__transient_tool_for_list_changed"
	mustCall(t, m, server, "test_trigger_tool_change", nil)
	eventually(t, "the new tool is in the catalog", func() bool { return slices.Contains(toolNames(m, server), added) })
	mustCall(t, m, server, added, nil)
}

func goCompletion(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	got, err := m.Complete(testContext(t, bound), server, messages.CompleteRequest{
		Prompt: "test_prompt_with_arguments", Argument: "arg1", Value: "x",
	})
	if err != nil || len(got.Values) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func goProgress(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	var steps []supervisor.Progress
	res, err := m.CallServerTool(testContext(t, bound), server, "test_tool_with_progress", nil,
		supervisor.WithProgress(func(p supervisor.Progress) { steps = append(steps, p) }))
	if err != nil || res.IsError {
		t.Fatalf("%v, %v", res, err)
	}
	want := []supervisor.Progress{{Progress: 0, Total: 100, Message: "Completed step 0 of 100"},
		{Progress: 50, Total: 100, Message: "Completed step 50 of 100"},
		{Progress: 100, Total: 100, Message: "Completed step 100 of 100"}}
	if !slices.Equal(steps, want) {
		t.Errorf("progress %+v", steps)
	}
}

func goLogging(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	w := m.Watch(256)
	defer w.Close()
	mustCall(t, m, server, "test_tool_with_logging", nil)
	awaitEvent(t, w, "a log message", func(e messages.Event) bool {
		return e.Kind == messages.EventLog && e.Server == server && e.Log != nil && e.Log.Level == "info" &&
			string(e.Log.Data) == `"Tool execution completed"`
	})
}

func goElicitation(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	p.setAnswer(acceptWith(`{"name":"Ada"}`))
	checkText(t, m, server, "test_input_required_result_elicitation", nil, "Hello, Ada!")
	if r := p.lastElicitation(t); r.Server != server || r.Mode != messages.ElicitForm || r.Message == "" || len(r.Schema) == 0 {
		t.Errorf("the person was asked %+v", r)
	}
}

func goSampling(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	checkText(t, m, server, "test_input_required_result_sampling", nil, "Sampling response: Paris")
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.samplings[len(p.samplings)-1]; r.Server != server || !containsWords(string(r.Params), "capital of France") {
		t.Errorf("the program was asked by %s: %s", r.Server, r.Params)
	}
}

func goRoots(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	checkText(t, m, server, "test_input_required_result_list_roots", nil, "Client exposed 1 root(s): file:///work")
}

func goSeveral(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	p.setAnswer(acceptWith(`{"name":"Grace"}`))
	checkText(t, m, server, "test_input_required_result_multiple_inputs", nil, "Paris Grace — 1 root(s) visible")
}

func goRounds(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	p.setAnswer(func(r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
		switch {
		case containsWords(r.Message, "name"):
			return acceptWith(`{"name":"Alan"}`)(r)
		case containsWords(r.Message, "step 2"):
			return acceptWith(`{"color":"green"}`)(r)
		}
		return acceptWith(`{"ok":true}`)(r)
	})
	checkText(t, m, server, "test_input_required_result_multi_round", nil, "Multi-round complete: Alan likes green")
	const ok = "state-ok: requestState received and confirmation accepted"
	checkText(t, m, server, "test_input_required_result_request_state", nil, ok)
	checkText(t, m, server, "test_input_required_result_tampered_state", nil, ok)
	checkText(t, m, server, "test_input_required_result_capabilities", nil, "Capability-aware input requests fulfilled")
}

func goPromptAsks(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	p.setAnswer(acceptWith(`{"context":"a test"}`))
	got, err := m.GetServerPrompt(testContext(t, bound), server, "test_input_required_result_prompt", nil)
	if err != nil || len(got.Messages()) != 1 || got.Messages()[0].Content.Text != "Context: a test" {
		t.Errorf("a prompt that asks: %+v, %v", got, err)
	}
}

func goCapabilities(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	checkText(t, m, server, "test_missing_capability", nil, "Client declared the sampling capability; tool executed.")
}

// Over HTTP the server compares the header with the argument, and refuses what differs. (An empty text it takes for a
// missing header: v1.8.0.)
func goHeader(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	for _, region := range []string{"eu-west", "größe", " padded ", "=?base64?eA==?=", "a\nb"} {
		checkText(t, m, server, "test_x_mcp_header", object{"region": region, "level": 3}, "region="+region)
	}
}

// Without anybody who answers, a server of the modern era is told so, and says what it misses; what it asks for all the
// same costs its call.
func TestGoServerIsToldNothingThatNobodyAnswers(t *testing.T) {
	checkLeaks(t)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"go": {Command: peers.Go(t)}}})
	awaitConnected(t, m, "go")
	_, err := m.CallServerTool(testContext(t, bound), "go", "test_missing_capability", nil)
	var e *supervisor.Error
	if !errors.As(err, &e) || e.Outcome != messages.OutcomeRejected || e.Code != -32021 ||
		!containsWords(string(e.Data), `"requiredCapabilities"`, "sampling") {
		t.Errorf("a capability that is missing: %v (%+v)", err, e)
	}
	checkText(t, m, "go", "test_input_required_result_capabilities", nil,
		"No declared client capability supports an in-band input request")
	_, err = m.CallServerTool(testContext(t, bound), "go", "test_input_required_result_sampling", nil)
	if !errors.As(err, &e) || e.Class != messages.ClassProtocol || !containsWords(err.Error(), "sampling", "not announced") {
		t.Errorf("asked for what was not announced: %v", err)
	}
	checkText(t, m, "go", "test_simple_text", nil, "This is a simple text response for testing.")
}

// The same server in the legacy era: it asks by requests of its own.
func TestGoServerInTheLegacyEraAsksByRequests(t *testing.T) {
	checkLeaks(t)
	sdk := peers.Go(t)
	p := &testHandlers{}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{
		"stdio": {Command: sdk, Era: messages.EraLegacy},
		// It says itself that with sessions it speaks only the versions of this era.
		"http": {Type: messages.HTTP, URL: startServer(t, goSDKServer(sdk, "false")).url("/")},
	}}
	p.configure(&cfg)
	m := startManager(t, cfg)
	awaitConnected(t, m, "stdio", "http")
	for _, server := range []string{"stdio", "http"} {
		if st := statusOf(t, m, server); st.Era != messages.EraLegacy || st.ProtocolVersion != "2025-11-25" {
			t.Errorf("%s is spoken to in %s, version %s", server, st.Era, st.ProtocolVersion)
		}
		t.Run("sampling/"+server, func(t *testing.T) {
			checkText(t, m, server, "test_sampling", object{"prompt": "capital?"}, "LLM response: Paris")
		})
		t.Run("elicitation/"+server, func(t *testing.T) {
			p.setAnswer(acceptWith(`{"username":"ada"}`))
			checkText(t, m, server, "test_elicitation", object{"message": "Who are you?"},
				"Elicitation result: action=accept, content=map[username:ada]")
			if r := p.lastElicitation(t); r.Server != server || r.Message != "Who are you?" {
				t.Errorf("the person was asked %+v", r)
			}
			p.setAnswer(nil)
			checkText(t, m, server, "test_elicitation", object{"message": "?"},
				"Elicitation result: action=decline, content=map[]")
		})
		t.Run("elicitation-defaults/"+server, func(t *testing.T) {
			p.setAnswer(acceptWith(`{"age":31}`))
			checkText(t, m, server, "test_elicitation_sep1034_defaults", nil, "Elicitation result: action=accept, "+
				"content=map[age:31 name:John Doe score:95.5 status:active verified:true]")
		})
		t.Run("elicitation-that-does-not-fit/"+server, func(t *testing.T) {
			p.setAnswer(acceptWith(`{"username":17}`)) // a mistake of the program never reaches the server
			res := mustCall(t, m, server, "test_elicitation", object{"message": "Who are you?"})
			if !res.IsError || containsWords(res.Text(), "17") {
				t.Errorf("an answer that does not fit: %s", res.Raw)
			}
		})
		t.Run("ping/"+server, func(t *testing.T) { checkPing(t, m, server) })
	}
}

// A person who declines each time is not asked for ever: after ten questions in a row the server is refused without being
// heard, and its call ends.
func TestGoServerThatAsksAgainAndAgainIsRefused(t *testing.T) {
	checkLeaks(t)
	p := &testHandlers{}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"go": {Command: peers.Go(t)}}}
	p.configure(&cfg)
	m := startManager(t, cfg)
	awaitConnected(t, m, "go")
	res, err := m.CallServerTool(testContext(t, bound), "go", "test_input_required_result_elicitation", nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if messages.OutcomeOf(err) != messages.OutcomeUnknown || len(p.elicitations) < 10 || len(p.elicitations) > 32 {
		t.Errorf("declined %d times: %v, %v", len(p.elicitations), res, err)
	}
}

// Bytes are kept: what a server sends reaches the caller as it was sent, numbers beyond 2^53 and fields that no program here knows
// included. The fixture writes its results itself, so that no library stands between.
func TestBytesAreKept(t *testing.T) {
	checkLeaks(t)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"bytes": fixtureSpec("bad-results")}})
	awaitConnected(t, m, "bytes")
	const sent = `{"content":[],"structuredContent":{"sum":9007199254740993},"unknownField":{"kept":true}}`
	res := mustCall(t, m, "bytes", "big-number", nil)
	if string(res.Raw) != sent || string(res.Structured()) != `{"sum":9007199254740993}` || res.Flaw() != "" {
		t.Errorf("%s, flaw %q, was sent as\n%s", res.Raw, res.Flaw(), sent)
	}
	for _, name := range []string{"echo", "add"} {
		if e, ok := m.Tools().LookupTool("bytes", name); !ok || !json.Valid(e.Tool.Raw) ||
			string(e.Tool.Raw) != servers.Definition(name) {
			t.Errorf("%s is kept as %s", name, e.Tool.Raw)
		}
	}
	args := json.RawMessage(`{"a":9007199254740993,"b":0,"unknown":[1e400]}`)
	if _, err := m.CallServerTool(testContext(t, bound), "bytes", "add", args); err != nil {
		t.Error(err)
	}
}
