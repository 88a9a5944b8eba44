package supervisor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/core"
)

// TestSettledCallersOvertakeEachOther lets the command of one call of Settled reach the supervisor behind that of a later call,
// and both look at the server only when it has handled both: each of them returns at once.
func TestSettledCallersOvertakeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var overtaken *actor.MessageEnvelope
		swap := false
		m := start(t, supervisor.Config{ActorOptions: func(name string) []actor.PropsOption {
			if name != "supervisor" {
				return nil
			}
			return []actor.PropsOption{actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
				return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
					command, ok := envelope.Message.(core.Barrier)
					if !ok || !swap {
						next(c, envelope)
						return
					}
					reply := command.Reply
					command.Reply = func(ticket uint64) { time.AfterFunc(time.Second, func() { reply(ticket) }) }
					envelope = &actor.MessageEnvelope{Header: envelope.Header, Message: command, Sender: envelope.Sender}
					if overtaken == nil {
						overtaken = envelope
						return
					}
					next(c, envelope)
					next(c, overtaken)
				}
			})}
		}}, map[string]*fake{"a": newFake("t")})
		settled(t, m)
		swap = true
		begin := time.Now()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := m.Settled(ctx, "a"); err != nil {
					t.Errorf("the server is %s, and Settled returned after %v: %v", messages.Connected, time.Since(begin), err)
				}
			})
			synctest.Wait()
		}
		both.Wait()
		swap = false
	})
}
