package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// asker is another actor of the same system: it sends commands and hands on what it receives.
type asker struct{ got chan proto.Message }

func (a *asker) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(proto.Message); ok {
		if _, system := m.(*actor.Terminated); !system {
			a.got <- m
		}
	}
}

func TestEverythingByMessageFromAnotherActor(t *testing.T) {
	seeds.Shows(t, "000.0.query-methods")
	synctest.Test(t, func(t *testing.T) {
		f, slow := newFake("echo", "fail"), newFake("x")
		slow.onCall = func(context.Context, string, json.RawMessage) (string, error) {
			time.Sleep(time.Second)
			return "done", nil
		}
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"f": {Type: messages.SDK, Disabled: true},
			"slow": {Type: messages.SDK}}}, map[string]*fake{"f": f, "slow": slow})
		settled(t, m)
		a := &asker{got: make(chan proto.Message, 1000)}
		pid := m.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
		defer m.System().Root.Stop(pid)
		send := func(msg proto.Message) { m.System().Root.RequestWithCustomSender(m.PID(), msg, pid) }
		ask := func(msg proto.Message) proto.Message { send(msg); return <-a.got }
		done := func(msg proto.Message) {
			t.Helper()
			if d, ok := ask(msg).(*messages.Done); !ok || d.GetFailure() != nil {
				t.Fatalf("%T: %v", msg, d)
			}
		}

		done(&messages.AddServer{Name: "r", Spec: supervisor.Spec{Type: messages.SDK, Name: "f"}.ToProto()})
		settled(t, m)
		reply := ask(&messages.CallTool{CallId: "1", Tool: "mcp__r__echo", Arguments: []byte(`{}`)}).(*messages.CallToolReply)
		if reply.GetOutcome() != "result" || reply.GetCallId() != "1" || len(reply.GetResult()) == 0 {
			t.Errorf("%v", reply)
		}
		// A repeated id runs once, also while the first is under way.
		send(&messages.CallTool{CallId: "2", Server: "slow", Tool: "x"})
		send(&messages.CallTool{CallId: "2", Server: "slow", Tool: "x"})
		first, second := <-a.got, <-a.got
		if !proto.Equal(first, second) || slow.calls.Load() != 1 {
			t.Errorf("%v / %v, %d executions", first, second, slow.calls.Load())
		}
		ask(&messages.CallTool{CallId: "2", Server: "slow", Tool: "x"})
		if slow.calls.Load() != 1 {
			t.Error("a remembered id ran again")
		}
		// The time that remains travels with the call.
		reply = ask(&messages.CallTool{Server: "slow", Tool: "x", TimeoutMs: 10}).(*messages.CallToolReply)
		if reply.GetOutcome() != "unknown" || reply.GetFailure().GetClass() != "timeout" {
			t.Errorf("%v", reply)
		}
		if reply = ask(&messages.CallTool{Server: "r", Tool: "fail"}).(*messages.CallToolReply); reply.GetOutcome() != "tool-error" {
			t.Errorf("%v", reply)
		}
		if reply = ask(&messages.CallTool{Tool: "mcp__x__y"}).(*messages.CallToolReply); reply.GetOutcome() != "not-sent" {
			t.Errorf("%v", reply)
		}
		tools := ask(&messages.ListTools{Servers: []string{"r"}}).(*messages.ToolsReply)
		if len(tools.GetTools()) != 2 || tools.GetTools()[0].GetQualifiedName() != "mcp__r__echo" {
			t.Errorf("%v", tools)
		}
		done(&messages.DisableServer{Name: "r"})
		if len(m.Tools().Server("r")) != 0 {
			t.Error("tools after the reply to DisableServer")
		}
		done(&messages.EnableServer{Name: "r"})
		done(&messages.ReconnectServer{Name: "r"})
		settled(t, m)
		st := ask(&messages.GetStatus{Names: []string{"r", "nobody"}}).(*messages.StatusReply)
		if len(st.GetServers()) != 1 || st.GetServers()[0].GetStatus() != "connected" || st.GetFailure().GetServer() != "nobody" {
			t.Errorf("%v", st)
		}
		if all := ask(&messages.GetStatus{}).(*messages.StatusReply); len(all.GetServers()) != 3 {
			t.Errorf("%v", all)
		}
		done(&messages.Watch{Buffer: 100})
		res := ask(&messages.SetServers{Servers: map[string]*messages.ServerSpec{
			"new": supervisor.Spec{Type: messages.SDK, Name: "f"}.ToProto(), "bad": {}}})
		var seen []string
		for r, ok := res.(*messages.SetServersReply); ; r, ok = res.(*messages.SetServersReply) {
			if ok {
				if len(r.GetAdded()) != 1 || len(r.GetRemoved()) != 1 || r.GetErrors()["bad"] == "" {
					t.Errorf("%v", r)
				}
				break
			}
			seen = append(seen, res.(*messages.WatchEvent).GetKind())
			res = <-a.got
		}
		settled(t, m)
		synctest.Wait()
		if len(seen)+len(a.got) == 0 {
			t.Error("the watching actor saw no event")
		}
		for len(a.got) > 0 {
			if _, ok := (<-a.got).(*messages.WatchEvent); !ok {
				t.Error("something other than an event")
			}
		}
		done(&messages.Unwatch{})
		done(&messages.RemoveServer{Name: "new"})
		for _, msg := range []proto.Message{&messages.RemoveServer{Name: "nobody"}, &messages.EnableServer{Name: "nobody"},
			&messages.ReconnectServer{Name: "nobody"}, &messages.AddServer{Name: "x"}, &messages.RemoveServer{Name: "f"}} {
			if d := ask(msg).(*messages.Done); d.GetFailure().GetText() == "" {
				t.Errorf("%T was not refused: %v", msg, d)
			}
		}
	})
}

