package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// agent has the parts that agents have in common: a list of tools that the model is told of, functions by their names, and a bus
// that hears of every call.
type agent struct {
	declared []supervisor.Declaration
	tools    map[string]supervisor.AgentTool
	bus      []string
}

// offer knows no difference between its own tools and those of servers.
func (a *agent) offer(tools ...supervisor.AgentTool) {
	if a.tools == nil {
		a.tools = map[string]supervisor.AgentTool{}
	}
	for _, t := range tools {
		a.declared = append(a.declared, t.Declaration())
		a.tools[t.Declaration().Name] = t
	}
}

// call runs the tool that the model names, as the loop does.
func (a *agent) call(ctx context.Context, name string, params map[string]any) string {
	t, ok := a.tools[name]
	if !ok {
		return "there is no tool " + name
	}
	a.bus = append(a.bus, "call "+name)
	result, err := t.Handler()(ctx, params)
	if err != nil {
		result = supervisor.ErrorResult(err)
	}
	a.bus = append(a.bus, "done "+name)
	return t.FormatOutput(result)
}

// own is a tool of the agent itself.
type own struct {
	name string
	run  func(params map[string]any) string
}

func (o own) Declaration() supervisor.Declaration {
	return supervisor.Declaration{Name: o.name, Description: "built in", InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (o own) Handler() supervisor.Handler {
	return func(_ context.Context, params map[string]any) (map[string]any, error) {
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": o.run(params)}}, "isError": false}, nil
	}
}

func (o own) FormatOutput(result map[string]any) string {
	return result["content"].([]any)[0].(map[string]any)["text"].(string)
}

// One loop offers the agent's own tools and those of a server that another library implements. The model sees one form
// of declaration, calls both by name, and reads text.
func TestAnAgentTreatsServersToolsAndItsOwnAlike(t *testing.T) {
	seeds.Shows(t, "001.1.executor", "001.4.kind", "001.7.library", "002.2.prefix", "002.2.workflow", "002.6.name",
		"002.6.description-schema", "002.6.execute", "002.6.registered-at-startup", "002.11.own-tools-unaffected",
		"003.1.one-tool-system", "003.2.declaration", "003.2.handler", "003.2.format-output", "003.2.handler-result",
		"003.2.mixed-list", "003.2.events", "003.2.lookup", "003.2.bridge", "003.2.no-difference", "003.2.example-echo",
		"003.6.available", "003.8.combined-registry", "003.8.transparent", "004.fr7.builtin-names", "004.fr7.ac-origin",
		"004.fr7.ac-full-names", "004.t.wrapper-definition", "004.t.wrapper-execute")
	server := web.Server("jira")
	server.AddTool(mcp.NewTool("two"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("one"), mcp.NewTextContent("two")}}, nil
	})
	m, err := supervisor.Start(t.Context(), supervisor.Config{
		Servers:   map[string]supervisor.Spec{"jira": {Type: messages.SDK}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"jira": mcpgo.Serve(server)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, m)
	settled(t, m)
	tools, err := m.AgentTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	var a agent
	a.offer(own{"read_file", func(p map[string]any) string { return fmt.Sprint("the text of ", p["path"]) }},
		own{"echo", func(map[string]any) string { return "the agent's own echo" }})
	a.offer(tools...)

	byName := map[string]supervisor.Declaration{}
	for _, d := range a.declared {
		byName[d.Name] = d
	}
	if len(byName) != len(tools)+2 {
		t.Errorf("%d tools under %d names", len(tools)+2, len(byName))
	}
	d := byName["mcp__jira__echo"]
	if d.Description != "answers with its text" || d.Kind != supervisor.KindMCP || d.Server != "jira" {
		t.Errorf("%+v", d)
	}
	var schema struct {
		Type       string
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if err := json.Unmarshal(d.InputSchema, &schema); err != nil || schema.Type != "object" ||
		schema.Properties["text"].Type != "string" || !slices.Equal(schema.Required, []string{"text"}) {
		t.Errorf("parameters %s: %v", d.InputSchema, err)
	}
	if o := byName["read_file"]; o.Kind != "" || o.Server != "" {
		t.Errorf("the agent's own tool is said to be of kind %q of %q", o.Kind, o.Server)
	}
	for _, d := range a.declared { // what the model is told has the same form for both
		raw, _ := json.Marshal(d)
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"name", "inputSchema"} {
			if fields[f] == nil {
				t.Errorf("%s has no %s", raw, f)
			}
			delete(fields, f)
		}
		if delete(fields, "description"); len(fields) > 0 {
			t.Errorf("%s tells the model more of one tool than of another", raw)
		}
	}

	for _, c := range []struct {
		tool, want string
		params     map[string]any
	}{
		{"mcp__jira__echo", "hello", map[string]any{"text": "hello"}},
		{"mcp__jira__add", "42", map[string]any{"a": 2, "b": 40.0}},
		{"mcp__jira__two", "one\ntwo", nil},
		{"mcp__jira__fail", "error: no such ticket", map[string]any{"text": "no such ticket"}},
		{"read_file", "the text of README.md", map[string]any{"path": "README.md"}},
		{"echo", "the agent's own echo", map[string]any{"text": "hello"}},
		{"mcp__jira__nothing", "there is no tool mcp__jira__nothing", nil},
	} {
		if got := a.call(t.Context(), c.tool, c.params); got != c.want {
			t.Errorf("%s gives %q, want %q", c.tool, got, c.want)
		}
	}
	if got := strings.Join(a.bus[:2], ", "); got != "call mcp__jira__echo, done mcp__jira__echo" || len(a.bus) != 12 {
		t.Errorf("the bus heard %q", a.bus)
	}

	// The function's own form: content as a list of parts, and whether it is an error, always.
	out, err := a.tools["mcp__jira__echo"].Handler()(t.Context(), map[string]any{"text": "hello"})
	raw, _ := json.Marshal(out)
	if err != nil || string(raw) != `{"content":[{"text":"hello","type":"text"}],"isError":false}` {
		t.Errorf("%s, %v", raw, err)
	}
	out, err = a.tools["mcp__jira__fail"].Handler()(t.Context(), map[string]any{"text": "why"})
	if err != nil || out["isError"] != true {
		t.Errorf("a tool's own failure: %v, %v", out, err)
	}

	// The server goes away, and the agent's own tools go on.
	if err := m.Disconnect(t.Context(), "jira"); err != nil {
		t.Fatal(err)
	}
	if got := a.call(t.Context(), "echo", nil); got != "the agent's own echo" {
		t.Errorf("without the server: %q", got)
	}
}

// A call without an answer is a Go error of the function; the loop feeds it to the model as a failed call that says
// what is known about it. The conversation goes on, and so does the next call.
func TestACallThatMeetsADeathIsFedToTheModel(t *testing.T) {
	seeds.Shows(t, "001.7.disconnection", "003.2.handler-error", "004.fr1.ac-disconnection")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("write")
		f.onCall = hang
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		tools, err := m.AgentTools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var a agent
		a.offer(tools...)
		received := make(chan string)
		go func() { received <- a.call(t.Context(), "mcp__a__write", nil) }()
		synctest.Wait()
		f.set(func(f *fake) { f.onCall = nil })
		f.kill()
		if got := <-received; !strings.HasPrefix(got, `error: server "a", tool "write": `) ||
			!strings.Contains(got, "it may have run") {
			t.Errorf("the model reads %q", got)
		}
		synctest.Wait()
		// Right after the death the server is not back: nothing is sent, and that is said.
		_, err = tools[0].Handler()(t.Context(), nil)
		if !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("while it is away: %v", err)
		}
		if got := a.call(t.Context(), "mcp__a__write", nil); !strings.Contains(got, "not sent") {
			t.Errorf("the model reads %q", got)
		}
		eventually(t, "it is back", func() bool { return phase(t, m, "a") == messages.Connected })
		if got := a.call(t.Context(), "mcp__a__write", nil); got != "ok write" {
			t.Errorf("afterwards the model reads %q", got)
		}
	})
}

