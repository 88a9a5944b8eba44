package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// library is a server of the SDK with resources, templates, prompts and completion. change changes a resource.
func library(name string) (s *mcp.Server, serve func(context.Context, inprocess.Peer) error) {
	agree := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	s = mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   agree,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{
				Values: []string{r.Params.Argument.Value + "o", r.Params.Ref.Name}, Total: 2}}, nil
		},
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: r.Params.URI, MIMEType: "text/plain", Text: name + " has " + r.Params.URI},
			{URI: r.Params.URI, MIMEType: "image/png", Blob: []byte{1, 2, 3}},
		}}, nil
	}
	s.AddResource(&mcp.Resource{URI: "book:///" + name, Name: "a book of " + name, MIMEType: "text/plain", Description: "d"}, read)
	s.AddResource(&mcp.Resource{URI: "book:///everybody", Name: "in every library"}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "page://" + name + "/{number}", Name: "pages"}, read)
	prompt := func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "from " + name, Messages: []*mcp.PromptMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "say " + r.Params.Arguments["what"]}}}}, nil
	}
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: "greets", Arguments: []*mcp.PromptArgument{
		{Name: "what", Description: "what to say", Required: true}}}, prompt)
	s.AddPrompt(&mcp.Prompt{Name: "a name with spaces"}, prompt)
	return s, gosdk.Serve(s)
}

// libraries starts a manager with the libraries "a" and "b".
func libraries(t *testing.T, era messages.Era, cfg supervisor.Config) (*supervisor.Manager, *mcp.Server) {
	t.Helper()
	a, serveA := library("a")
	_, serveB := library("b")
	cfg.InProcess = map[string]func(context.Context, inprocess.Peer) error{"a": serveA, "b": serveB}
	cfg.Servers = map[string]supervisor.Spec{"a": {Type: messages.SDK, Era: era}, "b": {Type: messages.SDK, Era: era}}
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, m) })
	settled(t, m)
	return m, a
}

func eachEra(t *testing.T, f func(t *testing.T, era messages.Era)) {
	for _, era := range []messages.Era{messages.EraLegacy, messages.EraModern} {
		t.Run(string(era), func(t *testing.T) { f(t, era) })
	}
}

