package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// testActor is an actor of the program's that sends commands to the manager, and answers what servers ask.
type testActor struct {
	t        *testing.T
	m        *supervisor.Manager
	pid      *actor.PID
	replies  chan proto.Message
	events   chan *messages.WatchEvent // beside the replies: an event may come between a command and its reply
	received chan string               // the methods of what servers asked
}

func newTestActor(t *testing.T, m *supervisor.Manager) *testActor {
	t.Helper()
	a := &testActor{t: t, m: m, replies: make(chan proto.Message, 1000), events: make(chan *messages.WatchEvent, 1000),
		received: make(chan string, 100)}
	a.pid = m.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
	return a
}

func (a *testActor) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *messages.ServerRequest:
		a.received <- msg.GetServer() + " " + msg.GetMethod()
		answer := `{"action":"accept","content":{"name":"an actor"}}`
		switch msg.GetMethod() {
		case "sampling/createMessage":
			answer = `{"role":"assistant","model":"actor","content":{"type":"text","text":"an actor's model"}}`
		case "roots/list":
			answer = `{"roots":[{"uri":"file:///of/an/actor"}]}`
		}
		c.Send(a.m.PID(), &messages.ServerRequestReply{RequestId: msg.GetRequestId(), Result: []byte(answer)})
	case *messages.WatchEvent:
		a.events <- msg
	case proto.Message:
		a.replies <- msg
	}
}

func (a *testActor) sendCommand(msg proto.Message) proto.Message {
	a.t.Helper()
	a.m.System().Root.RequestWithCustomSender(a.m.PID(), msg, a.pid)
	return receiveWithin(a.t, a.replies)
}

func receiveWithin[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case msg := <-from:
		return msg
	case <-time.After(bound):
		t.Fatal("no message came")
		panic("unreachable")
	}
}

func (a *testActor) mustSucceed(msg proto.Message) {
	a.t.Helper()
	reply := a.sendCommand(msg)
	if d, ok := reply.(*messages.Done); !ok || d.GetFailure() != nil {
		a.t.Fatalf("%T: %T %v", msg, reply, reply)
	}
}

