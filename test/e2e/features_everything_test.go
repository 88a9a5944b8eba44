package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
)

// testHandlers is what the program that embeds the manager answers to servers, and what it was asked.
type testHandlers struct {
	mu           sync.Mutex
	elicitations []supervisor.ElicitRequest
	samplings    []supervisor.SampleRequest
	roots        []supervisor.Root
	answer       func(supervisor.ElicitRequest) (supervisor.ElicitResult, error)
}

func (p *testHandlers) configure(cfg *supervisor.Config) {
	cfg.Elicit, cfg.ElicitURL = p.elicit, true
	cfg.Sample, cfg.SampleTools = p.sample, true
	cfg.Roots = func(_ context.Context, server string) ([]supervisor.Root, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.Clone(p.roots), nil
	}
}

func (p *testHandlers) elicit(_ context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
	p.mu.Lock()
	p.elicitations = append(p.elicitations, r)
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		return supervisor.ElicitResult{Action: messages.ElicitDecline}, nil
	}
	return answer(r)
}

func (p *testHandlers) sample(_ context.Context, r supervisor.SampleRequest) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samplings = append(p.samplings, r)
	return json.RawMessage(`{"role":"assistant","model":"e2e","stopReason":"endTurn",` +
		`"content":{"type":"text","text":"Paris"}}`), nil
}

// setAnswer sets what is answered to questions from now on, and forgets what was asked.
func (p *testHandlers) setAnswer(answer func(supervisor.ElicitRequest) (supervisor.ElicitResult, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.elicitations = answer, nil
}

func acceptWith(content string) func(supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
	return func(supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
		r := supervisor.ElicitResult{Action: messages.ElicitAccept}
		if content != "" {
			r.Content = json.RawMessage(content)
		}
		return r, nil
	}
}

func (p *testHandlers) lastElicitation(t *testing.T) supervisor.ElicitRequest {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.elicitations) == 0 {
		t.Fatal("nobody was asked")
	}
	return p.elicitations[len(p.elicitations)-1]
}

// awaitEvent waits for an event of a server.
func awaitEvent(t *testing.T, w *supervisor.Watcher, what string, matches func(messages.Event) bool) {
	t.Helper()
	for e := range w.Events(testContext(t, bound)) {
		if matches(e) {
			return
		}
	}
	t.Fatalf("never told: %s", what)
}

// Everything that npm's server-everything offers and asks, over each transport that it speaks, through the facade.
func TestEverythingServerOverStdioSSEAndStreamableHTTP(t *testing.T) {
	checkLeaks(t)
	npm := peers.NPM(t)
	command, args := npm.Command(peers.Everything)
	p := &testHandlers{roots: []supervisor.Root{{URI: "file:///first", Name: "first"}}}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{
		"stdio": {Command: command, Args: args, LogLevel: "debug"},
		"http": {Type: messages.HTTP, URL: startServer(t, everythingServer(npm, "streamableHttp")).url("/mcp"),
			LogLevel: "debug"},
		"sse": {Type: messages.SSE, URL: startServer(t, everythingServer(npm, "sse")).url("/sse"), LogLevel: "debug"},
	}}
	p.configure(&cfg)
	m := startManager(t, cfg)
	names := []string{"stdio", "http", "sse"}
	awaitConnected(t, m, names...)
	features := []struct {
		name string
		show func(t *testing.T, m *supervisor.Manager, p *testHandlers, server string)
	}{
		{"instructions", everythingInstructions},
		{"resources", everythingResources},
		{"resource-templates", everythingTemplates},
		{"subscriptions-and-updates", everythingSubscriptions},
		{"prompts", everythingPrompts},
		{"completion", everythingCompletion},
		{"progress", everythingProgress},
		{"logging", everythingLogging},
		{"sampling", everythingSampling},
		{"elicitation-form", everythingElicitation},
		{"elicitation-url", everythingElicitationURL},
		{"elicitation-url-required", everythingElicitationRequired},
		{"roots-and-their-changes", everythingRoots},
		{"list-changed-of-resources", everythingResourcesChanged},
		{"ping", func(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) { checkPing(t, m, server) }},
		{"cancellation", func(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
			checkAbandonedCall(t, m, server, "trigger-long-running-operation", object{"duration": 3600, "steps": 36000})
		}},
	}
	for _, f := range features {
		t.Run(f.name, func(t *testing.T) {
			for _, server := range names {
				t.Run(server, func(t *testing.T) { f.show(t, m, p, server) })
			}
		})
	}
	for _, name := range names {
		if st := statusOf(t, m, name); st.Status != messages.Connected || st.Restarts != 0 || st.Era != messages.EraLegacy {
			t.Errorf("%s: %s, era %s, %d restarts", name, st.Status, st.Era, st.Restarts)
		}
	}
}

