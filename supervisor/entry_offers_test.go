package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// correspondent is another actor: ask sends a command and gives what comes next.
type correspondent struct {
	t   *testing.T
	m   *supervisor.Manager
	pid *actor.PID
	got chan proto.Message
}

func correspond(t *testing.T, m *supervisor.Manager) *correspondent {
	t.Helper()
	a := &asker{got: make(chan proto.Message, 1000)}
	pid := m.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
	t.Cleanup(func() { m.System().Root.Stop(pid) })
	return &correspondent{t, m, pid, a.got}
}

func (c *correspondent) send(msg proto.Message) {
	c.m.System().Root.RequestWithCustomSender(c.m.PID(), msg, c.pid)
}

func (c *correspondent) next() proto.Message {
	c.t.Helper()
	select {
	case msg := <-c.got:
		return msg
	case <-time.After(30 * time.Second):
		c.t.Fatal("no message came")
		return nil
	}
}

// ask returns the reply. Of a watcher it drops the events before: the reply to Watch, and any other, may come behind some.
func (c *correspondent) ask(msg proto.Message) proto.Message {
	c.t.Helper()
	c.send(msg)
	for {
		reply := c.next()
		if _, event := reply.(*messages.WatchEvent); !event {
			return reply
		}
	}
}

func (c *correspondent) done(msg proto.Message) {
	c.t.Helper()
	if d, ok := c.ask(msg).(*messages.Done); !ok || d.GetFailure() != nil {
		c.t.Fatalf("%T: %v", msg, d)
	}
}

func TestWhatServersOfferByMessage(t *testing.T) {
	m, a := libraries(t, messages.EraLegacy, supervisor.Config{})
	c := correspond(t, m)
	resources := c.ask(&messages.ListResources{}).(*messages.ResourcesReply)
	if len(resources.GetResources()) != 4 || len(resources.GetFailures()) != 0 || resources.GetResources()[0].GetServer() != "a" ||
		!json.Valid(resources.GetResources()[0].GetDefinition()) {
		t.Errorf("%v", resources)
	}
	resources = c.ask(&messages.ListResources{Servers: []string{"a", "x"}}).(*messages.ResourcesReply)
	if len(resources.GetResources()) != 2 || len(resources.GetFailures()) != 1 || resources.GetFailures()[0].GetServer() != "x" {
		t.Errorf("%v", resources)
	}
	templates := c.ask(&messages.ListResourceTemplates{Servers: []string{"b"}}).(*messages.ResourceTemplatesReply)
	if len(templates.GetTemplates()) != 1 || templates.GetTemplates()[0].GetUriTemplate() != "page://b/{number}" {
		t.Errorf("%v", templates)
	}
	for _, r := range []*messages.ReadResource{{RequestId: "r", Uri: "book:///a"}, {RequestId: "r", Server: "a", Uri: "book:///a"}} {
		read := c.ask(r).(*messages.ReadResourceReply)
		if read.GetRequestId() != "r" || read.GetServer() != "a" || read.GetOutcome() != "result" ||
			!strings.Contains(string(read.GetResult()), "a has book:///a") {
			t.Errorf("%v", read)
		}
	}
	read := c.ask(&messages.ReadResource{Server: "a", Uri: "book:///b"}).(*messages.ReadResourceReply)
	if read.GetOutcome() != "rejected" || read.GetFailure().GetServer() != "a" {
		t.Errorf("%v", read)
	}
	prompts := c.ask(&messages.ListPrompts{Servers: []string{"a"}}).(*messages.PromptsReply)
	if len(prompts.GetPrompts()) != 2 || prompts.GetPrompts()[1].GetQualifiedName() != "mcp__a__greet" ||
		!prompts.GetPrompts()[1].GetArguments()[0].GetRequired() {
		t.Errorf("%v", prompts)
	}
	for _, g := range []*messages.GetPrompt{{Prompt: "mcp__a__greet"}, {Server: "a", Prompt: "greet"}} {
		g.Arguments = map[string]string{"what": "hi"}
		got := c.ask(g).(*messages.GetPromptReply)
		if got.GetOutcome() != "result" || got.GetServer() != "a" || !strings.Contains(string(got.GetResult()), "say hi") {
			t.Errorf("%v", got)
		}
	}
	complete := c.ask(&messages.Complete{Server: "a", Prompt: "greet", Argument: "what", Value: "hell"}).(*messages.CompleteReply)
	if len(complete.GetValues()) != 2 || complete.GetValues()[0] != "hello" || complete.GetTotal() != 2 {
		t.Errorf("%v", complete)
	}
	c.done(&messages.Watch{})
	c.done(&messages.SubscribeResource{Server: "a", Uri: "book:///a"})
	if err := a.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "book:///a"}); err != nil {
		t.Fatal(err)
	}
	for {
		if e := c.next().(*messages.WatchEvent); e.GetKind() == string(messages.EventResourceUpdated) {
			if e.GetServer() != "a" || e.GetUri() != "book:///a" {
				t.Errorf("%v", e)
			}
			break
		}
	}
	c.done(&messages.Unwatch{})
	c.done(&messages.UnsubscribeResource{Server: "a", Uri: "book:///a"})
}

