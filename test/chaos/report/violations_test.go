package report_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// The head of a report says what was expected and what happened, of the earliest violation; what has no occasion in a small day is
// folded away; and the events that show it say who asked for what and what came back.
func TestTheHeadTellsTheEarliestViolation(t *testing.T) {
	h := &history.History{Plan: scenario.Plan{Tier: scenario.Sim, Scenario: scenario.Scenario{Name: "day"}}, Events: []history.Event{
		{T: time.Second, Server: "s1", Side: history.Manager, Kind: history.CallReported, Method: "call-ended", Call: "c1", Outcome: "result"},
		{T: 2 * time.Second, Side: history.Agent, Agent: "agent-1", Kind: history.Asked, Method: "tools/list", Name: "bad-cursor"},
		{T: 2 * time.Second, Side: history.Agent, Agent: "agent-1", Kind: history.Replied, Method: "tools/list"},
	}}
	dir := filepath.Join(t.TempDir(), "report")
	err := report.Write(dir, report.Run{History: h, Verdicts: []invariant.Verdict{
		{ID: "I11", Title: "connected after the heal", Answer: invariant.Violated, Why: "It had not connected.", Server: "s1", At: time.Minute},
		{ID: "I25", Title: "one answer per request", Answer: invariant.Violated, Why: "It had to be refused.", At: 2 * time.Second, Evidence: []int{0, 1, 2}},
		{ID: "I3", Title: "calls", Answer: invariant.Inconclusive, Why: "Nobody called."},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var d report.Document
	if err := json.Unmarshal(content(t, dir, "report.json"), &d); err != nil {
		t.Fatal(err)
	}
	if want := "2 of 3 checks are violated, first I25 at 2s. It had to be refused."; d.Summary != want {
		t.Errorf("%q, want %q", d.Summary, want)
	}
	for i, want := range []string{
		"a watcher is told of call-ended: result c1", "asks tools/list, wrong on purpose: bad-cursor (agent-1)", "answer to tools/list: a result (agent-1)",
	} {
		if got := d.Verdicts[1].Evidence[i].Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	page := string(content(t, dir, "report.html"))
	if first, second := strings.LastIndex(page, "It had to be refused."), strings.Index(page, "It had not connected."); first < 0 || first > second {
		t.Errorf("the later violation comes first: %d, %d", first, second)
	}
	if folded := strings.Index(page, "1 inconclusive</span></summary>"); folded < 0 || strings.Index(page, "Nobody called.") < folded {
		t.Error("what is inconclusive is not folded away")
	}
}
