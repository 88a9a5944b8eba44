package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// A watcher can tell calls that run at the same time apart, and hears of the end of each, also of one that was given up.
func TestEachCallIsToldWithItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		f.onCall = hang
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		defer m.Watch(0).WithoutCalls().Close() // it takes nothing from the other
		w := m.Watch(0)
		ctx, leave := context.WithCancel(t.Context())
		var ended []<-chan error
		for range 3 {
			ended = append(ended, callBy(ctx, m, ""))
		}
		synctest.Wait()
		leave()
		for _, e := range ended {
			if err := <-e; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		synctest.Wait()
		w.Close()
		open := map[uint64]bool{}
		calls := 0
		for e := range w.Events(t.Context()) {
			switch {
			case e.Kind == messages.EventCallStarted:
				if calls++; open[e.CallID] {
					t.Errorf("two calls have the number %d", e.CallID)
				}
				open[e.CallID] = true
			case e.Kind == messages.EventCallEnded:
				if !open[e.CallID] || e.Outcome != messages.OutcomeUnknown {
					t.Errorf("the call %d ended as %s", e.CallID, e.Outcome)
				}
				delete(open, e.CallID)
			}
		}
		if calls != 3 || len(open) != 0 {
			t.Errorf("%d calls were told, and of %d the end was not", calls, len(open))
		}
	})
}

// Who waits for a server to come back is let go when it gives up.
func TestAWaitForAServerCanBeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		m := start(t, supervisor.Config{CallWait: time.Minute}, map[string]*fake{"a": f})
		settled(t, m)
		f.set(func(f *fake) { f.mute = true })
		f.kill()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		_, err := m.CallServerTool(ctx, "a", "work", nil)
		if !errors.Is(err, supervisor.ErrNotSent) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// The idle timeout counts from the last call, wherever in it the clock was looked at.
func TestIdleCountsFromTheLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 10 * time.Minute
		f := newFake("work")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"a": {Type: messages.SDK, Connect: messages.Lazy, IdleTimeout: messages.Duration(idle)},
		}}, map[string]*fake{"a": f})
		settled(t, m)
		if _, err := m.CallServerTool(t.Context(), "a", "work", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		if _, err := m.CallServerTool(t.Context(), "a", "work", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idle - time.Second)
		if phase(t, m, "a") != messages.Connected {
			t.Error("let go before it was idle for long enough")
		}
		time.Sleep(2 * time.Second)
		if phase(t, m, "a") == messages.Connected || f.alive.Load() != 0 {
			t.Errorf("idle for %v, and still %s", idle+time.Second, phase(t, m, "a"))
		}
	})
}

// A caller that watches a resource would hear of no update from a server that was let go: it rests only when nothing is watched any more.
func TestAWatchedServerDoesNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 10 * time.Second
		f := newFake("work")
		f.bare, f.offers = true, `,"resources":{"subscribe":true}`
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"a": {Type: messages.SDK, Connect: messages.Lazy, IdleTimeout: messages.Duration(idle)},
		}}, map[string]*fake{"a": f})
		settled(t, m)
		if err := m.SubscribeResource(t.Context(), "a", "x:///1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * idle)
		if phase(t, m, "a") != messages.Connected {
			t.Fatal("let go although a caller watches its resource")
		}
		if err := m.UnsubscribeResource(t.Context(), "a", "x:///1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * idle)
		if phase(t, m, "a") == messages.Connected {
			t.Error("nothing is watched any more, and it does not rest")
		}
	})
}