// TestProgressByMessage: a call by message that asks for progress is told of it before its reply, and of the last in any
// case; one that does not ask is told nothing.
func TestProgressByMessage(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "p", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "count", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := 1; i <= 50 && r.Params.GetProgressToken() != nil; i++ {
				_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Total: 50})
				time.Sleep(2 * time.Millisecond)
			}
			return &mcp.CallToolResult{}, nil
		})
	m, err := supervisor.Start(t.Context(), supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"p": gosdk.Serve(s)},
		Servers:   map[string]supervisor.Spec{"p": {Type: messages.SDK}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, m) })
	settled(t, m)
	c := correspond(t, m)
	c.send(&messages.CallTool{CallId: "1", Server: "p", Tool: "count", Progress: true})
	received, last := 0, 0.0
	for {
		msg := c.next()
		if p, ok := msg.(*messages.CallProgress); ok {
			if p.GetCallId() != "1" || p.GetProgress() <= last || p.GetTotal() != 50 {
				t.Errorf("%v after %v", p, last)
			}
			received, last = received+1, p.GetProgress()
			continue
		}
		if r := msg.(*messages.CallToolReply); r.GetOutcome() != "result" {
			t.Errorf("%v", r)
		}
		break
	}
	if received == 0 || received >= 50 {
		t.Errorf("told %d times of 50", received)
	}
	if r, ok := c.ask(&messages.CallTool{Server: "p", Tool: "count"}).(*messages.CallToolReply); !ok || r.GetOutcome() != "result" {
		t.Errorf("%v", r)
	}
}