func everythingInstructions(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	st := statusOf(t, m, server)
	if !containsWords(st.Instructions, "Everything Server") || st.ServerInfo.Title != "Everything Reference Server" {
		t.Errorf("it says of itself %+v and %.100q", st.ServerInfo, st.Instructions)
	}
}

const features = "demo://resource/static/document/features.md"

func everythingResources(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	all, err := m.Resources(testContext(t, bound), server)
	i := slices.IndexFunc(all, func(r messages.Resource) bool { return r.URI == features })
	if err != nil || i < 0 || all[i].Server != server || all[i].MIMEType != "text/markdown" || !json.Valid(all[i].Raw) {
		t.Fatalf("resources %+v, %v", all, err)
	}
	res, err := m.ReadServerResource(testContext(t, bound), server, features)
	if err != nil || !strings.HasPrefix(res.Text(), "# Everything Server - Features") || res.Server != server {
		t.Errorf("a resource: %+v, %v", res, err)
	}
	_, err = m.ReadServerResource(testContext(t, bound), server, "demo://nothing")
	if !errors.Is(err, supervisor.ErrRejected) || !containsWords(err.Error(), server) {
		t.Errorf("a resource that is not there: %v", err)
	}
}

func everythingTemplates(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	all, err := m.ResourceTemplates(testContext(t, bound), server)
	if err != nil || !slices.ContainsFunc(all, func(r messages.ResourceTemplate) bool {
		return r.URITemplate == "demo://resource/dynamic/text/{resourceId}" && r.Server == server
	}) {
		t.Fatalf("templates %+v, %v", all, err)
	}
	text, err := m.ReadServerResource(testContext(t, bound), server, "demo://resource/dynamic/text/7")
	if err != nil || !containsWords(text.Text(), "Resource 7", "plaintext") {
		t.Errorf("a text made of a template: %+v, %v", text, err)
	}
	blob, err := m.ReadServerResource(testContext(t, bound), server, "demo://resource/dynamic/blob/7")
	if err != nil || len(blob.Contents()) != 1 {
		t.Fatalf("bytes made of a template: %+v, %v", blob, err)
	}
	if b, err := blob.Contents()[0].Bytes(); err != nil || !containsWords(string(b), "Resource 7", "base64 blob") {
		t.Errorf("the bytes: %q, %v", b, err)
	}
}

func everythingSubscriptions(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	const uri = "demo://resource/dynamic/text/1"
	w := m.Watch(256)
	defer w.Close()
	if err := m.SubscribeResource(testContext(t, bound), server, uri); err != nil {
		t.Fatal(err)
	}
	mustCall(t, m, server, "toggle-subscriber-updates", nil)
	awaitEvent(t, w, "the resource was updated", func(e messages.Event) bool {
		return e.Kind == messages.EventResourceUpdated && e.Server == server && e.URI == uri
	})
	if err := m.UnsubscribeResource(testContext(t, bound), server, uri); err != nil {
		t.Error(err)
	}
	mustCall(t, m, server, "toggle-subscriber-updates", nil)
}

