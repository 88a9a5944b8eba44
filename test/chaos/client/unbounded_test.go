package client_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/gosdk"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestALoadWithoutTimeoutIsServed: shrinking takes the timeouts out of a day. Its calls have the server's own timeout then; they ended before they
// were sent, and a report said of healthy servers that every call had failed.
func TestALoadWithoutTimeoutIsServed(t *testing.T) {
	day := client.RandomDay(1, messages.Stdio, messages.EraLegacy, client.Limits{})
	day.Faults, day.Commands, day.Servers = nil, nil, day.Servers[:1]
	day.Load = []scenario.Load{{Tool: scenario.WriteTool, Rate: 2, For: messages.Duration(10 * time.Second)}}
	h, verdicts := play(t, day, gosdk.Dial(sdkClient))
	if bad := violated(verdicts); len(bad) > 0 {
		t.Errorf("%+v", bad)
	}
	ends := 0
	for _, e := range h.Events {
		if e.Kind != history.End {
			continue
		}
		if ends++; e.Outcome != messages.OutcomeResult {
			t.Errorf("call %s ended %s: %s", e.Call, e.Outcome, e.Text)
		}
	}
	if ends == 0 {
		t.Error("nothing was called")
	}
}
