package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// TestRequestsAreAnsweredAtTheEnd: an interceptor holds a call and a read until after their manager has closed its last server. Both are
// replied to once before Terminated comes: with their own ends within two seconds, else as of unknown outcome. So is the actor that
// repeated the id.
func TestRequestsAreAnsweredAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		held    time.Duration
		end     func(*actor.RootContext, *actor.PID) actor.Future
		outcome string
	}{
		"poison, soon":  {time.Second, (*actor.RootContext).PoisonFuture, "result"},
		"poison, later": {time.Minute, (*actor.RootContext).PoisonFuture, "unknown"},
		"stop":          {time.Second, (*actor.RootContext).StopFuture, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := make(chan struct{})
				cfg := supervisortest.AddTo(supervisor.Config{}, supervisortest.NewServer("s", supervisortest.Text("go", "done")))
				serve := cfg.InProcess["s"]
				cfg.InProcess["s"] = func(ctx context.Context, peer inprocess.Peer) error {
					defer close(left)
					return serve(ctx, peer)
				}
				cfg.Interceptors = []supervisor.Interceptor{
					func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
						res, err := next(ctx, r)
						<-left
						time.Sleep(c.held)
						return res, err
					}}
				m, err := supervisor.Start(t.Context(), cfg)
				if err != nil || m.Ready(t.Context()) != nil {
					t.Fatal(err)
				}
				root := m.System().Root
				callers := []*asker{{got: make(chan proto.Message, 10)}, {got: make(chan proto.Message, 10)}, {got: make(chan proto.Message, 10)}}
				for i, a := range callers {
					pid := root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
					if i < 2 { // the same call twice
						root.RequestWithCustomSender(m.PID(), &messages.CallTool{CallId: "1", Server: "s", Tool: "go"}, pid)
					} else {
						root.RequestWithCustomSender(m.PID(), &messages.ReadResource{RequestId: "2", Server: "s", Uri: "a://b"}, pid)
					}
				}
				synctest.Wait()
				began := time.Now()
				if err := c.end(root, m.PID()).Wait(); err != nil {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				synctest.Wait()
				for i, a := range callers {
					if len(a.got) != 1 {
						t.Fatalf("caller %d has %d replies", i, len(a.got))
					}
					switch reply := (<-a.got).(type) {
					case *messages.CallToolReply:
						if i > 1 || reply.GetOutcome() != c.outcome || reply.GetCallId() != "1" ||
							c.outcome == "unknown" && !errors.Is(reply.GetFailure().ToError(), supervisor.ErrClosed) {
							t.Errorf("caller %d: %v", i, reply)
						}
					case *messages.ReadResourceReply:
						if i < 2 || reply.GetRequestId() != "2" || reply.GetFailure() == nil ||
							errors.Is(reply.GetFailure().ToError(), supervisor.ErrClosed) != (c.outcome == "unknown") {
							t.Errorf("caller %d: %v", i, reply)
						}
					default:
						t.Errorf("caller %d: %v", i, reply)
					}
				}
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Minute)
				for i, a := range callers {
					if len(a.got) > 0 {
						t.Errorf("caller %d has another reply: %v", i, <-a.got)
					}
				}
			})
		})
	}
}

// TestTheManagerIsPoisonedWhenItsServerAnswers: whatever the instant at which the poison meets calls, reads and commands that the server
// has not answered yet, each of them gets one reply.
func TestTheManagerIsPoisonedWhenItsServerAnswers(t *testing.T) {
	for range 60 {
		synctest.Test(t, func(t *testing.T) {
			cfg := supervisortest.AddTo(supervisor.Config{CallWait: time.Minute}, supervisortest.NewServer("s", supervisortest.Text("go", "done")))
			serve := cfg.InProcess["s"]
			cfg.InProcess["s"] = func(ctx context.Context, peer inprocess.Peer) error {
				time.Sleep(time.Second)
				return serve(ctx, peer)
			}
			m, err := supervisor.Start(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			root := m.System().Root
			a := &asker{got: make(chan proto.Message, 100)}
			pid := root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
			commands := []proto.Message{&messages.CallTool{Server: "s", Tool: "go"}, &messages.CallTool{Tool: "mcp__s__go"}, &messages.GetStatus{},
				&messages.ListResources{}, &messages.PingServer{Server: "s"}, &messages.ReconnectServer{Name: "s"}, &messages.DisableServer{Name: "s"},
				&messages.AddServer{Name: "t", Spec: supervisor.Spec{Type: messages.SDK}.ToProto()}, &messages.SetServers{}}
			for _, command := range commands[:3] {
				root.RequestWithCustomSender(m.PID(), command, pid)
			}
			time.Sleep(time.Second)
			for _, command := range commands[3:] {
				root.RequestWithCustomSender(m.PID(), command, pid)
			}
			if err := root.PoisonFuture(m.PID()).Wait(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			if len(a.got) != len(commands) {
				var got []string
				for len(a.got) > 0 {
					got = append(got, string((<-a.got).ProtoReflect().Descriptor().Name()))
				}
				t.Fatalf("%d commands, replies: %q", len(commands), got)
			}
			_ = m.Close(t.Context())
		})
	}
}