func everythingPrompts(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	all, err := m.Prompts(testContext(t, bound), server)
	i := slices.IndexFunc(all, func(p messages.Prompt) bool { return p.Name == "args-prompt" })
	if err != nil || i < 0 || all[i].Qualified != "mcp__"+server+"__args-prompt" || len(all[i].Arguments) != 2 ||
		!all[i].Arguments[0].Required || all[i].Arguments[1].Required {
		t.Fatalf("prompts %+v, %v", all, err)
	}
	got, err := m.GetPrompt(testContext(t, bound), all[i].Qualified, map[string]string{"city": "Köln"})
	if err != nil || len(got.Messages()) != 1 || got.Messages()[0].Role != "user" ||
		got.Messages()[0].Content.Text != "What's weather in Köln?" {
		t.Errorf("a prompt: %+v, %v", got, err)
	}
	got, err = m.GetServerPrompt(testContext(t, bound), server, "resource-prompt",
		map[string]string{"resourceType": "Text", "resourceId": "3"})
	if err != nil || len(got.Messages()) != 2 || got.Messages()[1].Content.Type != "resource" {
		t.Errorf("a prompt with a resource: %s, %v", got.Raw, err)
	}
	if _, err := m.GetServerPrompt(testContext(t, bound), server, "args-prompt", nil); !errors.Is(err, supervisor.ErrRejected) {
		t.Errorf("a prompt without what it requires: %v", err)
	}
}

func everythingCompletion(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	got, err := m.Complete(testContext(t, bound), server, messages.CompleteRequest{
		Prompt: "completable-prompt", Argument: "department", Value: "S",
	})
	if err != nil || !slices.Equal(got.Values, []string{"Sales", "Support"}) {
		t.Errorf("completions %+v, %v", got, err)
	}
	got, err = m.Complete(testContext(t, bound), server, messages.CompleteRequest{
		Prompt: "completable-prompt", Argument: "name", Value: "", Context: map[string]string{"department": "Sales"},
	})
	if err != nil || !slices.Equal(got.Values, []string{"David", "Eve", "Frank"}) {
		t.Errorf("completions that depend on another argument: %+v, %v", got, err)
	}
	got, err = m.Complete(testContext(t, bound), server, messages.CompleteRequest{
		URITemplate: "demo://resource/dynamic/text/{resourceId}", Argument: "resourceId", Value: "5",
	})
	if err != nil || !slices.Equal(got.Values, []string{"5"}) {
		t.Errorf("completions of a template: %+v, %v", got, err)
	}
}

func everythingProgress(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	var steps []float64 // written by one goroutine at a time, and never after the call
	res, err := m.CallServerTool(testContext(t, bound), server, "trigger-long-running-operation",
		object{"duration": 0.4, "steps": 4}, supervisor.WithProgress(func(p supervisor.Progress) {
			if p.Total != 4 {
				t.Errorf("a total of %v", p.Total)
			}
			steps = append(steps, p.Progress)
		}))
	if err != nil || res.IsError || !containsWords(res.Text(), "completed") {
		t.Fatalf("%v, %v", res, err)
	}
	// The last one is sent just before the answer, which may overtake it on another stream.
	if len(steps) < 3 || !slices.IsSorted(steps) || steps[0] != 1 {
		t.Errorf("progress %v", steps)
	}
}

func everythingLogging(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	w := m.Watch(256)
	defer w.Close()
	mustCall(t, m, server, "toggle-simulated-logging", nil)
	awaitEvent(t, w, "a log message", func(e messages.Event) bool {
		return e.Kind == messages.EventLog && e.Server == server && e.Log != nil &&
			slices.Contains(messages.LogLevels, e.Log.Level) && containsWords(string(e.Log.Data), "message")
	})
	mustCall(t, m, server, "toggle-simulated-logging", nil)
	if lines := m.Logs(server); len(lines) == 0 || lines[len(lines)-1].Time.IsZero() {
		t.Errorf("logs %+v", lines)
	}
}

