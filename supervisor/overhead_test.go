package supervisor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// A manager adds no waiting of its own: with servers that answer at once, connecting all of them and calling each takes no
// time at all on a clock that stands still while any goroutine works. What is left is processor time, which make bench measures
// beside the aims of a second for a connection and 50 ms for a call.
func TestConnectingAndCallingWaitForNothingOfTheirOwn(t *testing.T) {
	for _, era := range []messages.Era{messages.EraLegacy, messages.EraAuto} {
		t.Run(string("era "+era), func(t *testing.T) {
			seeds.Shows(t, "004.nfr1.connection-time")
			seeds.Shows(t, "004.nfr1.call-overhead")
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				cfg := supervisor.Config{Servers: map[string]supervisor.Spec{},
					Transport: func(string, supervisor.Spec) (transports.Transport, error) {
						return inprocess.New(newFake("echo").serve), nil
					}}
				for i := range 20 {
					cfg.Servers[fmt.Sprintf("s%d", i)] = supervisor.Spec{Command: "x", Era: era}
				}
				m, err := supervisor.Start(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer closeAll(t, m)
				settled(t, m)
				if took := time.Since(begin); took != 0 {
					t.Errorf("connecting waited %v", took)
				}
				for i := range 20 {
					if _, err := m.CallTool(t.Context(), fmt.Sprintf("mcp__s%d__echo", i), nil); err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(begin); took != 0 {
					t.Errorf("connecting and calling waited %v", took)
				}
			})
		})
	}
}
