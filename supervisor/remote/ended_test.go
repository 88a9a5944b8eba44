package remote_test

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestPeersLearnThatTheManagerHasEnded: who watches it gets Terminated, also one that begins to watch only then, and every command of a
// peer with the right to it says that the manager is closed. A peer without the right is refused as before.
func TestPeersLearnThatTheManagerHasEnded(t *testing.T) {
	s := startFarSite(t)
	if d := s.ask(t, &messages.AddServer{Name: "r", Spec: &messages.ServerSpec{Template: "s"}}).(*messages.Done); d.GetFailure() != nil {
		t.Fatal(d)
	}
	s.connected(t, "r")
	limited, none := connectPeer(t, s, agent, ""), connectPeer(t, s, "mcpvisor://test/agent/none", "")
	must(t, limited.greeted())
	must(t, none.greeted())
	watch := func() <-chan *actor.PID {
		watching, ended := make(chan bool), make(chan *actor.PID, 2)
		pid := s.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				ctx.Watch(s.pid)
				ctx.Request(s.pid, &messages.GetStatus{}) // its reply comes when the watch has arrived
			case *messages.StatusReply:
				close(watching)
			case *actor.Terminated:
				ended <- m.Who
			}
		}))
		t.Cleanup(func() { s.system.Root.Stop(pid) })
		<-watching
		return ended
	}
	terminated := func(when string, ended <-chan *actor.PID) {
		t.Helper()
		select {
		case who := <-ended:
			if !who.Equal(s.pid) {
				t.Errorf("%s: %v ended", when, who)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: who watches the manager was not told of its end", when)
		}
	}
	early := watch()
	s.manager.say("end")
	terminated("before", early)
	terminated("afterwards", watch())

	closed := func(what string, f *messages.Failure) {
		t.Helper()
		if f == nil || !errors.Is(f.ToError(), supervisor.ErrClosed) {
			t.Errorf("%s: %v", what, f)
		}
	}
	closed("GetStatus", s.ask(t, &messages.GetStatus{}).(*messages.StatusReply).GetFailure())
	closed("ListTools", s.ask(t, &messages.ListTools{}).(*messages.ToolsReply).GetFailure())
	closed("Watch", s.ask(t, &messages.Watch{}).(*messages.Done).GetFailure())
	closed("AddServer", s.ask(t, &messages.AddServer{Name: "x", Spec: &messages.ServerSpec{Template: "s"}}).(*messages.Done).GetFailure())
	closed("a limited GetStatus", requestReply[*messages.StatusReply](t, limited, &messages.GetStatus{}).GetFailure())
	closed("a limited ListTools", requestReply[*messages.ToolsReply](t, limited, &messages.ListTools{}).GetFailure())
	for _, call := range []*messages.CallTool{{CallId: "1", Tool: "mcp__r__echo"}, {CallId: "2", Tool: "mcp__own-x__echo"},
		{CallId: "3", Server: "own-x", Tool: "echo"}, {CallId: "4", Server: "r", Tool: "echo"}} {
		reply := requestReply[*messages.CallToolReply](t, limited, call)
		closed("a limited call "+call.GetCallId(), reply.GetFailure())
		if reply.GetCallId() != call.GetCallId() || reply.GetOutcome() != "not-sent" {
			t.Errorf("%v", reply)
		}
	}
	refused := requestReply[*messages.StatusReply](t, none, &messages.GetStatus{}).GetFailure().ToError()
	if !errors.Is(refused, supervisor.ErrDenied) || errors.Is(refused, supervisor.ErrClosed) {
		t.Errorf("a peer without rights: %v", refused)
	}
}
