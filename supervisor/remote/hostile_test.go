package remote_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	protoremote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// hostilePeer is a peer that writes its frames by hand, without an actor system, and can break every rule.
type hostilePeer struct {
	protoremote.UnimplementedRemotingServer
	t       *testing.T
	address string
	out     protoremote.Remoting_ReceiveClient
	got     chan receivedMessage
	refused error // the stream was not opened
	leave   func()
}

// receivedMessage is one message that the hostile peer got.
type receivedMessage struct {
	name string
	data []byte
}

// Receive implements protoremote.RemotingServer: it records the messages of the manager.
func (s *hostilePeer) Receive(stream protoremote.Remoting_ReceiveServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetConnectRequest() != nil {
			_ = stream.Send(&protoremote.RemoteMessage{MessageType: &protoremote.RemoteMessage_ConnectResponse{
				ConnectResponse: &protoremote.ConnectResponse{}}})
			continue
		}
		b := m.GetMessageBatch()
		for _, e := range b.GetEnvelopes() {
			s.got <- receivedMessage{b.GetTypeNames()[e.GetTypeId()], e.GetMessageData()}
		}
	}
}

// connectPeer listens with the identity's certificate and opens a stream to the manager. claimed, if not empty, is
// the address at which it claims to listen.
func connectPeer(t *testing.T, to site, identity, claimed string) *hostilePeer {
	t.Helper()
	a, _ := here()
	cert := a.issue(t, identity)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &hostilePeer{t: t, address: lis.Addr().String(), got: make(chan receivedMessage, 10000)}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: a.pool,
		ClientAuth: tls.RequireAndVerifyClientCert})))
	protoremote.RegisterRemotingServer(server, s)
	go func() { _ = server.Serve(lis) }()
	conn, err := grpc.NewClient(to.pid.Address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: a.pool})))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s.leave = func() { cancel(); _ = conn.Close(); server.Stop() }
	t.Cleanup(s.leave)
	if s.out, s.refused = protoremote.NewRemotingClient(conn).Receive(ctx); s.refused != nil {
		return s
	}
	if claimed == "" {
		claimed = s.address
	}
	_ = s.out.Send(greeting(claimed)) // greeted shows whether the manager accepted it
	return s
}

func greeting(address string) *protoremote.RemoteMessage {
	return &protoremote.RemoteMessage{MessageType: &protoremote.RemoteMessage_ConnectRequest{ConnectRequest: &protoremote.ConnectRequest{
		ConnectionType: &protoremote.ConnectRequest_ServerConnection{ServerConnection: &protoremote.ServerConnection{Address: address}}}}}
}

// greeted waits for the answer to the greeting.
func (s *hostilePeer) greeted() error {
	if s.refused != nil {
		return s.refused
	}
	_, err := s.out.Recv()
	return err
}

func frame(target string, sender *actor.PID, all ...proto.Message) *protoremote.RemoteMessage {
	b := &protoremote.MessageBatch{Targets: []string{target}}
	if sender != nil {
		b.Senders = []*actor.PID{sender}
	}
	for i, m := range all {
		raw, _ := proto.Marshal(m)
		b.TypeNames = append(b.TypeNames, string(m.ProtoReflect().Descriptor().FullName()))
		b.Envelopes = append(b.Envelopes, &protoremote.MessageEnvelope{TypeId: int32(i), MessageData: raw, Sender: int32(len(b.Senders))})
	}
	return &protoremote.RemoteMessage{MessageType: &protoremote.RemoteMessage_MessageBatch{MessageBatch: b}}
}

func (s *hostilePeer) send(m *protoremote.RemoteMessage) {
	s.t.Helper()
	must(s.t, s.out.Send(m))
}

func (s *hostilePeer) me(id string) *actor.PID { return actor.NewPID(s.address, id) }