// Through actors too: what real servers of both eras offer and ask, by message.
func TestMessagesReachEverythingThatServersOfferAndAsk(t *testing.T) {
	checkLeaks(t)
	command, args := peers.NPM(t).Command(peers.Everything)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"legacy": {Command: command, Args: args}, "modern": {Command: peers.Go(t)},
	}})
	a := newTestActor(t, m)
	a.mustSucceed(&messages.HandleRequests{Elicitation: true, Sampling: true, Roots: true})
	for _, name := range []string{"legacy", "modern"} {
		awaitConnected(t, m, name)
		if err := m.Reconnect(testContext(t, bound), name); err != nil { // it may have connected before somebody answered
			t.Fatal(err)
		}
	}

	resources := a.sendCommand(&messages.ListResources{}).(*messages.ResourcesReply)
	for _, uri := range []string{features, "test://static-text"} {
		if !slices.ContainsFunc(resources.GetResources(), func(r *messages.ResourceEntry) bool { return r.GetUri() == uri }) {
			t.Errorf("%s is not among %d resources: %v", uri, len(resources.GetResources()), resources.GetFailures())
		}
	}
	for uri, want := range map[string]string{
		"test://static-text": "This is the content", "test://template/9/data": "Data for ID: 9",
		"demo://resource/dynamic/text/3": "Resource 3", features: "Everything Server - Features",
	} {
		read := a.sendCommand(&messages.ReadResource{RequestId: uri, Uri: uri}).(*messages.ReadResourceReply)
		if read.GetRequestId() != uri || read.GetOutcome() != "result" || !strings.Contains(string(read.GetResult()), want) {
			t.Errorf("read %s: %v", uri, read)
		}
	}
	prompts := a.sendCommand(&messages.ListPrompts{}).(*messages.PromptsReply)
	if len(prompts.GetPrompts()) < 8 || len(prompts.GetFailures()) != 0 {
		t.Errorf("prompts: %v", prompts)
	}
	for _, g := range []*messages.GetPrompt{
		{Prompt: "mcp__legacy__args-prompt", Arguments: map[string]string{"city": "Bonn"}},
		{Server: "modern", Prompt: "test_prompt_with_arguments", Arguments: map[string]string{"arg1": "Bonn", "arg2": "x"}},
	} {
		if got := a.sendCommand(g).(*messages.GetPromptReply); got.GetOutcome() != "result" ||
			!strings.Contains(string(got.GetResult()), "Bonn") {
			t.Errorf("%s: %v", g.GetPrompt(), got)
		}
	}
	completion := a.sendCommand(&messages.Complete{Server: "legacy", Prompt: "completable-prompt", Argument: "department",
		Value: "M"}).(*messages.CompleteReply)
	if !slices.Equal(completion.GetValues(), []string{"Marketing"}) {
		t.Errorf("completion: %v", completion)
	}
	for call, want := range map[*messages.CallTool]string{
		{Server: "legacy", Tool: "trigger-elicitation-request"}:                                   "- Name: an actor",
		{Server: "legacy", Tool: "trigger-sampling-request", Arguments: []byte(`{"prompt":"?"}`)}: "an actor's model",
		{Server: "legacy", Tool: "get-roots-list"}:                                                "file:///of/an/actor",
		{Server: "modern", Tool: "test_input_required_result_elicitation"}:                        "Hello, an actor!",
		{Server: "modern", Tool: "test_input_required_result_sampling"}:                           "an actor's model",
		{Server: "modern", Tool: "test_input_required_result_list_roots"}:                         "file:///of/an/actor",
	} {
		reply, ok := a.sendCommand(call).(*messages.CallToolReply)
		if !ok || reply.GetOutcome() != "result" || !strings.Contains(string(reply.GetResult()), want) {
			t.Errorf("%s:%s: %v", call.GetServer(), call.GetTool(), reply)
		}
	}
	requested := map[string]bool{}
	for len(a.received) > 0 {
		requested[<-a.received] = true
	}
	for _, server := range []string{"legacy", "modern"} {
		for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
			if !requested[fmt.Sprint(server, " ", method)] {
				t.Errorf("%s never asked %s", server, method)
			}
		}
	}
	a.mustSucceed(&messages.Watch{})
	a.mustSucceed(&messages.SubscribeResource{Server: "modern", Uri: "test://watched-resource"})
	for {
		e := receiveWithin(t, a.events)
		if e.GetKind() == string(messages.EventResourceUpdated) && e.GetServer() == "modern" {
			break
		}
	}
	a.mustSucceed(&messages.Unwatch{})
}

// The five transports of the first seed at once, and websocket beside them.
func TestEveryTypeOfTransportIsSupportedAtOnce(t *testing.T) {
	seeds.Shows(t, "000.11.config-types")
	checkLeaks(t)
	url := web.Serve(t, web.Good())
	socket := newSocketServer()
	t.Cleanup(socket.wait.Wait)
	m := startManager(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{
			"stdio":          changeSpec(fixtureSpec("good"), func(s *supervisor.Spec) { s.Type = messages.Stdio }),
			"sse":            {Type: messages.SSE, URL: url + "/sse"},
			"http":           {Type: messages.HTTP, URL: url + "/mcp"},
			"sdk":            {Type: messages.SDK},
			"claudeai-proxy": {Type: messages.ClaudeAIProxy, URL: url + "/mcp", ID: "mcpsrv_02"},
			"websocket":      {Type: messages.WebSocket, URL: strings.Replace(web.Serve(t, socket), "http", "ws", 1)},
		},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"sdk": gosdk.Serve(sdkServer(1, nil))},
	})
	for _, name := range []string{"stdio", "sse", "http", "claudeai-proxy", "websocket"} {
		awaitConnected(t, m, name)
		checkText(t, m, name, "echo", object{"text": name}, name)
	}
	awaitConnected(t, m, "sdk")
	checkText(t, m, "sdk", "tool-000", nil, "tool-000")
}
