package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/core"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// echoServer answers the handshake, one tool "x" and every call.
func echoServer(ctx context.Context, peer inprocess.Peer) error {
	return answerRequests(ctx, peer, func(method string) string {
		switch method {
		case "initialize":
			return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`
		case "tools/list":
			return `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
		}
		return `{"content":[]}`
	})
}

// answerRequests serves a connection: it answers each request with the result for its method.
func answerRequests(ctx context.Context, peer inprocess.Peer, resultOf func(method string) string) error {
	for {
		msg, err := peer.Read(ctx)
		if err != nil {
			return err
		}
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(msg, &req) != nil || req.ID == nil {
			continue
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, resultOf(req.Method))); err != nil {
			return err
		}
	}
}

// trapped gives actors of servers a defect: once per trap the one that handles the next message panics when it has, some time later.
func trapped(trap *atomic.Bool, after time.Duration) func(string) []actor.PropsOption {
	return func(name string) []actor.PropsOption {
		if !strings.HasPrefix(name, "server/") {
			return nil
		}
		return []actor.PropsOption{actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				next(c, e)
				if trap.CompareAndSwap(true, false) {
					time.Sleep(after)
					panic("a planted defect")
				}
			}
		})}
	}
}

func startEcho(t *testing.T, options func(string) []actor.PropsOption) *Manager {
	t.Helper()
	m, err := Start(t.Context(), Config{
		ActorOptions: options,
		InProcess:    map[string]func(context.Context, inprocess.Peer) error{"a": echoServer, "b": echoServer},
		Servers:      map[string]Spec{"a": {Type: messages.SDK}, "b": {Type: messages.SDK}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond) // see CloseAll
	})
	if err := m.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// A panic of a server's actor costs that server one connection: it gets a successor, its history survives, no epoch is
// used twice, and the others notice nothing.
func TestAPanickedServerActorIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trap atomic.Bool
		m := startEcho(t, trapped(&trap, 0))
		before, other := m.shared.CellOf("a").View(), m.shared.CellOf("b").View()
		watcher := m.Watch(0)
		defer watcher.Close()
		trap.Store(true)
		m.sendCommand(core.ServerCommand{Name: "a", Event: lifecycle.Disable{}, Reply: func(error) {}})
		synctest.Wait()
		m.sendCommand(core.ServerCommand{Name: "a", Event: lifecycle.Enable{}, Reply: func(error) {}})
		synctest.Wait()
		if v := m.shared.CellOf("a").View(); v.State.Phase != messages.Failed || v.State.Cause.Class != messages.ClassPanic {
			t.Fatalf("after the panic: %+v", v.State)
		}
		// A watcher learns of it now, and not with the successor: a parked server has none for minutes.
		if e := lastPhase(watcher); e == nil || e.Server != "a" || e.Status.Status != messages.Failed || e.Status.Class != messages.ClassPanic {
			t.Errorf("a watcher was told %+v", e)
		}
		if e, ok := m.Tools().Lookup("mcp__a__x"); ok && e.Route != nil && e.State == 0 {
			t.Errorf("its tools are still live: %+v", e)
		}
		time.Sleep(10 * time.Second)
		v := m.shared.CellOf("a").View()
		if v.State.Phase != messages.Connected || v.State.Epoch <= before.State.Epoch {
			t.Errorf("no successor: %+v", v.State)
		}
		if m.shared.CellOf("b").View() != other {
			t.Error("the other server was touched")
		}
		if _, err := m.CallTool(t.Context(), "mcp__a__x", nil); err != nil {
			t.Error(err)
		}
		if h, _ := m.History("a"); len(h) == 0 || !containsText(h, "defect") {
			t.Errorf("the history does not tell it: %+v", h)
		}
	})
}

// A person who reconnects a server whose actor has died does not wait for the time of its successor.
func TestAReconnectDoesNotWaitForTheSuccessorOfAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trap atomic.Bool
		m := startEcho(t, trapped(&trap, 0))
		trap.Store(true)
		m.sendCommand(core.ServerCommand{Name: "a", Event: lifecycle.Disable{}, Reply: func(error) {}})
		synctest.Wait()
		m.sendCommand(core.ServerCommand{Name: "a", Event: lifecycle.Enable{}, Reply: func(error) {}})
		synctest.Wait()
		if v := m.shared.CellOf("a").View(); v.State.Phase != messages.Failed || !v.State.NextAt.After(time.Now()) {
			t.Fatalf("after the panic: %+v", v.State)
		}
		began := time.Now()
		if err := m.Reconnect(t.Context(), "a"); err != nil || time.Since(began) != 0 {
			t.Errorf("reconnected after %v: %v", time.Since(began), err)
		}
		if _, err := m.CallTool(t.Context(), "mcp__a__x", nil); err != nil {
			t.Error(err)
		}
	})
}