// receiveMessage returns the next message of a type, and skips those of other types before it.
func receiveMessage[T proto.Message](t *testing.T, s *hostilePeer) (m T) {
	t.Helper()
	m = m.ProtoReflect().New().Interface().(T)
	for end := time.After(time.Minute); ; {
		select {
		case h := <-s.got:
			if h.name == string(m.ProtoReflect().Descriptor().FullName()) {
				must(t, proto.Unmarshal(h.data, m))
				return m
			}
		case <-end:
			t.Fatalf("no %T came", m)
		}
	}
}

// receiveBoth returns the next message of each of two types, in either order.
func receiveBoth[A, B proto.Message](t *testing.T, s *hostilePeer) (a A, b B) {
	t.Helper()
	a, b = a.ProtoReflect().New().Interface().(A), b.ProtoReflect().New().Interface().(B)
	missing := map[string]proto.Message{string(a.ProtoReflect().Descriptor().FullName()): a, string(b.ProtoReflect().Descriptor().FullName()): b}
	for end := time.After(time.Minute); len(missing) > 0; {
		select {
		case h := <-s.got:
			if m := missing[h.name]; m != nil {
				must(t, proto.Unmarshal(h.data, m))
				delete(missing, h.name)
			}
		case <-end:
			t.Fatalf("these never came: %v", missing)
		}
	}
	return a, b
}

// requestReply sends a command as an actor of the stranger's own and waits for the reply.
func requestReply[T proto.Message](t *testing.T, s *hostilePeer, m proto.Message) T {
	t.Helper()
	s.send(frame("mcpvisor", s.me("a"), m))
	return receiveMessage[T](t, s)
}

const admin, second, agent = "mcpvisor://test/admin/one", "mcpvisor://test/admin/two", "mcpvisor://test/agent/a"

// The end of an actor is believed only if that actor is watched, and only its watcher gets it: no other actor is
// reached, and no such message ends the process.
func TestAForgedEndReachesNobody(t *testing.T) {
	s := startFarSite(t)
	x := connectPeer(t, s, admin, "")
	must(t, x.greeted())
	for _, target := range []string{"victim", "mcpvisor", "mcpvisor-1", "EndpointSupervisor", "nobody"} {
		for _, end := range []*actor.Terminated{{}, {Who: &actor.PID{}}, {Who: x.me("a")}, {Who: actor.NewPID("127.0.0.1:1", "b")},
			{Who: actor.NewPID(s.pid.Address, "mcpvisor-1")}} {
			x.send(frame(target, nil, end))
		}
	}
	for _, m := range []proto.Message{&actor.Stop{}, &actor.PoisonPill{}, &actor.Touch{}, &actor.DeadLetterResponse{}, &messages.StatusReply{},
		&protoremote.ActorPidRequest{Kind: "x"}, &actor.Watch{}, &actor.Unwatch{}, &actor.Watch{Watcher: actor.NewPID(s.pid.Address, "victim")},
		&actor.Watch{Watcher: actor.NewPID("nonhost", "victim")}} {
		x.send(frame("mcpvisor", x.me("a"), m))
		x.send(frame("victim", x.me("a"), m))
	}
	if r := requestReply[*messages.StatusReply](t, x, &messages.GetStatus{}); r.GetFailure() != nil {
		t.Errorf("%v", r)
	}
	if said := s.manager.say("how many were dropped?"); said != "45" {
		t.Errorf("the manager says %q, want 45 messages that were dropped", said)
	}
	// A watch of ours ends with the actor that watched, and with that one only.
	x.send(frame("mcpvisor", x.me("a"), &messages.Watch{}))
	w, d := receiveBoth[*actor.Watch, *messages.Done](t, x) // of two actors: either may come first
	if d.GetFailure() != nil {
		t.Fatal(d)
	}
	x.send(frame(w.GetWatcher().GetId(), nil, &actor.Terminated{Who: x.me("another")}))
	x.send(frame(w.GetWatcher().GetId(), nil, &actor.Terminated{Who: x.me("a")}))
	x.send(frame(w.GetWatcher().GetId(), nil, &actor.Terminated{Who: x.me("a")})) // no actor watches this one any more
	requestReply[*messages.StatusReply](t, x, &messages.GetStatus{})
	if said := s.manager.say("how many were dropped?"); said != "47" {
		t.Errorf("the manager says %q", said)
	}
}

