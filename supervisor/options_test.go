package supervisor_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
)

// TestConfigHoldsOnlyWhatTheProgramSays: what a manager makes of a Config is in no hidden field of it, so that a program may use its
// value for a second manager.
func TestConfigHoldsOnlyWhatTheProgramSays(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[supervisor.Config]()) {
		if !f.IsExported() {
			t.Errorf("Config.%s belongs to the manager: make it in build.go", f.Name)
		}
	}
	if n := reflect.TypeFor[*supervisor.Config]().NumMethod(); n > 0 {
		t.Errorf("Config has %d methods: what works with it is a part, which gets what it needs of it", n)
	}
}

// TestActorOptions: every actor of a manager is made with the options that the program gives for its name.
func TestActorOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		handled := map[string]int{}
		m := start(t, supervisor.Config{ActorOptions: func(name string) []actor.PropsOption {
			return []actor.PropsOption{actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
				return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
					mu.Lock()
					handled[name]++
					mu.Unlock()
					next(c, envelope)
				}
			})}
		}}, map[string]*fake{"a": newFake("t"), "registry": newFake("t")})
		settled(t, m)
		m.System().Root.Send(m.PID(), &messages.GetStatus{})
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for _, name := range []string{"supervisor", "entry", "registry", "server/a", "server/registry"} {
			if handled[name] == 0 {
				t.Errorf("no message of %q came by; those of %v did", name, handled)
			}
		}
		if len(handled) != 5 {
			t.Errorf("options were asked for %v", handled)
		}
	})
}

// TestWoken: a program that is told that the machine was asleep, or that the network is back, need not wait for the clock.
func TestWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("t")
		f.refuse = &supervisor.Error{Class: messages.ClassNetwork, Text: "no route"}
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		time.Sleep(20 * time.Minute) // parked: the next attempt is minutes away
		f.set(func(f *fake) { f.refuse = nil })
		m.Woken()
		time.Sleep(6 * time.Second)
		if got := phase(t, m, "a"); got != messages.Connected {
			t.Errorf("six seconds after waking it is %s", got)
		}
	})
}

// TestWokenMakesNobodyWait: who is due sooner than the spread of the waking ends stays due then, and who was told when to come
// back is not tried before.
func TestWokenMakesNobodyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon, received := newFake("t"), &throttled{}
		soon.refuse = &supervisor.Error{Class: messages.ClassNetwork, Text: "no route"}
		m := start(t, supervisor.Config{
			Rand: func() float64 { return 0.9 },
			Transport: func(name string, _ supervisor.Spec) (transports.Transport, error) {
				if name == "told" {
					return received, nil
				}
				return nil, nil
			},
		}, map[string]*fake{"soon": soon, "told": newFake("t")})
		time.Sleep(10 * time.Millisecond)
		first, asked := soon.dials.Load(), received.dials.Load()
		m.Woken() // it would draw 4.5 s
		time.Sleep(time.Second)
		if n := soon.dials.Load(); n == first {
			t.Errorf("what was due within half a second was not dialled again in one: %d", n)
		}
		time.Sleep(50 * time.Second)
		if n := received.dials.Load(); n != asked {
			t.Errorf("what was to wait for a minute was dialled before: %d, not %d", n, asked)
		}
		time.Sleep(20 * time.Second)
		if n := received.dials.Load(); n == asked {
			t.Errorf("and not after the minute: %d", n)
		}
	})
}

// throttled is a transport to a server that asks to wait for a minute.
type throttled struct{ dials atomic.Int64 }

func (*throttled) Kind() messages.TransportKind { return messages.SDK }

func (t *throttled) Dial(context.Context, transports.Sink) (transports.Conn, error) {
	t.dials.Add(1)
	return nil, &transports.Error{Class: messages.ClassThrottled, RetryAfter: time.Minute, Text: "too many"}
}

// TestSuccessorsInOrder: actors that died together are replaced in the order of their names, so that the epochs that they
// get do not depend on chance.
func TestSuccessorsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var made []string
		fakes := map[string]*fake{}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			fakes[name] = newFake("t")
		}
		var armed atomic.Bool
		armed.Store(true)
		m := start(t, supervisor.Config{
			Rand: func() float64 { return 0.5 },
			ActorOptions: func(name string) []actor.PropsOption {
				mu.Lock()
				defer mu.Unlock()
				made = append(made, name)
				return []actor.PropsOption{actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
					return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
						if _, look := envelope.Message.(actors.Barrier); look && armed.Load() {
							panic("the test ends this actor")
						}
						next(c, envelope)
					}
				})}
			},
		}, fakes)
		time.Sleep(time.Second)
		mu.Lock()
		made = nil
		mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_ = m.Settled(ctx) // it asks every actor
		cancel()
		armed.Store(false)
		time.Sleep(time.Minute)
		settled(t, m)
		mu.Lock()
		defer mu.Unlock()
		if len(made) != len(fakes) || !slices.IsSorted(made) {
			t.Errorf("replaced in the order %v", made)
		}
	})
}