// TestACommandNeedsNoSender checks that the manager obeys a message that was sent without a sender, which gets no reply.
func TestACommandNeedsNoSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"f": {Type: messages.SDK}}}, map[string]*fake{"f": f})
		settled(t, m)
		m.System().Root.Send(m.PID(), &messages.CallTool{Server: "f", Tool: "echo"})
		synctest.Wait()
		if n := f.calls.Load(); n != 1 {
			t.Errorf("the tool ran %d times, want once", n)
		}
	})
}

// TestStartThatIsRefusedLeavesNoActor checks a Start whose entry actor cannot be spawned, because the program has given its name
// to an actor of its own: the supervisor and its servers end, and the program's actor stays.
func TestStartThatIsRefusedLeavesNoActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Nanosecond))
		defer system.Shutdown()
		first, err := supervisor.Start(t.Context(), supervisor.Config{System: system})
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if _, err := fmt.Sscanf(first.PID().GetId(), "mcpvisor-%d-entry", &n); err != nil {
			t.Fatal(first.PID(), err)
		}
		closeAll(t, first)
		own, err := system.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), fmt.Sprintf("mcpvisor-%d-entry", n+1))
		if err != nil {
			t.Fatal(err)
		}
		f := newFake("echo")
		m, err := supervisor.Start(t.Context(), supervisor.Config{System: system, Servers: map[string]supervisor.Spec{"f": {Type: messages.SDK}},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"f": f.serve}})
		if !errors.Is(err, actor.ErrNameExists) || m != nil {
			t.Fatalf("Start returned %v, %v", m, err)
		}
		time.Sleep(time.Minute) // the servers end in the background
		if _, there := system.ProcessRegistry.GetLocal(fmt.Sprintf("mcpvisor-%d", n+1)); there {
			t.Error("the supervisor's actor is still there")
		}
		if n := f.alive.Load(); n > 0 {
			t.Errorf("%d connections of the server are still open", n)
		}
		if _, there := system.ProcessRegistry.GetLocal(own.GetId()); !there {
			t.Error("the program's actor is gone")
		}
		system.Root.Stop(own)
		time.Sleep(time.Millisecond)
	})
}

// In an actor system that is not ours only our own actors are stopped.
func TestAForeignActorSystemIsLeftAlone(t *testing.T) {
	system := actor.NewActorSystem()
	a := &asker{got: make(chan proto.Message, 1)}
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
	for range 2 { // two managers, one after the other
		m, err := supervisor.Start(t.Context(), supervisor.Config{System: system})
		if err != nil {
			t.Fatal(err)
		}
		closeAll(t, m)
	}
	system.Root.Send(pid, &messages.Done{})
	select {
	case <-a.got:
	case <-time.After(10 * time.Second):
		t.Error("a foreign actor is gone")
	}
	system.Root.Stop(pid)
	system.Shutdown()
}