// A frame that would decode to far more memory than it has bytes costs its stream, before anything of it is decoded.
func TestAFrameOfManyNothingsIsNotRead(t *testing.T) {
	s := startFarSite(t)
	x := connectPeer(t, s, admin, "")
	must(t, x.greeted())
	many := &protoremote.MessageBatch{}
	for range 1 << 18 {
		many.Envelopes = append(many.Envelopes, &protoremote.MessageEnvelope{})
	}
	x.send(&protoremote.RemoteMessage{MessageType: &protoremote.RemoteMessage_MessageBatch{MessageBatch: many}})
	if _, err := x.out.Recv(); err == nil {
		t.Error("the stream goes on")
	}
	y := connectPeer(t, s, admin, "")
	must(t, y.greeted())
	specs := &messages.SetServers{Servers: map[string]*messages.ServerSpec{}}
	for i := range 12000 {
		specs.Servers[fmt.Sprint(i)] = &messages.ServerSpec{}
	}
	half := frame("mcpvisor", y.me("a"), specs, specs, specs, specs, specs) // each is larger than MaxMessage, and none is decoded
	y.send(half)
	for range 5 {
		if r := receiveMessage[*messages.SetServersReply](t, y); r.GetFailure().GetClass() != string(messages.ClassInvalid) {
			t.Errorf("%v", r)
		}
	}
	if d := requestReply[*messages.StatusReply](t, y, &messages.GetStatus{}); d.GetFailure() != nil {
		t.Errorf("%v", d)
	}
}

// A sender must be an actor at the address of its stream, which has shown the same identity: a peer cannot touch
// another peer's watches, and the manager dials no address because a message names it.
func TestASenderIsBoundToItsCertificate(t *testing.T) {
	s := startFarSite(t)
	c := &collector{got: make(chan any, 1000)}
	pid := s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }))
	defer s.system.Root.Stop(pid)
	s.system.Root.RequestWithCustomSender(s.pid, &messages.Watch{}, pid)
	if d, ok := (<-c.got).(*messages.Done); !ok || d.GetFailure() != nil {
		t.Fatal(d)
	}
	bait, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = bait.Close() }()
	dialled := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := bait.Accept()
			if err != nil {
				return
			}
			dialled <- struct{}{}
			_ = conn.Close()
		}
	}()
	x := connectPeer(t, s, admin, "")
	must(t, x.greeted())
	for _, forged := range []*actor.PID{pid, actor.NewPID(bait.Addr().String(), "a"), actor.NewPID(s.pid.Address, "victim"),
		actor.NewPID("nonhost", "victim"), {}, x.me("")} {
		x.send(frame("mcpvisor", forged, &messages.Unwatch{}, &messages.GetStatus{}, &messages.Watch{}))
		x.send(frame("mcpvisor", nil, &actor.Watch{Watcher: forged}))
	}
	if r := requestReply[*messages.StatusReply](t, x, &messages.GetStatus{}); r.GetFailure() != nil {
		t.Errorf("%v", r)
	}
	// The other peer's watch goes on.
	s.ask(t, &messages.AddServer{Name: "r", Spec: &messages.ServerSpec{Template: "s"}})
	for e := range c.got {
		if w, ok := e.(*messages.WatchEvent); ok && w.GetStatus().GetStatus() == "connected" {
			break
		}
	}
	select {
	case <-dialled:
		t.Error("the manager dialled what a message named")
	default:
	}
	if said := s.manager.say("?"); said != "24" {
		t.Errorf("dropped: %s", said)
	}
}

