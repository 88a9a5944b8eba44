package supervisor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// listOfOne is a list that the manager remembers.
type listOfOne struct{}

func (listOfOne) IsSame(supervisor.KeptList) bool { return true }
func (listOfOne) Size() int                       { return 1 }

// A program that lists in the instant in which a lazy server is let go gets what the server listed last, too: the connection admits no request any
// more a moment before the server is published as one that rests, and the list was empty in between.
func TestAListInTheInstantOfRestIsTheLastOne(t *testing.T) {
	read := func(context.Context, *session.Session) (supervisor.KeptList, error) { return listOfOne{}, nil }
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
				"f": {Type: messages.SDK, Era: messages.EraLegacy, Connect: messages.Lazy, IdleTimeout: messages.Duration(time.Minute)},
			}}, map[string]*fake{"f": newFake("echo")})
			settled(t, m)
			if list, err := m.ReadOrRecall(t.Context(), "prompts/list", "f", read); err != nil || list == nil {
				t.Fatal(list, err)
			}
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					time.Sleep(time.Minute)
					for range 50 {
						if list, err := m.ReadOrRecall(t.Context(), "prompts/list", "f", read); err != nil || list == nil {
							t.Error(list, err)
						}
					}
				})
			}
			all.Wait()
			time.Sleep(10 * time.Second) // a list that runs puts the rest off by a tenth of the idle timeout
			if !m.Rests("f") {
				t.Error("it does not rest")
			}
		})
	}
}