func everythingSampling(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	res := mustCall(t, m, server, "trigger-sampling-request", object{"prompt": "What is the capital?", "maxTokens": 77})
	if res.IsError || !containsWords(res.Text(), `"text": "Paris"`, `"model": "e2e"`) {
		t.Errorf("the server got %s", res.Raw)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.samplings[len(p.samplings)-1]; r.Server != server || !containsWords(string(r.Params), `"maxTokens":77`,
		"What is the capital?", "You are a helpful test server.") {
		t.Errorf("the program was asked by %s: %s", r.Server, r.Params)
	}
}

func everythingElicitation(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	p.setAnswer(acceptWith(`{"name":"Ada","number":9.5}`))
	res := mustCall(t, m, server, "trigger-elicitation-request", nil)
	if res.IsError || !containsWords(res.Text(), "- Name: Ada", "- Favorite Number: 9.5") {
		t.Errorf("the server got %s", res.Raw)
	}
	// The server gets what the program gave, and the server's own proposals only where the program took them.
	if containsWords(res.Text(), "Favorite Integer") {
		t.Errorf("a default that the program did not give was sent: %s", res.Text())
	}
	p.setAnswer(func(r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
		content, err := supervisor.FillDefaults(r, json.RawMessage(`{"name":"Ada","number":9.5}`))
		return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: content}, err
	})
	res = mustCall(t, m, server, "trigger-elicitation-request", nil)
	if !containsWords(res.Text(), "- Favorite Integer: 42", `"untitledSingleSelectEnum": "Monica"`, `"fish-1"`) {
		t.Errorf("without the defaults: %s", res.Text())
	}
	if r := p.lastElicitation(t); r.Server != server || r.Mode != messages.ElicitForm || !containsWords(r.Message, "provide inputs") {
		t.Errorf("the person was asked %+v", r)
	}
	for action, words := range map[string]string{
		messages.ElicitDecline: "User declined", messages.ElicitCancel: "User cancelled",
	} {
		p.setAnswer(func(supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			return supervisor.ElicitResult{Action: action}, nil
		})
		if res := mustCall(t, m, server, "trigger-elicitation-request", nil); !containsWords(res.Text(), words) {
			t.Errorf("%s: the server got %s", action, res.Raw)
		}
	}
}

func everythingElicitationURL(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	p.setAnswer(acceptWith(""))
	ask := object{"url": "https://example.org/go?" + server, "message": "Please go", "elicitationId": "e-" + server}
	res := mustCall(t, m, server, "trigger-url-elicitation", ask)
	if res.IsError || !containsWords(res.Text(), "completed the URL elicitation", "e-"+server) {
		t.Errorf("the server got %s", res.Raw)
	}
	if r := p.lastElicitation(t); r.Server != server || r.Mode != messages.ElicitURL || r.URL != ask["url"] || r.ID != "e-"+server {
		t.Errorf("the person was asked %+v", r)
	}
}

// 2025-11-25: a server may refuse a request until the person has been at a URL. She is asked, and if she does not go, what
// the server said reaches the caller as it was sent.
func everythingElicitationRequired(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	p.setAnswer(func(supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
		return supervisor.ElicitResult{Action: messages.ElicitDecline}, nil
	})
	_, err := m.CallServerTool(testContext(t, bound), server, "trigger-url-elicitation",
		object{"url": "https://example.org/" + server, "errorPath": true})
	var e *supervisor.Error
	if !errors.As(err, &e) || e.Outcome != messages.OutcomeRejected || e.Code != -32042 ||
		!containsWords(string(e.Data), `"elicitations"`, `"mode":"url"`, "https://modelcontextprotocol.io") {
		t.Errorf("%v (%+v)", err, e)
	}
	if r := p.lastElicitation(t); r.Server != server || r.Mode != messages.ElicitURL || r.ID == "" {
		t.Errorf("the person was asked %+v", r)
	}
}

func everythingRoots(t *testing.T, m *supervisor.Manager, p *testHandlers, server string) {
	p.mu.Lock()
	p.roots = []supervisor.Root{{URI: "file:///first", Name: "first"}}
	p.mu.Unlock()
	m.RootsChanged()
	sees := func(words string) bool {
		return containsWords(mustCall(t, m, server, "get-roots-list", nil).Text(), words)
	}
	eventually(t, "the server sees the root", func() bool { return sees("file:///first") })
	p.mu.Lock()
	p.roots = []supervisor.Root{{URI: "file:///second"}, {URI: "file:///third", Name: "third"}}
	p.mu.Unlock()
	m.RootsChanged()
	eventually(t, "the server sees the other roots", func() bool { return sees("file:///second") && sees("file:///third") })
}