// An address belongs to a peer if its certificate names the host and the same identity answers there.
func TestAnAddressIsProven(t *testing.T) {
	s := startFarSite(t)
	honest := connectPeer(t, s, second, "")
	must(t, honest.greeted())
	for name, address := range map[string]string{
		"another peer's": honest.address, "the manager's own": s.pid.Address, "of a host that the certificate does not name": "localhost:1",
		"nobody listens": "127.0.0.1:1", "no port": "127.0.0.1", "none": "",
	} {
		t.Run(name, func(t *testing.T) {
			if address == "" {
				address = "x"
			}
			if err := connectPeer(t, s, admin, address).greeted(); err == nil {
				t.Error("it was let in")
			}
		})
	}
	if r := requestReply[*messages.StatusReply](t, honest, &messages.GetStatus{}); r.GetFailure() != nil {
		t.Errorf("the other peer: %v", r)
	}
}

// A peer gets the servers, commands and events that its rights name, and nothing of other servers.
func TestRightsOfAPeer(t *testing.T) {
	s := startFarSite(t)
	s.ask(t, &messages.AddServer{Name: "secret", Spec: &messages.ServerSpec{Template: "s"}})
	s.connected(t, "secret")
	x := connectPeer(t, s, agent, "")
	must(t, x.greeted())
	if d := requestReply[*messages.Done](t, x, &messages.Watch{}); d.GetFailure() != nil {
		t.Fatal(d)
	}
	if d := requestReply[*messages.Done](t, x, &messages.AddServer{Name: "own-1", Spec: &messages.ServerSpec{Template: "s"}}); d.GetFailure() != nil {
		t.Fatal(d)
	}
	s.connected(t, "own-1")
	if r := requestReply[*messages.StatusReply](t, x, &messages.GetStatus{}); len(r.GetServers()) != 1 || r.GetServers()[0].GetName() != "own-1" {
		t.Errorf("%v", r)
	}
	if r := requestReply[*messages.ToolsReply](t, x, &messages.ListTools{}); len(r.GetTools()) != 3 || r.GetTools()[0].GetServer() != "own-1" {
		t.Errorf("%v", r)
	}
	call := func(m *messages.CallTool) *messages.CallToolReply {
		return requestReply[*messages.CallToolReply](t, x, m)
	}
	if r := call(&messages.CallTool{CallId: "1", Tool: "mcp__own-1__echo"}); r.GetOutcome() != "result" || r.GetCallId() != "1" {
		t.Errorf("%v", r)
	}
	refused := func(f *messages.Failure, what string) {
		t.Helper()
		if f.GetClass() != string(messages.ClassDenied) {
			t.Errorf("%s: %v", what, f)
		}
	}
	refused(call(&messages.CallTool{CallId: "2", Tool: "mcp__secret__echo"}).GetFailure(), "another server's tool")
	refused(call(&messages.CallTool{Server: "secret", Tool: "echo"}).GetFailure(), "another server")
	refused(requestReply[*messages.StatusReply](t, x, &messages.GetStatus{Names: []string{"own-1", "secret"}}).GetFailure(), "its status")
	refused(requestReply[*messages.ToolsReply](t, x, &messages.ListTools{Servers: []string{"secret"}}).GetFailure(), "its tools")
	for what, m := range map[string]proto.Message{
		"a name": &messages.AddServer{Name: "other", Spec: &messages.ServerSpec{Template: "s"}},
		"a template": &messages.AddServer{Name: "own-2", Spec: &messages.ServerSpec{Template: "script",
			Parameters: map[string]string{"repo": "a"}}},
		"removal": &messages.RemoveServer{Name: "own-1"}, "credentials": &messages.ProvideCredentials{Server: "own-1", Token: "x"},
		"questions": &messages.HandleRequests{Sampling: true},
	} {
		refused(requestReply[*messages.Done](t, x, m).GetFailure(), what)
	}
	// Events of other servers are not sent. The next event is about a server of its own.
	s.ask(t, &messages.ReconnectServer{Name: "secret"})
	s.connected(t, "secret")
	s.ask(t, &messages.DisableServer{Name: "own-1"})
	for {
		e := receiveMessage[*messages.WatchEvent](t, x)
		if strings.HasPrefix(e.GetServer(), "secret") {
			t.Errorf("told: %v", e)
		}
		if e.GetStatus().GetStatus() == "disabled" {
			break
		}
	}
	none := connectPeer(t, s, "mcpvisor://test/agent/none", "")
	must(t, none.greeted())
	refused(requestReply[*messages.StatusReply](t, none, &messages.GetStatus{}).GetFailure(), "anything")
}

