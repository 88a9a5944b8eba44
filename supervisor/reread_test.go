package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestALostReadIsAskedOnceMore: a read changes nothing, so that one whose connection was lost is asked again on the next
// connection, once. One that has timed out, or was refused, is not.
func TestALostReadIsAskedOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"f": {Type: messages.SDK, Era: messages.EraLegacy, CallTimeout: messages.Duration(10 * time.Second)},
		}}, map[string]*fake{"f": f})
		settled(t, m)
		dies := 1
		f.set(func(f *fake) {
			f.onRead = func(ctx context.Context, uri string) (string, error) {
				f.mu.Lock()
				dies--
				dead := dies >= 0
				f.mu.Unlock()
				if dead {
					f.kill()
					return "", errors.New("dead")
				}
				if uri == "x:///slow" {
					return "", errors.New("never")
				}
				return `{"contents":[{"uri":"x:///1","text":"here"}]}`, nil
			}
		})
		res, err := m.ReadResource(t.Context(), "x:///1")
		if err != nil || res.Text() != "here" || f.reads.Load() != 2 || f.dials.Load() != 2 {
			t.Errorf("%v, %v, %d reads, %d dials", res, err, f.reads.Load(), f.dials.Load())
		}
		// Lost twice is lost.
		f.set(func(*fake) { dies = 2 })
		f.reads.Store(0)
		_, err = m.ReadServerResource(t.Context(), "f", "x:///1")
		var e *supervisor.Error
		if !errors.As(err, &e) || e.Outcome != messages.OutcomeUnknown || e.Op != "read" || e.Server != "f" || f.reads.Load() != 2 {
			t.Errorf("%v, %d reads", err, f.reads.Load())
		}
		eventually(t, "it is back", func() bool { return f.dials.Load() == 4 && phase(t, m, "f") == messages.Connected })
		f.reads.Store(0)
		began := time.Now()
		_, err = m.ReadServerResource(t.Context(), "f", "x:///slow")
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || f.reads.Load() != 1 || took != 10*time.Second {
			t.Errorf("%v, %d reads, %v", err, f.reads.Load(), took)
		}
	})
}

// TestReadsWakeALazyServer: whatever is asked of a server by name connects it first.
func TestReadsWakeALazyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{CacheDir: t.TempDir(), Servers: map[string]supervisor.Spec{
			"f": {Type: messages.SDK, Era: messages.EraLegacy, Connect: messages.Lazy, IdleTimeout: messages.Duration(time.Minute)},
		}}, map[string]*fake{"f": f})
		settled(t, m)
		time.Sleep(5 * time.Minute) // let go
		if phase(t, m, "f") != messages.Pending {
			t.Fatal(phase(t, m, "f"))
		}
		dials := f.dials.Load()
		if _, err := m.ReadServerResource(t.Context(), "f", "x:///1"); err != nil || f.dials.Load() != dials+1 {
			t.Errorf("%v, %d dials", err, f.dials.Load())
		}
		// It is read for as long as a reader wants.
		for range 10 {
			time.Sleep(50 * time.Second)
			if _, err := m.ReadServerResource(t.Context(), "f", "x:///1"); err != nil {
				t.Error(err)
			}
		}
		if f.dials.Load() != dials+1 {
			t.Errorf("%d dials", f.dials.Load())
		}
	})
}
