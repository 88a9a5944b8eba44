package supervisor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// A spec that only adjusts meets a server at every moment of its beginning. Under the race detector this shows that nothing
// that the steps of an attempt read is written meanwhile; without it, that the attempt goes on.
func TestConnectAgainWhileConnecting(t *testing.T) {
	for _, after := range []time.Duration{time.Millisecond, time.Second, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake("x")
			f.delay = 2 * time.Second
			m := start(t, supervisor.Config{}, map[string]*fake{"f": f}) // itself one server, the first dial
			spec := supervisor.Spec{Type: messages.SDK, Name: "f"}
			first := make(chan error, 1)
			go func(spec supervisor.Spec) {
				first <- m.Connect(t.Context(), "a", spec)
			}(spec)
			time.Sleep(after)
			spec.CallTimeout, spec.DeniedTools = messages.Duration(7*time.Second), []string{"y"}
			if err := m.Connect(t.Context(), "a", spec); err != nil {
				t.Fatal(err)
			}
			if err := <-first; err != nil {
				t.Fatal(err)
			}
			if st := status(t, m, "a"); f.dials.Load() != 2 || st.Config.CallTimeout != spec.CallTimeout {
				t.Errorf("%d dials, call timeout %v", f.dials.Load(), st.Config.CallTimeout)
			}
			if _, err := m.CallServerTool(t.Context(), "a", "x", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server that waits for its turn to start has failed before. Another spec takes that error back, and who watches hears so as who asks does.
func TestAnotherSpecTakesBackTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, f := newFake(), newFake("x")
		silent.mute = true
		m := start(t, supervisor.Config{Gate: restart.Limits{InProcess: 1}}, map[string]*fake{"f": f, "silent": silent})
		time.Sleep(3 * time.Second)
		if _, err := m.CallServerTool(t.Context(), "f", "x", nil); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		defer all.Wait()
		all.Go(func() { _ = m.Connect(t.Context(), "again", supervisor.Spec{Type: messages.SDK, Name: "silent"}) }) // has the only slot
		synctest.Wait()
		f.kill()
		synctest.Wait()
		w := m.Watch(64)
		defer w.Close()
		all.Go(func() { _ = m.Reconnect(t.Context(), "f") })
		synctest.Wait()
		if st := status(t, m, "f"); st.Step != messages.Queued || st.Error == "" {
			t.Fatalf("%s, error %q: want one that waits and has failed", st.Step, st.Error)
		}
		all.Go(func() {
			_ = m.Connect(t.Context(), "f", supervisor.Spec{Type: messages.SDK, DeniedTools: []string{"y"}})
		})
		synctest.Wait()
		asked := status(t, m, "f")
		published := messages.Status{Error: "nothing"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for e := range w.Events(ctx) {
			if e.Kind == messages.EventPhase && e.Server == "f" {
				published = *e.Status
			}
		}
		if asked.Error != "" || asked.Step != messages.Queued || published.Error != asked.Error || published.Step != asked.Step {
			t.Errorf("who asks hears %s and error %q, who watches %s and %q", asked.Step, asked.Error, published.Step, published.Error)
		}
	})
}