// The id of a call, and the question of a server, belong to one peer alone.
func TestWhatOnePeerHasIsNotAnothers(t *testing.T) {
	s := startFarSite(t)
	s.ask(t, &messages.AddServer{Name: "r", Spec: &messages.ServerSpec{Template: "s"}})
	s.connected(t, "r")
	mine, other := connectPeer(t, s, admin, ""), connectPeer(t, s, second, "")
	must(t, mine.greeted())
	must(t, other.greeted())
	if r := requestReply[*messages.CallToolReply](t, mine, &messages.CallTool{CallId: "id", Server: "r", Tool: "big", Arguments: []byte(`{"size":7}`)}); !strings.Contains(string(r.GetResult()), "xxxxxxx") {
		t.Errorf("%v", r)
	}
	if r := requestReply[*messages.CallToolReply](t, other, &messages.CallTool{CallId: "id", Server: "r", Tool: "echo"}); strings.Contains(string(r.GetResult()), "xx") {
		t.Errorf("another's result: %v", r)
	}
	if r := requestReply[*messages.CallToolReply](t, mine, &messages.CallTool{CallId: "id", Server: "r", Tool: "big", Arguments: []byte(`{"size":7}`)}); r.GetCallId() != "id" || !strings.Contains(string(r.GetResult()), "xxxxxxx") {
		t.Errorf("its own, again: %v", r)
	}
	if d := requestReply[*messages.Done](t, mine, &messages.HandleRequests{Sampling: true}); d.GetFailure() != nil {
		t.Fatal(d)
	}
	s.ask(t, &messages.AddServer{Name: "asking", Spec: &messages.ServerSpec{Template: "s"}}) // it hears that questions are answered
	s.connected(t, "asking")
	mine.send(frame("mcpvisor", mine.me("b"), &messages.CallTool{CallId: "q", Server: "asking", Tool: "ask"}))
	q := receiveMessage[*messages.ServerRequest](t, mine)
	other.send(frame("mcpvisor", other.me("a"), &messages.ServerRequestReply{RequestId: q.GetRequestId(), Result: []byte(`{"model":"wrong answer"}`)}))
	requestReply[*messages.StatusReply](t, other, &messages.GetStatus{})
	mine.send(frame("mcpvisor", nil, &messages.ServerRequestReply{RequestId: q.GetRequestId(), Result: []byte(`{"model":"four"}`)}))
	if r := receiveMessage[*messages.CallToolReply](t, mine); !strings.Contains(string(r.GetResult()), `"xxxx"`) {
		t.Errorf("%v", r)
	}
	// A peer cannot end a subscription that it does not have.
	if d := requestReply[*messages.Done](t, other, &messages.UnsubscribeResource{Server: "r", Uri: "x:///"}); d.GetFailure().GetClass() != string(messages.ClassDenied) {
		t.Errorf("%v", d)
	}
}

// The watches and the connections of one identity are bounded.
func TestAPeerIsBounded(t *testing.T) {
	s := startFarSite(t)
	x := connectPeer(t, s, admin, "")
	must(t, x.greeted())
	full := 0
	for i := range 80 {
		x.send(frame("mcpvisor", x.me(fmt.Sprint(i)), &messages.Watch{}))
		if receiveMessage[*messages.Done](t, x).GetFailure().GetClass() == string(messages.ClassExhausted) {
			full++
		}
	}
	if full != 16 {
		t.Errorf("%d of 80 watches were refused, want 16", full)
	}
	x.send(frame("mcpvisor", x.me("7"), &messages.Watch{}))
	if d := receiveMessage[*messages.Done](t, x); d.GetFailure() != nil {
		t.Errorf("a watch that replaces its own at the bound: %v", d)
	}
	x.send(frame("mcpvisor", x.me("7"), &messages.Unwatch{}))
	receiveMessage[*messages.Done](t, x)
	x.send(frame("mcpvisor", x.me("new"), &messages.Watch{}))
	if d := receiveMessage[*messages.Done](t, x); d.GetFailure() != nil {
		t.Errorf("after Unwatch: %v", d)
	}
	in := 0
	for range 40 {
		if connectPeer(t, s, second, "").greeted() == nil {
			in++
		}
	}
	if in == 0 || in > 32 {
		t.Errorf("%d connections of one identity", in)
	}
	if r := requestReply[*messages.StatusReply](t, x, &messages.GetStatus{}); r.GetFailure() != nil {
		t.Errorf("another identity: %v", r)
	}
}