// TestAnActorThatPanicsAgainWaitsLonger: each further panic of a server that was not up for long counts as a failure more, so that a
// defect which comes back with every start does not start it without a pause.
func TestAnActorThatPanicsAgainWaitsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trap atomic.Bool
		m := startEcho(t, trapped(&trap, 0))
		for n := 1; n <= 4; n++ {
			trap.Store(true)
			m.sendCommand(core.ServerCommand{Name: "a", Event: lifecycle.Disable{}, Reply: func(error) {}})
			synctest.Wait()
			m.sendCommand(core.ServerCommand{Name: "a", Event: lifecycle.Enable{}, Reply: func(error) {}})
			synctest.Wait()
			v := m.shared.CellOf("a").View()
			if v.State.Phase != messages.Failed || v.State.Cause.Class != messages.ClassPanic || v.Attempts != n {
				t.Fatalf("after panic %d: %d failures in a row, %+v", n, v.Attempts, v.State)
			}
			time.Sleep(time.Until(v.State.NextAt))
			synctest.Wait()
		}
	})
}

// lastPhase returns the last event about a phase that is there, nil if there is none.
func lastPhase(w *Watcher) (last *messages.Event) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		e, err := w.Next(over)
		if err != nil {
			return last
		}
		if e.Kind == messages.EventPhase {
			last = &e
		}
	}
}

func containsText(h []HistoryEntry, word string) bool {
	return slices.ContainsFunc(h, func(e HistoryEntry) bool { return strings.Contains(e.Text, word) })
}

// A restarted registry continues the published generation and is told everything again.
func TestAPanickedRegistryIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startEcho(t, nil)
		generation := m.Tools().Generation()
		pid, _ := m.shared.Registry.PID()
		m.system.Root.Send(pid, actors.Sync{}) // calls a function that is nil
		synctest.Wait()
		if now, _ := m.shared.Registry.PID(); now.Id == pid.Id {
			t.Fatal("the registry was not replaced")
		}
		if m.Tools().Generation() < generation || m.Tools().Len() != 2 {
			t.Errorf("generation %d → %d, %d tools", generation, m.Tools().Generation(), m.Tools().Len())
		}
		if err := m.Disconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if m.Tools().Len() != 1 || m.Tools().Generation() <= generation {
			t.Errorf("the successor does not publish: %d tools, generation %d", m.Tools().Len(), m.Tools().Generation())
		}
		for range 10 { // one that dies again and again does not take the manager with it
			pid, _ := m.shared.Registry.PID()
			m.system.Root.Send(pid, actors.Sync{})
			synctest.Wait()
		}
		time.Sleep(5 * time.Second)
		if err := m.Toggle(t.Context(), "a", true); err != nil {
			t.Fatal(err)
		}
		if m.Tools().Len() != 2 {
			t.Errorf("%d tools", m.Tools().Len())
		}
	})
}

// A panic in the supervisor's own turn costs the one message.
func TestAPanicInTheSupervisorCostsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startEcho(t, nil)
		m.sendCommand(core.Barrier{}) // calls a function that is nil
		if err := m.Reconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if len(m.ConnectedServers()) != 2 {
			t.Error(m.Status())
		}
	})
}

// The machine slept: waiting servers are tried again within a few seconds, not when their old timer would have ended.
func TestSleepIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refuse = true
		m, err := Start(t.Context(), Config{
			InProcess: map[string]func(context.Context, inprocess.Peer) error{"a": func(ctx context.Context, p inprocess.Peer) error {
				if refuse {
					return fmt.Errorf("no network")
				}
				return echoServer(ctx, p)
			}},
			Servers: map[string]Spec{"a": {Type: messages.SDK}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = m.Close(context.Background())
			time.Sleep(time.Millisecond) // see CloseAll
		}()
		time.Sleep(20 * time.Minute) // parked
		if v := m.shared.CellOf("a").View(); v.State.Retry != messages.RetryParked {
			t.Fatalf("%+v", v.State)
		}
		refuse = false
		m.sendCommand(core.SleepNoticed{})
		time.Sleep(6 * time.Second)
		if v := m.shared.CellOf("a").View(); v.State.Phase != messages.Connected {
			t.Errorf("six seconds after waking: %+v", v.State)
		}
	})
}