func TestResourcesOfAllServersAreListedAndRead(t *testing.T) {
	seeds.Shows(t, "000.4.list-resources", "000.4.read-resource", "000.6.resources", "000.9.resources-list",
		"000.9.resources-read", "002.2.capability-resources", "002.3.resource", "002.4.read-resource", "002.5.resources",
		"004.f.resources")
	eachEra(t, func(t *testing.T, era messages.Era) {
		m, _ := libraries(t, era, supervisor.Config{})
		all, err := m.Resources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, r := range all {
			got = append(got, r.Server+" "+r.URI)
		}
		want := []string{"a book:///a", "a book:///everybody", "b book:///b", "b book:///everybody"}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		one, err := m.Resources(t.Context(), "a")
		i := slices.IndexFunc(one, func(r messages.Resource) bool { return r.URI == "book:///a" })
		if err != nil || len(one) != 2 || i < 0 || one[i].Name != "a book of a" || one[i].MIMEType != "text/plain" ||
			one[i].Description != "d" || !json.Valid(one[i].Raw) {
			t.Errorf("%+v, %v", one, err)
		}

		// By its server, and without naming it: by the list, by a template, by nothing, by several.
		for uri, server := range map[string]string{"book:///b": "b", "page://a/7": "a"} {
			res, err := m.ReadResource(t.Context(), uri)
			if err != nil || res.Server != server || res.Contents()[0].Text != server+" has "+uri {
				t.Errorf("%s: %+v, %v", uri, res, err)
			}
		}
		res, err := m.ReadServerResource(t.Context(), "b", "book:///everybody")
		if err != nil {
			t.Fatal(err)
		}
		parts := res.Contents()
		if bytes, err := parts[1].Bytes(); err != nil || string(bytes) != "\x01\x02\x03" || parts[1].MIMEType != "image/png" {
			t.Errorf("%+v, %v", parts[1], err)
		}
		if _, err := m.ReadResource(t.Context(), "book:///nowhere"); !errors.Is(err, supervisor.ErrUnknownResource) ||
			!strings.Contains(err.Error(), "book:///nowhere") {
			t.Error(err)
		}
		if _, err := m.ReadResource(t.Context(), "book:///everybody"); !errors.Is(err, supervisor.ErrInvalid) ||
			!strings.Contains(err.Error(), "a, b") {
			t.Error(err)
		}
		_, err = m.ReadServerResource(t.Context(), "a", "book:///b")
		var e *supervisor.Error
		if !errors.As(err, &e) || !errors.Is(err, supervisor.ErrUnknownResource) || e.Server != "a" || e.Op != "read" {
			t.Error(err)
		}
		if _, err := m.Resources(t.Context(), "a", "x"); !errors.Is(err, supervisor.ErrUnknownServer) {
			t.Error(err)
		}
		// A resource that two have is read of the one that is connected.
		if err := m.Toggle(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
		if res, err := m.ReadResource(t.Context(), "book:///everybody"); err != nil || res.Server != "b" {
			t.Errorf("%+v, %v", res, err)
		}
		// A resource that only a disabled server has is asked of no server: the error says that it is disabled.
		if _, err := m.ReadResource(t.Context(), "book:///a"); !errors.Is(err, supervisor.ErrDisabled) {
			t.Error(err)
		}
	})
}

func TestPromptsOfAllServersAreListedAndFilled(t *testing.T) {
	seeds.Shows(t, "000.1.prompts", "002.2.capability-prompts", "002.3.prompt", "002.4.get-prompts", "002.5.prompts",
		"002.1.resources-prompts", "002.3.server-resources-prompts")
	eachEra(t, func(t *testing.T, era messages.Era) {
		m, _ := libraries(t, era, supervisor.Config{})
		prompts, err := m.Prompts(t.Context())
		if err != nil || len(prompts) != 4 {
			t.Fatalf("%+v, %v", prompts, err)
		}
		hashed := ""
		for _, p := range prompts {
			if p.Name == "greet" {
				if p.Qualified != "mcp__"+p.Server+"__greet" || len(p.Arguments) != 1 || !p.Arguments[0].Required {
					t.Errorf("%+v", p)
				}
			} else if p.Server == "b" {
				hashed = p.Qualified
			}
		}
		res, err := m.GetPrompt(t.Context(), "mcp__a__greet", map[string]string{"what": "hello"})
		if err != nil || res.Description != "from a" || res.Messages()[0].Role != "user" ||
			res.Messages()[0].Content.Text != "say hello" {
			t.Errorf("%+v, %v", res, err)
		}
		// A name that does not say whose it is, on a manager that has not listed anything yet.
		fresh, _ := libraries(t, era, supervisor.Config{})
		if res, err := fresh.GetPrompt(t.Context(), hashed, nil); err != nil || res.Server != "b" || res.Name != "a name with spaces" {
			t.Errorf("%s: %+v, %v", hashed, res, err)
		}
		for _, name := range []string{"mcp__x__greet", "greet", "mcp__my_server__run_w834xcl2v5"} {
			if _, err := m.GetPrompt(t.Context(), name, nil); !errors.Is(err, supervisor.ErrUnknownPrompt) {
				t.Errorf("%s: %v", name, err)
			}
		}
		c, err := m.Complete(t.Context(), "a", supervisor.CompleteRequest{Prompt: "greet", Argument: "what", Value: "hell"})
		if err != nil || !slices.Equal(c.Values, []string{"hello", "greet"}) || c.Total != 2 {
			t.Errorf("%+v, %v", c, err)
		}
		if took, err := m.Ping(t.Context(), "a"); err != nil || took <= 0 {
			t.Errorf("%v, %v", took, err)
		}
	})
}

// TestPromptOfALazyServer: a name with a hash, of a prompt that no list has shown yet, connects a lazy server that it fits, and no other (seed
// 20987699).
func TestPromptOfALazyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := supervisor.Config{InProcess: map[string]func(context.Context, inprocess.Peer) error{}, Servers: map[string]supervisor.Spec{}}
		for _, name := range []string{"a", "b", "c"} {
			_, cfg.InProcess[name] = library(name)
			cfg.Servers[name] = supervisor.Spec{Type: messages.SDK, Connect: messages.Lazy, IdleTimeout: messages.Duration(time.Minute)}
		}
		m, err := supervisor.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeAll(t, m) })
		time.Sleep(5 * time.Minute) // their tools were listed, and they were let go
		if got := m.ConnectedServers(); len(got) != 0 {
			t.Fatalf("connected: %q", got)
		}
		hashed := messages.Naming{}.Prompt("b", "a name with spaces")
		res, err := m.GetPrompt(t.Context(), hashed, nil)
		if err != nil || res.Server != "b" || res.Name != "a name with spaces" {
			t.Errorf("%s: %+v, %v", hashed, res, err)
		}
		if got := m.ConnectedServers(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("connected: %q", got)
		}
		for range 3 { // in vain, which keeps the server from its rest once, when it is connected for it
			if _, err := m.GetPrompt(t.Context(), messages.Naming{}.Prompt("a", "another with spaces"), nil); !errors.Is(err, supervisor.ErrUnknownPrompt) {
				t.Errorf("%v", err)
			}
			time.Sleep(25 * time.Second)
		}
		if got := m.ConnectedServers(); len(got) != 0 {
			t.Errorf("connected: %q", got)
		}
	})
}