// A subscription counts as long as the server agrees to it and its peer is there: what the server refused takes no place,
// and what a lost peer had subscribed to is ended at the server.
func TestASubscriptionNeedsAnAgreementAndAPeer(t *testing.T) {
	s := startFarSite(t)
	s.ask(t, &messages.AddServer{Name: "r", Spec: &messages.ServerSpec{Template: "s"}})
	s.connected(t, "r")
	x, other := connectPeer(t, s, second, ""), connectPeer(t, s, admin, "")
	must(t, x.greeted())
	must(t, other.greeted())
	subscriptions := func() string {
		r := requestReply[*messages.ReadResourceReply](t, other, &messages.ReadResource{Server: "r", Uri: "x:///"})
		return string(r.GetResult())
	}
	const frames, perFrame = 17, 64 // more than the 1,024 that an identity may have
	for n := range frames {
		var all []proto.Message
		for i := range perFrame {
			all = append(all, &messages.SubscribeResource{Server: "nobody", Uri: fmt.Sprint("x:///", n*perFrame+i)})
		}
		x.send(frame("mcpvisor", x.me("a"), all...))
		for range perFrame {
			if d := receiveMessage[*messages.Done](t, x); d.GetFailure().GetClass() == string(messages.ClassExhausted) {
				t.Fatalf("a refused subscription takes a place: %v", d)
			}
		}
	}
	for uri, agreed := range map[string]bool{"x:///no": false, "x:///yes": true} {
		if d := requestReply[*messages.Done](t, x, &messages.SubscribeResource{Server: "r", Uri: uri}); (d.GetFailure() == nil) != agreed {
			t.Errorf("%s: %v", uri, d)
		}
		d := requestReply[*messages.Done](t, x, &messages.UnsubscribeResource{Server: "r", Uri: uri})
		if (d.GetFailure() == nil) != agreed {
			t.Errorf("the end of %s: %v", uri, d)
		}
	}
	for _, uri := range []string{"x:///both", "x:///one"} {
		requestReply[*messages.Done](t, x, &messages.SubscribeResource{Server: "r", Uri: uri})
	}
	requestReply[*messages.Done](t, other, &messages.SubscribeResource{Server: "r", Uri: "x:///both"})
	if got := subscriptions(); !strings.Contains(got, `"text":"2"`) {
		t.Errorf("the server has the subscriptions %s, want 2", got)
	}
	x.leave()
	got := ""
	for deadline := time.Now().Add(time.Minute); !strings.Contains(got, `"text":"1"`); time.Sleep(10 * time.Millisecond) {
		if got = subscriptions(); time.Now().After(deadline) {
			t.Fatalf("after the loss of a peer the server has the subscriptions %s, want 1", got)
		}
	}
}

// The side of Join accepts streams only from identities that it has sent to.
func TestAPeerHearsOnlyWhomItAsked(t *testing.T) {
	s := startFarSite(t)
	s.ask(t, &messages.GetStatus{})
	got := make(chan any, 10)
	pid := s.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started, *actor.Stopping, *actor.Stopped:
		default:
			got <- m
		}
	}))
	defer s.system.Root.Stop(pid)
	x := connectPeer(t, site{pid: pid, system: s.system}, second, "")
	if err := x.greeted(); err == nil {
		t.Error("a stranger was let in")
	}
	select {
	case m := <-got:
		t.Errorf("it heard %T", m)
	default:
	}
}