// TestAnActorAnswersWhatServersAsk: the kinds that the program leaves are an actor's that asks for them, until it ends.
func TestAnActorAnswersWhatServersAsk(t *testing.T) {
	m := startAsking(t, supervisor.Config{
		Roots: func(context.Context, string) ([]supervisor.Root, error) {
			return []supervisor.Root{{URI: "file:///own"}}, nil
		},
	})
	c := correspond(t, m)
	if d := c.ask(&messages.HandleRequests{Roots: true, Elicitation: true}).(*messages.Done); d.GetFailure() == nil {
		t.Error("an actor took what the program answers itself")
	}
	c.done(&messages.HandleRequests{Elicitation: true, Sampling: true})
	other := correspond(t, m)
	if d := other.ask(&messages.HandleRequests{Sampling: true}).(*messages.Done); d.GetFailure() == nil {
		t.Error("an actor took what another one answers")
	}
	call := func(tool string) chan string {
		text := make(chan string, 1)
		go func() {
			res, err := m.CallServerTool(supervisor.WithCaller(context.Background(), "anna"), "a", tool, nil)
			if err != nil {
				text <- "error: " + err.Error()
				return
			}
			text <- res.Text()
		}()
		return text
	}
	// The connection that is open already was made without them.
	if text := <-call("sample"); !strings.HasPrefix(text, "error") {
		t.Errorf("%s", text)
	}
	if err := m.Reconnect(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	text := call("sample")
	r := c.next().(*messages.ServerRequest)
	if r.GetServer() != "a" || r.GetCaller() != "anna" || r.GetMethod() != "sampling/createMessage" || !strings.Contains(string(r.GetParams()), `"maxTokens":7`) {
		t.Errorf("%v", r)
	}
	answer := []byte(`{"role":"assistant","model":"an actor","content":{"type":"text","text":"yes"}}`)
	c.send(&messages.ServerRequestReply{RequestId: r.GetRequestId() + 1, Result: []byte(`{}`)}) // no request has this id
	c.send(&messages.ServerRequestReply{RequestId: r.GetRequestId(), Result: answer})
	c.send(&messages.ServerRequestReply{RequestId: r.GetRequestId(), Refused: true}) // too late
	if got := <-text; got != `"an actor"` {
		t.Errorf("%s", got)
	}
	text = call("elicit")
	r = c.next().(*messages.ServerRequest)
	c.send(&messages.ServerRequestReply{RequestId: r.GetRequestId(), Result: []byte(`{"action":"accept","content":{"name":"me"}}`)})
	if got := <-text; got != `{"age":30,"name":"me"}` {
		t.Errorf("%s", got)
	}
	// An answer that does not fit the form does not reach the server.
	text = call("elicit")
	r = c.next().(*messages.ServerRequest)
	c.send(&messages.ServerRequestReply{RequestId: r.GetRequestId(), Result: []byte(`{"action":"accept","content":{"name":7}}`)})
	if got := <-text; !strings.HasPrefix(got, "error") {
		t.Errorf("%s", got)
	}
	text = call("elicit")
	r = c.next().(*messages.ServerRequest)
	c.send(&messages.ServerRequestReply{RequestId: r.GetRequestId(), Refused: true})
	if got := <-text; !strings.HasPrefix(got, "error") {
		t.Errorf("%s", got)
	}
	// It ends with a question before it: that is refused, and the kinds are free.
	text = call("sample")
	c.next()
	m.System().Root.Stop(c.pid)
	if got := <-text; !strings.HasPrefix(got, "error") {
		t.Errorf("%s", got)
	}
	other.done(&messages.HandleRequests{Sampling: true})
	text = call("sample")
	r = other.next().(*messages.ServerRequest)
	other.send(&messages.ServerRequestReply{RequestId: r.GetRequestId(), Result: answer})
	if got := <-text; got != `"an actor"` {
		t.Errorf("%s", got)
	}
	// A connection that ends takes its question back.
	text = call("sample")
	r = other.next().(*messages.ServerRequest)
	if err := m.Disconnect(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if gone := other.next().(*messages.ServerRequestEnded); gone.GetRequestId() != r.GetRequestId() {
		t.Errorf("%v", gone)
	}
	<-text
	other.done(&messages.HandleRequests{})
}

// What the control socket tells of a server's past and of the rules, other actors may ask for as well.
func TestActorsAskForPastAndRules(t *testing.T) {
	m, _ := libraries(t, messages.EraLegacy, supervisor.Config{})
	c := correspond(t, m)
	if r := c.ask(&messages.GetHistory{Server: "a"}).(*messages.HistoryReply); r.GetFailure() != nil || len(r.GetEntries()) == 0 ||
		r.GetStatus().GetName() != "a" || r.GetStatus().GetConfig() != nil || r.GetEntries()[0].GetTime() == nil {
		t.Errorf("the history is %v", r)
	}
	if r := c.ask(&messages.GetLogs{Server: "a"}).(*messages.LogsReply); r.GetFailure() != nil {
		t.Errorf("the logs are %v", r)
	}
	if r := c.ask(&messages.PingServer{Server: "a", TimeoutMs: 30_000}).(*messages.PingReply); r.GetFailure() != nil || r.GetTookNs() <= 0 {
		t.Errorf("the ping is %v", r)
	}
	if r := c.ask(&messages.GetPermissions{}).(*messages.PermissionsReply); r.GetFailure() != nil || r.GetOwn() == nil {
		t.Errorf("the rules are %v", r)
	}
	for _, msg := range []proto.Message{&messages.GetHistory{Server: "x"}, &messages.GetLogs{Server: "x"}, &messages.PingServer{Server: "x"}} {
		f := c.ask(msg).(interface{ GetFailure() *messages.Failure }).GetFailure()
		if err := f.ToError(); !errors.Is(err, messages.ErrUnknownServer) {
			t.Errorf("%T of an unknown server: %v", msg, err)
		}
	}
}
