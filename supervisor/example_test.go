package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// greeter is a server in this same program, with one tool. Any MCP server would do: a command, or a URL.
func greeter() func(context.Context, inprocess.Peer) error {
	s := server.NewMCPServer("greeter", "1.0.0", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("greet", mcp.WithDescription("greets by name"), mcp.WithString("name", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("hello, " + r.GetString("name", "you")), nil
		})
	return mcpgo.Serve(s)
}

func inProcess() map[string]func(context.Context, inprocess.Peer) error {
	return map[string]func(context.Context, inprocess.Peer) error{"greeter": greeter()}
}

// Start a manager, connect a server, call its tool. The server is one of this same program here; with Command and Args,
// or with a URL, it is any other.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{InProcess: inProcess()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	if err := m.Connect(ctx, "hi", supervisor.Spec{Type: supervisor.SDK, Name: "greeter"}); err != nil {
		fmt.Println(err)
		return
	}
	res, err := m.CallTool(ctx, "mcp__hi__greet", map[string]any{"name": "Ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Text())
	// Output: hello, Ada
}

// A watcher sees in order what happens: here the way of a server to its first call.
func ExampleManager_Watch() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{InProcess: inProcess(),
		Servers: map[string]supervisor.Spec{"greeter": {Type: supervisor.SDK, Disabled: true}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.Settled(ctx); err != nil { // being disabled, it rests
		fmt.Println(err)
		return
	}
	w := m.Watch(0)
	if err := m.Toggle(ctx, "greeter", true); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := m.CallServerTool(ctx, "greeter", "greet", map[string]any{"name": "you"}); err != nil {
		fmt.Println(err)
		return
	}
	for e := range w.Events(ctx) {
		switch e.Kind {
		case supervisor.EventPhase:
			fmt.Println(strings.TrimSpace(fmt.Sprintln(e.Server, "is", e.Status.Status, e.Status.Reason)))
		case supervisor.EventCallEnded:
			fmt.Println(e.Server, "ran", e.Tool+":", e.Outcome)
			w.Close() // what is queued still comes, and then the loop ends
		default:
		}
	}
	_ = m.Close(ctx)
	// Output:
	// greeter is pending queued
	// greeter is pending dialing
	// greeter is pending handshaking
	// greeter is pending listing
	// greeter is connected
	// greeter ran greet: result
}

// SetServers replaces the whole set of servers that were added at runtime. What did not change keeps its connection,
// and what cannot work is named without holding up the rest.
func ExampleManager_SetServers() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{InProcess: inProcess()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	hello := supervisor.Spec{Type: supervisor.SDK, Name: "greeter"}
	for _, set := range []map[string]supervisor.Spec{
		{"one": hello, "two": hello},
		{"two": hello, "three": {URL: "ftp://example.com"}},
	} {
		res, err := m.SetServers(ctx, set)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("added", res.Added, "removed", res.Removed)
		for _, name := range slices.Sorted(maps.Keys(res.Errors)) {
			fmt.Println(res.Errors[name])
		}
	}
	// Output:
	// added [one two] removed []
	// added [] removed [one]
	// server "three": its url must begin with http:// or https://, not "ftp"
}

// planner is another actor of the program. It feeds the manager by messages and hears its answers: it needs to know
// nothing but a PID, which may be one on another machine.
type planner struct {
	manager *actor.PID
	answers chan string
}

func (p planner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Request(p.manager, &messages.AddServer{Name: "hi",
			Spec: supervisor.Spec{Type: supervisor.SDK, Name: "greeter", Connect: supervisor.Lazy}.ToProto()})
	case *messages.Done: // it is added; being lazy, it is connected by its first call
		ctx.Request(p.manager, &messages.CallTool{CallId: "1", Server: "hi", Tool: "greet",
			Arguments: []byte(`{"name":"Alan"}`), TimeoutMs: 10_000})
	case *messages.CallToolReply:
		p.answers <- fmt.Sprintf("%s: %s", m.GetOutcome(), (&supervisor.Result{Raw: m.GetResult()}).Text())
	}
}

// A program that follows its configuration files says what each reload came to. This one has a file of its own; FollowOptions
// without a Reading follow those of the working directory, as FromFiles reads them.
func ExampleFollow() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "follow")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "mcp.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			fmt.Println(err)
		}
	}
	write(`{"mcpServers": {"hi": {"type": "sdk", "name": "greeter"}}}`)
	reading, err := discover.Read(discover.Options{Dir: dir, Files: []string{file}, Paths: discover.Paths{Home: dir}})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := supervisor.Start(ctx, supervisor.Config{InProcess: inProcess()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	received := make(chan supervisor.ReloadResult, 16)
	f, err := supervisor.Follow(ctx, m, supervisor.FollowOptions{Reading: &reading,
		OnReload: func(r supervisor.ReloadResult) { received <- r }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()

	write(`{"mcpServers": {"hi": {"type": "sdk", "name": "greeter", "callTimeout": "5s"}, "ho": {"type": "sdk", "name": "greeter"}}}`)
	r := <-received
	fmt.Println("added", r.Added, "adjusted", r.Adjusted)

	// A program that has changed the file itself need not wait for the system to tell.
	write(`{"mcpServers": {"ho": `)
	r, err = f.Reload(ctx)
	fmt.Println("changed nothing:", r.None(), err)
	for _, p := range r.Problems {
		fmt.Printf("line %d: %s\n", p.Line, p.Text)
	}
	// Output:
	// added [ho] adjusted [hi]
	// changed nothing: true <nil>
	// line 1: the file ends in the middle
}

// The manager lives in the program's own actor system, and another actor adds a server and calls its tool.
func ExampleManager_PID() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{InProcess: inProcess()})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := planner{manager: m.PID(), answers: make(chan string, 1)}
	pid := m.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return p }))
	fmt.Println(<-p.answers)
	m.System().Root.Stop(pid)
	_ = m.Close(ctx)
	// Output: result: hello, Alan
}

// A guardian is a second process that ends the servers' processes, and everything that they have started, when this
// program is killed. It is this program again, so main asks first whether it is meant to be one.
func ExampleConfig_guard() {
	if len(os.Args) > 1 && os.Args[1] == "guardian" {
		if err := stdio.RunGuardian(os.Stdin); err != nil {
			os.Exit(1)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return
	}
	guardian, err := stdio.StartGuardian(exec.Command(self, "guardian"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = guardian.Close() }()
	ctx := context.Background()
	m, err := supervisor.Start(ctx, supervisor.Config{Guard: guardian, Servers: map[string]supervisor.Spec{
		"files": {Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "."}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
}

// A server that wants credentials makes an event for the watchers; a program that has a token answers.
func ExampleManager_ProvideCredentials() {
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNotFound) // a real one would be an MCP server
	}))
	defer door.Close()
	ctx := context.Background()
	m, err := supervisor.Start(ctx, supervisor.Config{AuthStore: auth.NewMemory()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	w := m.Watch(100)
	_ = m.Connect(ctx, "door", supervisor.Spec{URL: door.URL, Type: supervisor.HTTP})
	for event := range w.Events(ctx) {
		if event.Kind == messages.EventAuthRequired {
			fmt.Println(event.Server, "needs credentials")
			break
		}
	}
	err = m.ProvideCredentials(ctx, "door", "sesame")
	fmt.Println("let in:", !errors.Is(err, supervisor.ErrNeedsAuth))
	states, _ := m.AuthStatus(ctx)
	fmt.Println(states[0].Server, states[0].State, "in", states[0].Where)
	// Output:
	// door needs credentials
	// let in: true
	// door provided in memory
}
