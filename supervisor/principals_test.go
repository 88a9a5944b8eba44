package supervisor_test

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

var principals = flag.Int("principals", 20_000, "how many callers the test of many principals has")

// heapInUse is the live heap, once what is garbage is gone.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestManyPrincipalsLeaveNothing: any number of callers, each seen once, is not kept anywhere: not where they are refused an instance, and
// not where they take turns at a server that all share.
func TestManyPrincipalsLeaveNothing(t *testing.T) {
	for name, change := range map[string]func(*supervisor.Spec){
		"refused": func(s *supervisor.Spec) { s.MaxInstances = 2 },
		"shared":  func(s *supervisor.Spec) { s.Share, s.MaxInFlight = messages.ShareAll, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			m, p := startPersonal(t, func(_ *supervisor.Config, s *supervisor.Spec) { change(s) })
			call := func(from, to int) {
				for i := from; i < to; i++ {
					ctx := supervisor.WithCaller(t.Context(), fmt.Sprintf("a caller with a long name, to see whether it is kept: %d", i))
					_, err := m.CallServerTool(ctx, "box", "count", nil)
					if i > 10 && name == "refused" != errors.Is(err, supervisor.ErrTooManyInstances) {
						t.Fatalf("the call of caller %d ended as %v", i, err)
					}
					m.ToolsFor(ctx)
				}
			}
			call(0, 1000)
			before := heapInUse()
			call(1000, *principals)
			grown := heapInUse() - before
			t.Logf("%d callers: %d connections, the heap grew by %d KiB", *principals, p.dials.Load(), grown>>10)
			// Each name alone has 60 bytes.
			if most := int64(1 << 19); grown > most || p.dials.Load() > 3 {
				t.Errorf("%d callers left %d bytes and %d connections", *principals, grown, p.dials.Load())
			}
		})
	}
}

// TestManyInstancesLeaveNothing: callers that come and go leave no instance, no status, no mark in the catalog and no credential.
func TestManyInstancesLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, func(_ *supervisor.Config, s *supervisor.Spec) { s.InstanceIdle = messages.Duration(time.Minute) })
		// The actor library has 32,768 maps for the names of actors, each of which is made with its first name and stays: 9 MB in all.
		for range 100_000 {
			m.System().Root.Stop(m.System().Root.Spawn(actor.PropsFromFunc(func(actor.Context) {})))
		}
		var before int64
		for round := range 50 {
			for i := range 25 {
				callAs(t, m, fmt.Sprint("caller ", round, " ", i))
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			p.mu.Lock()
			clear(p.peers)
			p.mu.Unlock()
			if n := len(m.Instances("box")); n != 0 || len(m.Status()) != 1 || p.alive.Load() != 1 || len(m.Tools().Remembered()) != 1 {
				t.Fatalf("after round %d there are %d instances, %d statuses, %d connections, and of %v is something remembered", round, n,
					len(m.Status()), p.alive.Load(), m.Tools().Remembered())
			}
			if round == 10 {
				before = heapInUse()
			}
		}
		grown := heapInUse() - before
		t.Logf("975 instances: the heap grew by %d KiB", grown>>10)
		if grown > 1<<18 {
			t.Errorf("975 instances that have ended hold %d bytes", grown)
		}
	})
}