// A call that comes in the very instant in which its server is let go for idleness wakes it, also in a program that does not let calls wait
// for servers that are away.
func TestACallInTheInstantOfTheRestWakesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 10 * time.Second
		f := newFake("work")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"a": {Type: messages.SDK, Connect: messages.Lazy, IdleTimeout: messages.Duration(idle)},
		}}, map[string]*fake{"a": f})
		settled(t, m)
		for range 300 {
			if _, err := m.CallServerTool(t.Context(), "a", "work", nil); err != nil {
				t.Fatal(err)
			}
			var ended []<-chan error
			for range 4 {
				end := make(chan error, 1)
				go func() {
					time.Sleep(idle)
					_, err := m.CallServerTool(t.Context(), "a", "work", nil)
					end <- err
				}()
				ended = append(ended, end)
			}
			for _, end := range ended {
				if err := <-end; err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A call that waited for its turn since before its server became lazy uses the server when it is sent.
func TestIdleCountsACallThatWaitedForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 10 * time.Second
		f := newFake("work")
		f.onCall = func(context.Context, string, json.RawMessage) (string, error) {
			time.Sleep(8 * time.Second)
			return "done", nil
		}
		spec := supervisor.Spec{Type: messages.SDK, MaxInFlight: 1}
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": spec}}, map[string]*fake{"a": f})
		settled(t, m)
		began := time.Now()
		first, second := callBy(t.Context(), m, "x"), callBy(t.Context(), m, "y")
		synctest.Wait()
		spec.Connect, spec.IdleTimeout = messages.Lazy, messages.Duration(idle)
		if err := m.Connect(t.Context(), "a", spec); err != nil {
			t.Fatal(err)
		}
		for _, ended := range []<-chan error{first, second} {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		// The second call was sent at 8s and has ended at 16s.
		time.Sleep(time.Until(began.Add(8*time.Second + idle - time.Millisecond)))
		if phase(t, m, "a") != messages.Connected {
			t.Errorf("let go %v after a call was sent, and may be after %v", time.Since(began)-8*time.Second, idle)
		}
	})
}

// Progress lets a call go on beyond its timeout, and never beyond the longest time for one.
func TestProgressDoesNotOutlastTheLongestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		f.onCall = func(ctx context.Context, _ string, _ json.RawMessage) (string, error) {
			for {
				for token := range 10 {
					f.say("notifications/progress", fmt.Sprintf(`{"progressToken":%d,"progress":1}`, token))
				}
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
		}
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"a": {Type: messages.SDK, CallTimeout: messages.Duration(3 * time.Second), MaxCallTimeout: messages.Duration(20 * time.Second)},
		}}, map[string]*fake{"a": f})
		settled(t, m)
		began := time.Now()
		_, err := m.CallServerTool(t.Context(), "a", "work", nil, supervisor.WithProgress(func(supervisor.Progress) {}))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 20*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// looked counts the questions about the work of a connection's processes.
type looked struct {
	transports.Transport
	looks atomic.Int64
}

type lookedConn struct {
	transports.Conn
	owner *looked
}

func (l *looked) Kind() messages.TransportKind { return messages.Stdio }

func (l *looked) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	conn, err := l.Transport.Dial(ctx, sink)
	return &lookedConn{conn, l}, err
}

func (c *lookedConn) Work() (procinfo.Usage, error) {
	c.owner.looks.Add(1)
	return procinfo.Usage{}, nil
}

// What an attempt looks at is looked at no more once the server is connected.
func TestAConnectedServerIsNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("work")
		f.delay = 4 * time.Second
		l := &looked{Transport: inprocess.New(f.serve)}
		m := start(t, supervisor.Config{
			Servers:   map[string]supervisor.Spec{"x": npx},
			Transport: func(string, supervisor.Spec) (transports.Transport, error) { return l, nil },
		}, nil)
		settled(t, m)
		during := l.looks.Load()
		time.Sleep(time.Hour)
		if after := l.looks.Load(); during == 0 || after != during {
			t.Errorf("%d looks while it began, and %d in the hour after", during, after-during)
		}
	})
}

// When the catalog hears that tools are withdrawn, no new call reaches them: a caller with an older snapshot is refused.
func TestTheGateIsClosedBeforeTheCatalogHears(t *testing.T) {
	f := newFake("work")
	var m *supervisor.Manager
	var called []error
	cfg := supervisor.Config{ActorOptions: func(name string) []actor.PropsOption {
		if name != "registry" {
			return nil
		}
		// The registry handles what it is sent in the turn of its sender, before that goes on.
		return []actor.PropsOption{actor.WithDispatcher(actor.NewSynchronizedDispatcher(1000)),
			actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
				return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
					if change, ok := e.Message.(catalog.Change); ok && change.Kind == catalog.Withdraw {
						_, err := m.CallServerTool(context.Background(), "a", "work", nil)
						called = append(called, err)
					}
					next(c, e)
				}
			})}
	}}
	m = start(t, cfg, map[string]*fake{"a": f})
	settled(t, m)
	if err := m.Toggle(t.Context(), "a", false); err != nil {
		t.Fatal(err)
	}
	if len(called) != 1 || !errors.Is(called[0], supervisor.ErrNotSent) {
		t.Errorf("a call in the moment of the withdrawal: %v", called)
	}
}
