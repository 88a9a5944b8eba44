package supervisor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
)

// newWatchingActor spawns an actor that hands on what it receives, and gives a way to send messages in its name.
func newWatchingActor(m *Manager) (pid *actor.PID, send func(any), got chan any) {
	got = make(chan any, 10_000)
	root := m.System().Root
	pid = root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch msg := ctx.Message().(type) {
		case *messages.Done, *messages.WatchEvent, *messages.CallToolReply:
			got <- msg
		}
	}))
	return pid, func(msg any) { root.RequestWithCustomSender(m.PID(), msg, pid) }, got
}

// An actor that watches again has one watch, the newer one.
func TestAnActorThatWatchesTwiceIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startEcho(t, nil)
		pid, send, got := newWatchingActor(m)
		defer m.System().Root.Stop(pid)
		send(&messages.Watch{Buffer: 100})
		send(&messages.Watch{Buffer: 100})
		synctest.Wait()
		if err := m.Disconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		seen := map[uint64]int{}
		for len(got) > 0 {
			if e, ok := (<-got).(*messages.WatchEvent); ok {
				if seen[e.GetSeq()]++; seen[e.GetSeq()] > 1 {
					t.Errorf("event %d (%s) was told twice", e.GetSeq(), e.GetKind())
				}
			}
		}
		if len(seen) == 0 {
			t.Error("nothing was told")
		}
		send(&messages.Unwatch{})
		synctest.Wait()
		if m.shared.Hub.Watched() {
			t.Error("one who does not watch any more is told")
		}
	})
}

// A message to end a watch that names no sender ends none, and is no defect.
func TestAnUnwatchOfNoActorEndsNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startEcho(t, nil)
		pid, send, got := newWatchingActor(m)
		defer m.System().Root.Stop(pid)
		send(&messages.Watch{})
		synctest.Wait()
		m.System().Root.Send(m.PID(), &messages.Unwatch{})
		m.System().Root.Send(m.PID(), &messages.Watch{})
		synctest.Wait()
		for len(got) > 0 {
			<-got
		}
		if err := m.Disconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(got) == 0 {
			t.Error("the actor that watches is told nothing more")
		}
	})
}

// The watch of an actor ends with the actor.
func TestAnActorThatEndedIsNotToldOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startEcho(t, nil)
		pid, send, got := newWatchingActor(m)
		send(&messages.Watch{Buffer: 100})
		<-got
		if !m.shared.Hub.Watched() {
			t.Fatal("it does not watch")
		}
		m.System().Root.Stop(pid)
		synctest.Wait()
		if m.shared.Hub.Watched() {
			t.Error("it goes on being told")
		}
	})
}

// The bound is for calls by message that are in flight, not for all that there ever were.
func TestCallsByMessageThatEndedDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startEcho(t, nil)
		pid, send, got := newWatchingActor(m)
		defer m.System().Root.Stop(pid)
		for range maxActorCalls + 10 {
			send(&messages.CallTool{Server: "a", Tool: "none"})
			if reply := (<-got).(*messages.CallToolReply); reply.GetFailure().GetClass() == string(messages.ClassExhausted) {
				t.Fatal(reply.GetFailure().GetText())
			}
		}
		time.Sleep(time.Millisecond)
	})
}