// TestSubscriptionsOutliveTheConnection: an update of a watched resource is told before and after a reconnect, without
// any caller asking again.
func TestSubscriptionsOutliveTheConnection(t *testing.T) {
	eachEra(t, func(t *testing.T, era messages.Era) {
		m, a := libraries(t, era, supervisor.Config{})
		w := m.Watch(0)
		defer w.Close()
		if err := m.SubscribeResource(t.Context(), "a", "book:///a"); err != nil {
			t.Fatal(err)
		}
		updated := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for {
				// Told again and again: a server of the modern era hears of the subscription a moment later.
				if err := a.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "book:///a"}); err != nil {
					t.Fatal(err)
				}
				short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
				for e := range w.Events(short) {
					if e.Kind == messages.EventResourceUpdated {
						if e.Server != "a" || e.URI != "book:///a" {
							t.Errorf("%+v", e)
						}
						stop()
						return
					}
				}
				stop()
				if ctx.Err() != nil {
					t.Fatal("nobody told of the update")
				}
			}
		}
		updated()
		if err := m.Reconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		updated()
		if err := m.UnsubscribeResource(t.Context(), "a", "book:///a"); err != nil {
			t.Error(err)
		}
		if err := m.SubscribeResource(t.Context(), "x", "book:///a"); !errors.Is(err, supervisor.ErrUnknownServer) {
			t.Error(err)
		}
	})
}

// TestListChangesAreTold: a changed list is an event, and the next look sees it.
func TestListChangesAreTold(t *testing.T) {
	eachEra(t, func(t *testing.T, era messages.Era) {
		m, a := libraries(t, era, supervisor.Config{})
		if _, err := m.Resources(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := m.Watch(0)
		defer w.Close()
		seen := map[messages.EventKind]bool{}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for n := 0; !(seen[messages.EventResources] && seen[messages.EventPrompts]); n++ {
			a.AddPrompt(&mcp.Prompt{Name: fmt.Sprintf("new%d", n)}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return nil, errors.New("never asked")
			})
			a.AddResource(&mcp.Resource{URI: fmt.Sprintf("new:///%d", n), Name: "n"},
				func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
					return nil, errors.New("never")
				})
			short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
			for e := range w.Events(short) {
				seen[e.Kind] = true
			}
			stop()
			if ctx.Err() != nil {
				t.Fatalf("told were %v", seen)
			}
		}
		eventually(t, "the new resource is listed", func() bool {
			all, _ := m.Resources(t.Context(), "a")
			return slices.ContainsFunc(all, func(r messages.Resource) bool { return r.URI == "new:///0" })
		})
	})
}
