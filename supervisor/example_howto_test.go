package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	gomcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// Counters of calls, by server and outcome: an interceptor sees each call once, however often it was sent.
func ExampleInterceptor_counters() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	calls := map[string]int{} // or a counter of Prometheus with these labels
	count := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		res, err := next(ctx, r)
		mu.Lock()
		defer mu.Unlock()
		calls[res.Server+" "+string(supervisor.OutcomeOf(err))]++
		return res, err
	}
	files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
	m, err := supervisor.Start(ctx, supervisortest.AddTo(supervisor.Config{Interceptors: []supervisor.Interceptor{count}}, files))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	_ = m.Ready(ctx, "files")
	for range 3 {
		_, _ = m.CallTool(ctx, "mcp__files__read", nil)
	}
	fmt.Println(calls)
	// Output: map[files result:3]
}

// perCaller is an Authorizer that gives each request the token of the person on whose behalf it is made, and a header of its own.
type perCaller struct{ tokens map[string]string }

func (p perCaller) Authorize(ctx context.Context, h http.Header) error {
	caller := supervisor.CallerOf(ctx) // empty for the handshake and for lists
	h.Set("Authorization", "Bearer "+p.tokens[caller])
	h.Set("X-Request-Of", caller)
	return nil
}

func (perCaller) Refused(context.Context, int, *supervisor.Challenge, http.Header) (retry bool, err error) {
	return false, nil // there are no others
}

// A token for each person, and headers for each call: one connection serves them all.
func ExampleConfig_authProvider() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := server.NewMCPServer("whoami", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("whoami"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.Header.Get("X-Request-Of") + " with " + r.Header.Get("Authorization")), nil
	})
	address := httptest.NewServer(server.NewStreamableHTTPServer(s))
	defer address.Close()
	people := perCaller{map[string]string{"": "of-the-program", "anna": "of-anna", "bert": "of-bert"}}
	m, err := supervisor.Start(ctx, supervisor.Config{
		Servers:      map[string]supervisor.Spec{"who": {URL: address.URL}},
		AuthProvider: func(string, supervisor.Spec) (transports.Authorizer, error) { return people, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	if err := m.Ready(ctx, "who"); err != nil {
		fmt.Println(err)
		return
	}
	for _, person := range []string{"anna", "bert"} {
		out, err := m.CallTool(supervisor.WithCaller(ctx, person), "mcp__who__whoami", nil)
		fmt.Println(out.Text(), err)
	}
	// Output:
	// anna with Bearer of-anna <nil>
	// bert with Bearer of-bert <nil>
}

// The probes of Kubernetes: the program lives as long as it answers, and is ready when the servers that it cannot do without can be
// called. A server that is down is no reason to restart the program: the manager connects it again.
func ExampleManager_Ready_probe() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
	m, err := supervisor.Start(ctx, supervisortest.AddTo(supervisor.Config{}, files))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	probes := http.NewServeMux()
	probes.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	probes.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		soon, cancel := context.WithTimeout(r.Context(), time.Second) // less than the probe's own timeout
		defer cancel()
		if err := m.Ready(soon, "files"); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	for _, path := range []string{"/livez", "/readyz"} {
		answer := httptest.NewRecorder()
		probes.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, answer.Code)
	}
	// Output:
	// /livez 200
	// /readyz 200
}

// Thousands of callers share a server with a bound: each call waits for its turn, and none waits longer than its own time.
func ExampleWithCaller_thousands() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	work := supervisortest.NewServer("work", supervisortest.Echo("do"))
	work.Spec.MaxInFlight, work.Spec.MaxQueued = 64, 10_000
	m, err := supervisor.Start(ctx, supervisortest.AddTo(supervisor.Config{CallWait: 10 * time.Second}, work))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	var callers sync.WaitGroup
	var answered atomic.Int64
	for i := range 2000 {
		callers.Go(func() {
			mine := supervisor.WithCaller(ctx, fmt.Sprint("conversation ", i))
			if _, err := m.CallTool(mine, "mcp__work__do", map[string]any{"n": i}); err == nil {
				answered.Add(1)
			}
		})
	}
	callers.Wait()
	fmt.Println(answered.Load())
	// Output: 2000
}

// counted counts the connections that a transport opens, and is that transport otherwise.
type counted struct {
	transports.Transport
	dials *atomic.Int64
}

func (c counted) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	c.dials.Add(1)
	return c.Transport.Dial(ctx, sink)
}

