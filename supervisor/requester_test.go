package supervisor_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// askActor sends a message and returns the reply to it, nil if none comes within a minute.
func askActor(t *testing.T, m *supervisor.Manager, message any) any {
	t.Helper()
	reply, err := m.System().Root.RequestFuture(m.PID(), message, time.Minute).Result()
	if err != nil && !errors.Is(err, actor.ErrTimeout) {
		t.Fatalf("%T: %v", message, err)
	}
	return reply
}

// TestEveryMessageIsAnswered sends each message of the vocabulary: a command is answered under its own id, by the reply that its
// comment names, and what is no command with a Failure that says so. Two get no answer: the answer to a server's question, and a Failure.
func TestEveryMessageIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := supervisortest.Start(t, supervisortest.NewServer("s"))
		all := (&messages.Done{}).ProtoReflect().Descriptor().ParentFile().Messages()
		for i := range all.Len() {
			kind, err := protoregistry.GlobalTypes.FindMessageByName(all.Get(i).FullName())
			if err != nil {
				t.Fatal(err)
			}
			message, name := kind.New(), string(all.Get(i).Name())
			field := all.Get(i).Fields().ByName("request_id")
			if name == "CallTool" {
				field = all.Get(i).Fields().ByName("call_id")
			}
			if field != nil && field.Kind() == protoreflect.StringKind {
				message.Set(field, protoreflect.ValueOfString("id 1"))
			}
			reply := askActor(t, m, message.Interface())
			failure, refused := reply.(*messages.Failure)
			switch {
			case name == "Failure" || name == "ServerRequestReply":
				if reply != nil {
					t.Errorf("%s is answered: %v", name, reply)
				}
			case slices.Contains(supervisor.CommandNames, name):
				id := reply.(interface{ ProtoReflect() protoreflect.Message }).ProtoReflect()
				at := id.Descriptor().Fields().ByName("request_id")
				if name == "CallTool" {
					at = id.Descriptor().Fields().ByName("call_id")
				}
				if refused || at == nil || id.Get(at).String() != "id 1" {
					t.Errorf("%s is answered with %T %v", name, reply, reply)
				}
			case !refused || failure.GetClass() != string(messages.ClassInvalid) || !strings.Contains(failure.GetText(), name) ||
				!strings.Contains(failure.GetFix(), "CallTool") || !errors.Is(failure.ToError(), supervisor.ErrNotSent):
				t.Errorf("%s is answered with %T %v", name, reply, reply)
			}
		}
		for _, strange := range []any{"hello", 7, struct{ Secret string }{"canary"}, proto.Message(nil), (*messages.CallTool)(nil)} {
			switch reply := askActor(t, m, strange).(type) {
			case *messages.Failure:
				if strings.Contains(reply.String(), "canary") {
					t.Errorf("%T: the failure shows the message", strange)
				}
			case *messages.CallToolReply: // a nil command is an empty one
			default:
				t.Errorf("%T is answered with %v", strange, reply)
			}
		}
	})
}

// TestTheEndOfThePIDIsTheEndOfTheManager: Poison and Stop of PID close all of it, and Terminated comes when the last connection is gone.
// A call by message that runs when the poison comes is answered.
func TestTheEndOfThePIDIsTheEndOfTheManager(t *testing.T) {
	for _, name := range []string{"poison", "stop"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := supervisortest.NewServer("s", supervisortest.Func("slow", func(ctx context.Context, _ supervisortest.Call) (string, error) {
					select {
					case <-time.After(2 * time.Second):
						return "done", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}))
				cfg := supervisortest.AddTo(supervisor.Config{}, s)
				serve, left := cfg.InProcess["s"], make(chan struct{})
				cfg.InProcess["s"] = func(ctx context.Context, peer inprocess.Peer) error {
					defer close(left)
					defer time.Sleep(time.Second) // a server that takes its time to end
					return serve(ctx, peer)
				}
				m, err := supervisor.Start(t.Context(), cfg)
				if err != nil || m.Ready(t.Context()) != nil {
					t.Fatal(err)
				}
				a := &asker{got: make(chan proto.Message, 10)}
				pid := m.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
				m.System().Root.RequestWithCustomSender(m.PID(), &messages.CallTool{CallId: "1", Server: "s", Tool: "slow"}, pid)
				synctest.Wait()
				watched := m.System().Root.PoisonFuture
				if name == "stop" {
					watched = m.System().Root.StopFuture
				}
				began := time.Now()
				if err := watched(m.PID()).Wait(); err != nil {
					t.Error(err)
				}
				select {
				case <-left:
				default:
					t.Errorf("terminated after %v, and the server is still there", time.Since(began))
				}
				if name == "poison" {
					if reply, ok := (<-a.got).(*messages.CallToolReply); !ok || reply.GetOutcome() != "result" {
						t.Errorf("the call: %v", reply)
					}
				}
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := m.CallTool(t.Context(), "mcp__s__slow", nil); !errors.Is(err, supervisor.ErrClosed) {
					t.Errorf("a call: %v", err)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestTheTableOfMessagesIsComplete: the documentation of package messages names every command with the reply that it gets.
func TestTheTableOfMessagesIsComplete(t *testing.T) {
	source, err := os.ReadFile("../messages/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, line := range strings.Split(string(source), "\n") {
		command, reply, row := strings.Cut(strings.TrimPrefix(line, "//\t"), "   ")
		if row && strings.HasPrefix(line, "//\t") {
			for _, name := range strings.Split(command, ", ") {
				rows[name] = strings.TrimSpace(reply)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m := supervisortest.Start(t, supervisortest.NewServer("s"))
		for _, name := range supervisor.CommandNames {
			if name == "ServerRequestReply" {
				continue
			}
			kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("mcpvisor." + name))
			if err != nil {
				t.Fatal(err)
			}
			got := string(askActor(t, m, kind.New().Interface()).(proto.Message).ProtoReflect().Descriptor().Name())
			if !regexp.MustCompile(`\b` + got + `\b`).MatchString(rows[name]) {
				t.Errorf("%s: the reply is %s, and the table says %q", name, got, rows[name])
			}
		}
	})
}

// TestAFutureThatSubscribes: who asks with RequestFuture for events, or to answer servers, is told Done. Its end follows, so that the
// next one may have the same kind of requests.
func TestAFutureThatSubscribes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := supervisortest.Start(t, supervisortest.NewServer("s"))
		for i := range 50 {
			for _, command := range []proto.Message{&messages.Watch{}, &messages.HandleRequests{Sampling: true, Elicitation: true}} {
				if reply, ok := askActor(t, m, command).(*messages.Done); !ok || reply.GetFailure() != nil {
					t.Fatalf("%d: %T is answered with %T %v", i, command, reply, reply)
				}
				synctest.Wait()
			}
		}
	})
}