func everythingResourcesChanged(t *testing.T, m *supervisor.Manager, _ *testHandlers, server string) {
	list := func() []messages.Resource {
		all, err := m.Resources(testContext(t, bound), server)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := list()
	w := m.Watch(256)
	defer w.Close()
	res := mustCall(t, m, server, "gzip-file-as-resource", object{
		"name": "packed-" + server + ".gz", "data": "data:text/plain;base64,aGVsbG8=", "outputType": "resourceLink",
	})
	if res.IsError {
		t.Fatal(res.Text())
	}
	awaitEvent(t, w, "the resources changed", func(e messages.Event) bool {
		return e.Kind == messages.EventResources && e.Server == server
	})
	uri := "demo://resource/session/packed-" + server + ".gz"
	if after := list(); len(after) != len(before)+1 || !slices.ContainsFunc(after, func(r messages.Resource) bool {
		return r.URI == uri
	}) {
		t.Errorf("%d resources, then %d, and %s is not among them", len(before), len(after), uri)
	}
	// No other server offers it: it needs no server's name.
	got, err := m.ReadResource(testContext(t, bound), uri)
	if err != nil || got.Server != server || got.Contents()[0].MIMEType != "application/gzip" {
		t.Errorf("routed by who offers it: %+v, %v", got, err)
	}
}

func checkPing(t *testing.T, m *supervisor.Manager, server string) {
	if took, err := m.Ping(testContext(t, bound), server); err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
}

// checkAbandonedCall leaves a call that would take for ever. It ends at once, and the server serves on.
func checkAbandonedCall(t *testing.T, m *supervisor.Manager, server, tool string, args any) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reported atomic.Bool
	_, err := m.CallServerTool(ctx, server, tool, args, supervisor.WithProgress(func(supervisor.Progress) {
		reported.Store(true)
		cancel()
	}))
	var e *supervisor.Error
	if !errors.As(err, &e) || !errors.Is(err, context.Canceled) || e.Outcome != messages.OutcomeUnknown || !reported.Load() {
		t.Errorf("a call that was left: %v", err)
	}
	checkPing(t, m, server)
}

// What no program answers is not announced: the server does not offer what it could not do, and the rest works.
func TestEverythingServerIsToldNothingThatNobodyAnswers(t *testing.T) {
	checkLeaks(t)
	command, args := peers.NPM(t).Command(peers.Everything)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"npm": {Command: command, Args: args}}})
	awaitConnected(t, m, "npm")
	checkText(t, m, "npm", "get-sum", object{"a": 2, "b": 3}, "The sum of 2 and 3 is 5.")
	for _, tool := range []string{"trigger-elicitation-request", "trigger-url-elicitation", "trigger-sampling-request",
		"get-roots-list"} {
		if slices.Contains(toolNames(m, "npm"), tool) {
			t.Errorf("%s is offered to a program that answers nothing", tool)
		}
	}
}

// A subscription outlives the connection that it was made on, and everything else is there again.
func TestEverythingServerSubscriptionsOutliveItsDeath(t *testing.T) {
	checkLeaks(t)
	command, args := peers.NPM(t).Command(peers.Everything)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"npm": {Command: command, Args: args}}})
	awaitConnected(t, m, "npm")
	const uri = "demo://resource/dynamic/text/2"
	if err := m.SubscribeResource(testContext(t, bound), "npm", uri); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		w := m.Watch(256)
		mustCall(t, m, "npm", "toggle-subscriber-updates", nil)
		awaitEvent(t, w, fmt.Sprintf("the resource was updated in round %d", round), func(e messages.Event) bool {
			return e.Kind == messages.EventResourceUpdated && e.URI == uri
		})
		w.Close()
		before := statusOf(t, m, "npm")
		kill9(t, before.PID)
		eventually(t, "it is connected again", func() bool {
			st := statusOf(t, m, "npm")
			return st.Status == messages.Connected && st.Epoch > before.Epoch
		})
		if _, err := m.ReadServerResource(testContext(t, bound), "npm", uri); err != nil {
			t.Error(err)
		}
	}
}
