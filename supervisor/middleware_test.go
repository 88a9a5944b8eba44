package supervisor_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// TestAMiddlewareThatBreaksItsActor: the status of the server says that a middleware of the program ended its actor, how, and what to do,
// and the error of its calls and of Ready does. The server is tried again, the other one notices nothing, and the manager closes.
func TestAMiddlewareThatBreaksItsActor(t *testing.T) {
	receives := func(f func(next actor.ReceiverFunc, c actor.ReceiverContext, e *actor.MessageEnvelope)) []actor.PropsOption {
		return []actor.PropsOption{actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) { f(next, c, e) }
		})}
	}
	for name, c := range map[string]struct {
		options []actor.PropsOption
		want    string
	}{
		"it panics": {receives(func(actor.ReceiverFunc, actor.ReceiverContext, *actor.MessageEnvelope) { panic("ouch") }), "ouch"},
		"it panics afterwards": {receives(func(next actor.ReceiverFunc, c actor.ReceiverContext, e *actor.MessageEnvelope) {
			next(c, e)
			panic("ouch")
		}), "ouch"},
		"it passes nothing on": {receives(func(actor.ReceiverFunc, actor.ReceiverContext, *actor.MessageEnvelope) {}), "it did not pass on a *actor.Started"},
		"it passes only the actor library's messages on": {receives(func(next actor.ReceiverFunc, c actor.ReceiverContext, e *actor.MessageEnvelope) {
			switch e.Message.(type) {
			case actor.SystemMessage, actor.AutoReceiveMessage:
				next(c, e)
			}
		}), "it did not pass on a "},
		"it is nil": {[]actor.PropsOption{actor.WithReceiverMiddleware(func(actor.ReceiverFunc) actor.ReceiverFunc { return nil })}, "nil pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := supervisortest.AddTo(supervisor.Config{}, supervisortest.NewServer("bad", supervisortest.Echo("x")), supervisortest.NewServer("good", supervisortest.Echo("x")))
				cfg.ActorOptions = func(actorName string) []actor.PropsOption {
					if actorName == "server/bad" {
						return c.options
					}
					return nil
				}
				m, err := supervisor.Start(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Ready(t.Context(), "good"); err != nil {
					t.Error(err)
				}
				for range 3 {
					time.Sleep(time.Minute)
					st, err := m.ServerStatus("bad")
					if err != nil || st.Status != messages.Failed || st.Class != messages.ClassPanic || !strings.Contains(st.Error, c.want) ||
						!strings.Contains(st.Error, "a middleware of the program (Config.ActorOptions) ended its actor") || !strings.Contains(st.Error, "mend it") {
						t.Errorf("the status: %s, %s, %q", st.Status, st.Class, st.Error)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if _, err := m.CallServerTool(ctx, "bad", "x", nil); !errors.Is(err, supervisor.ErrNotConnected) || !strings.Contains(err.Error(), "Config.ActorOptions") {
					t.Errorf("a call: %v", err)
				}
				if _, err := m.CallServerTool(ctx, "good", "x", nil); err != nil {
					t.Error(err)
				}
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Minute)
			})
		})
	}
}

// TestOptionsThatPanicWhenAnActorIsMade: the actor is made without them, and so are those that come after it.
func TestOptionsThatPanicWhenAnActorIsMade(t *testing.T) {
	for name, option := range map[string]actor.PropsOption{
		"OnInit":  actor.WithOnInit(func(actor.Context) { panic("ouch") }),
		"mailbox": actor.WithMailbox(func() actor.Mailbox { panic("ouch") }),
		"spawner": actor.WithSpawnFunc(func(*actor.ActorSystem, string, *actor.Props, actor.SpawnerContext) (*actor.PID, error) {
			return nil, errors.New("ouch")
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var made atomic.Int32
				cfg := supervisortest.AddTo(supervisor.Config{}, supervisortest.NewServer("a", supervisortest.Echo("x")), supervisortest.NewServer("b", supervisortest.Echo("x")))
				cfg.ActorOptions = func(actorName string) []actor.PropsOption {
					if !strings.HasPrefix(actorName, "server/") {
						return nil
					}
					made.Add(1)
					return []actor.PropsOption{option}
				}
				m, err := supervisor.Start(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Ready(t.Context()); err != nil || made.Load() != 2 {
					t.Errorf("%v; %d actors were made", err, made.Load())
				}
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
