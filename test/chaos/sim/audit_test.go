package sim_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// alteredLog writes what the manager writes into its audit log with one text in the place of another.
type alteredLog struct {
	to       io.Writer
	old, new string
}

func (l *alteredLog) Write(b []byte) (int, error) {
	if _, err := l.to.Write(bytes.ReplaceAll(b, []byte(l.old), []byte(l.new))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// The audit log tells of each call what its caller got; one that tells something else is noticed.
func TestAuditLogTellsOfCalls(t *testing.T) {
	at := func(d time.Duration) messages.Duration { return messages.Duration(d) }
	plan := planScenario(t, 1, scenario.Scenario{
		Name: "audit", Duration: at(time.Minute), Servers: []scenario.Group{{Name: "a", Trusted: true}, {Name: "b", MaxInFlight: 1, MaxQueued: 1, Latency: at(300 * time.Millisecond)}},
		Faults: []scenario.Fault{
			{Fault: "tool-error", On: scenario.Selector{"a"}, At: at(5 * time.Second), For: at(5 * time.Second)},
			{Fault: "die-mid-call", On: scenario.Selector{"a"}, At: at(20 * time.Second), For: at(5 * time.Second)},
		},
		Load: []scenario.Load{{Tool: scenario.ReadTool, Rate: 5, Callers: 2, Cancel: 0.1}}, Manager: scenario.Manager{Audit: true},
	})
	for _, text := range violationTexts(run(t, plan, sim.Options{})) {
		t.Errorf("a log that tells what happened: %s", text)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"outcome":"tool-error"`, `"outcome":"result"`, "that it ended with result, and its caller got tool-error"},
		{`"attempts":2`, `"attempts":1`, "that it was sent 1 times, and its server got it over 2 connections"},
		{`"who":"`, `"who":"not `, "that it was made for"},
		{`"kind":"call"`, `"kind":"read"`, "has 0 records of call"},
		{`"tool":"read"`, `"tool":"write"`, "that it was one of write"},
	} {
		lies := sim.Options{Config: func(cfg *supervisor.Config) { cfg.Audit = &alteredLog{cfg.Audit, c.old, c.new} }}
		if texts := strings.Join(violationTexts(run(t, plan, lies)), "\n"); !strings.Contains(texts, c.want) {
			t.Errorf("a log with %s for %s is not noticed:\n%s", c.new, c.old, texts)
		}
	}
}
