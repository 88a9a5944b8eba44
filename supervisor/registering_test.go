package supervisor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// A server is connected when it was opened, greeted and listed and its tools are registered, and not before: a caller that
// sees the one finds the other, however many servers come at once and however often they are connected again.
func TestConnectedMeansRegistered(t *testing.T) {
	seeds.Shows(t, "000.10.order")
	synctest.Test(t, func(t *testing.T) {
		const servers = 100
		cfg := Config{InProcess: map[string]func(context.Context, inprocess.Peer) error{}, Servers: map[string]Spec{}}
		for i := range servers {
			name := fmt.Sprintf("s%d", i)
			cfg.InProcess[name], cfg.Servers[name] = echoServer, Spec{Type: messages.SDK, Disabled: true}
		}
		m, err := Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = m.Close(context.Background())
			time.Sleep(time.Millisecond) // see CloseAll
		}()
		if err := m.Settled(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := m.Watch(1 << 16)
		var wg sync.WaitGroup
		for _, name := range m.Servers() {
			wg.Go(func() {
				var last uint64
				for range 5 {
					asked := make(chan error, 1)
					go func() {
						if last == 0 {
							asked <- m.Toggle(t.Context(), name, true)
							return
						}
						asked <- m.Reconnect(t.Context(), name)
					}()
					v, err := m.shared.CellOf(name).Wait(t.Context(), func(v *actors.View) bool {
						return v.State.Phase == messages.Connected && v.State.Epoch > last
					})
					if err != nil {
						t.Error(err)
						return
					}
					e, ok := m.Tools().LookupTool(name, "x")
					if !ok || e.State != catalog.Live || e.Epoch != v.State.Epoch {
						t.Errorf("%s is connected by %d, and its tool is registered as %+v", name, v.State.Epoch, e)
					}
					last = v.State.Epoch
					if err := <-asked; err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		w.Close()
		steps := map[string][]messages.Step{}
		for e := range w.Events(t.Context()) {
			if e.Kind == messages.EventPhase {
				steps[e.Server] = append(steps[e.Server], e.Status.Step)
			}
		}
		want := []messages.Step{messages.Queued, messages.Dialing, messages.Handshaking, messages.Listing, ""}
		for name, got := range steps {
			if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
				t.Errorf("%s went through %q", name, got)
			}
		}
		if len(steps) != servers {
			t.Errorf("%d servers told of their phases", len(steps))
		}
	})
}

// What the registry had in its mailbox when it died is sent again: no caller waits for a registration that was lost.
func TestARegistrationThatIsLostIsSaidAgain(t *testing.T) {
	for round := range 20 {
		synctest.Test(t, func(t *testing.T) {
			m := startEcho(t, nil)
			w := m.Watch(0)
			defer w.Close()
			go func() {
				for e := range w.Events(t.Context()) {
					if e.Status == nil || e.Status.Step != messages.Listing {
						continue
					}
					for range round % 4 { // at one moment or another of the registration
						time.Sleep(0)
					}
					pid, _ := m.shared.Registry.PID()
					m.system.Root.Send(pid, actors.Sync{}) // calls a function that is nil
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := m.Reconnect(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			if _, ok := m.Tools().LookupTool("a", "x"); !ok {
				t.Error("connected, and its tool is not registered")
			}
		})
	}
}

// A registry that dies while the manager closes costs nothing either: the empty snapshot is published by its successor.
func TestCloseOutlivesTheRegistry(t *testing.T) {
	for round := range 100 {
		synctest.Test(t, func(t *testing.T) {
			m := startEcho(t, nil)
			deaths := 1 + round%5
			go func() {
				time.Sleep(time.Second)
				for range deaths { // the later ones meet whatever Close has got to
					pid, _ := m.shared.Registry.PID()
					m.system.Root.Send(pid, actors.Sync{}) // calls a function that is nil
					for range round % 7 {
						time.Sleep(0)
					}
				}
			}()
			time.Sleep(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := m.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if n := m.Tools().Len(); n != 0 {
				t.Errorf("%d tools are left", n)
			}
		})
	}
}

// An actor can end with the grant of the supervisor still in its mailbox: it panicked, or it was told to stop. The
// grant is taken back, or the server would never start again and its name never be free.
func TestAGrantThatNobodyReadIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trap atomic.Bool
		trap.Store(true)
		m := startEcho(t, trapped(&trap, time.Second)) // by then it has asked, and is granted
		if trap.Load() {
			t.Fatal("the defect was not met")
		}
		time.Sleep(time.Minute)
		if got := m.ConnectedServers(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("a minute later %q are connected", got)
		}
		// Removing what is on its way to start: its name is free again, and every wish is answered.
		for i := range 300 {
			spec := Spec{Type: messages.SDK, Name: "a"}
			if _, err := m.SetServers(t.Context(), map[string]Spec{"r": spec}); err != nil {
				t.Fatal(err)
			}
			for range i % 10 {
				time.Sleep(0)
			}
			if err := m.Remove(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
			if err := m.Connect(t.Context(), "r", spec); err != nil {
				t.Fatal(err)
			}
			if err := m.Remove(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