// A program keeps a registry of its own in step with the servers by following the events, and gives its bus every call.
func TestAProgramsOwnRegistryFollows(t *testing.T) {
	seeds.Shows(t, "000.4.new-client", "003.8.event-bus", "004.fr3.flow")
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		registry, bus := map[string]supervisor.AgentTool{}, []string{}
		f := newFake("x")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		w := m.Watch(0)
		defer w.Close()
		follow := func() {
			tools, err := m.AgentTools(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			clear(registry)
			for _, tool := range tools {
				registry[tool.Declaration().Name] = tool
			}
		}
		follow() // the tools from before the watch
		go func() {
			for e := range w.Events(t.Context()) {
				switch e.Kind {
				case messages.EventTools:
					follow()
				case messages.EventCallStarted, messages.EventCallEnded:
					mu.Lock()
					bus = append(bus, strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.Server, ":", e.Tool, " ", e.Outcome)))
					mu.Unlock()
				default:
				}
			}
		}()
		holds := func(want ...string) {
			t.Helper()
			time.Sleep(10 * time.Second) // longer than lost tools stay in sight
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			got := []string{}
			for name := range registry {
				got = append(got, name)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("the registry holds %q, want %q", got, want)
			}
		}
		holds("mcp__a__x")
		f.setTools("x", "y")
		holds("mcp__a__x", "mcp__a__y")
		mu.Lock()
		y := registry["mcp__a__y"]
		mu.Unlock()
		if out, err := y.Handler()(t.Context(), nil); err != nil || y.FormatOutput(out) != "ok y" {
			t.Errorf("%v, %v", out, err)
		}
		if err := m.Disconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		holds()
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"call-started a:y", "call-ended a:y result"}; !slices.Equal(bus, want) {
			t.Errorf("the bus heard %q, want %q", bus, want)
		}
	})
}