// Something of one's own around the transport of every server. What is wrapped has all that the spec and the Config say.
func ExampleConfig_wrap() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var dials atomic.Int64
	files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
	m, err := supervisor.Start(ctx, supervisortest.AddTo(supervisor.Config{
		Wrap: func(_ string, _ supervisor.Spec, t transports.Transport) transports.Transport {
			return counted{t, &dials}
		},
	}, files))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	fmt.Println(m.Ready(ctx, "files"), dials.Load())
	fmt.Println(m.Reconnect(ctx, "files"), dials.Load())
	// Output:
	// <nil> 1
	// <nil> 2
}

// A resource that is watched: its updates come as events, also after the server was connected again.
func ExampleManager_SubscribeResource() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	city, serve := library("city")
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"city": serve},
		Servers:   map[string]supervisor.Spec{"city": {Type: supervisor.SDK}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	w := m.Watch(0)
	defer w.Close()
	if err := errors.Join(m.Ready(ctx, "city"), m.SubscribeResource(ctx, "city", "book:///city")); err != nil {
		fmt.Println(err)
		return
	}
	_ = city.ResourceUpdated(ctx, updated("book:///city"))
	for event := range w.Events(ctx) {
		if event.Kind == supervisor.EventResourceUpdated {
			res, err := m.ReadResource(ctx, event.URI)
			fmt.Println(event.Server, event.URI, res.Contents()[0].Text, err)
			break
		}
	}
	// Output: city book:///city city has book:///city <nil>
}

// How far a call has got.
func ExampleWithProgress() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"slow": reporting()},
		Servers:   map[string]supervisor.Spec{"slow": {Type: supervisor.SDK}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	_ = m.Ready(ctx, "slow")
	out, err := m.CallServerTool(ctx, "slow", "copy", nil, supervisor.WithProgress(func(p supervisor.Progress) {
		fmt.Printf("%v of %v: %s\n", p.Progress, p.Total, p.Message)
	}))
	fmt.Println(out.Text(), err)
	// Output:
	// 1 of 2: half of it
	// done <nil>
}

// A server asks for the model of the program. Without the function the server is told that there is none.
func ExampleConfig_sample() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"a": asking()},
		Servers:   map[string]supervisor.Spec{"a": {Type: supervisor.SDK, Era: supervisor.EraLegacy}},
		Sample: func(_ context.Context, r supervisor.SampleRequest) (json.RawMessage, error) {
			fmt.Println(r.Server, "asks for", string(r.Params)) // a person may want to see it first
			return json.RawMessage(`{"role":"assistant","content":{"type":"text","text":"42"},"model":"deep-thought"}`), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	_ = m.Ready(ctx, "a")
	out, err := m.CallServerTool(ctx, "a", "sample", nil)
	fmt.Println(out.Text(), err)
	// Output:
	// a asks for {"maxTokens":7,"messages":[]}
	// "deep-thought" <nil>
}

// A call that the server runs as a task. Its caller gets an ordinary result; the id lets another process fetch it later.
func ExampleWithTaskStatus() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := server.NewMCPServer("lab", "1", server.WithTaskCapabilities(true, true, true), server.WithToolCapabilities(true))
	tool := mcp.NewTool("research")
	tool.Execution = &mcp.ToolExecution{TaskSupport: mcp.TaskSupportRequired}
	s.AddTool(tool, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("found it"), nil
	})
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"lab": mcpgo.Serve(s)},
		Servers:   map[string]supervisor.Spec{"lab": {Type: supervisor.SDK, Era: supervisor.EraLegacy}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	_ = m.Ready(ctx, "lab")
	var id string
	out, err := m.CallServerTool(ctx, "lab", "research", nil, supervisor.WithTaskStatus(func(t supervisor.TaskStatus) { id = t.ID }))
	fmt.Println(out.Text(), err)
	later, err := m.TaskResult(ctx, "lab", id)
	fmt.Println(later.Text(), err)
	// Output:
	// found it <nil>
	// found it <nil>
}

// updated is what a server says of a resource that has changed.
func updated(uri string) *gomcp.ResourceUpdatedNotificationParams {
	return &gomcp.ResourceUpdatedNotificationParams{URI: uri}
}

// reporting is a server with a tool that tells how far it has got.
func reporting() func(context.Context, inprocess.Peer) error {
	s := gomcp.NewServer(&gomcp.Implementation{Name: "reporting", Version: "1"}, nil)
	s.AddTool(&gomcp.Tool{Name: "copy", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, r *gomcp.CallToolRequest) (*gomcp.CallToolResult, error) {
			_ = r.Session.NotifyProgress(ctx, &gomcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
				Progress: 1, Total: 2, Message: "half of it"})
			return &gomcp.CallToolResult{Content: []gomcp.Content{&gomcp.TextContent{Text: "done"}}}, nil
		})
	return gosdk.Serve(s)
}
