package supervisor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
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
