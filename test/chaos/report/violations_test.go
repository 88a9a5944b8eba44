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
	if want := "I25 is violated at 2s. It had to be refused. Violated as well: I11."; d.Summary != want {
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

// A report tells first of the violation for which its day was made smaller, with what is left of the day beside it: the same words as on the
// terminal, where an earlier violation of the small day would tell of another time.
func TestTheReportLeadsWithWhatTheDayWasMadeSmallerFor(t *testing.T) {
	small := scenario.Scenario{Name: "day", Servers: []scenario.Group{{Name: "s1"}}, Faults: []scenario.Fault{{Fault: "crash-loop", On: scenario.Selector{"s1"}}}}
	h := &history.History{Plan: scenario.Plan{Tier: scenario.Sim, Scenario: small}}
	dir := filepath.Join(t.TempDir(), "report")
	run := report.Run{History: h, Lead: "I13", Found: &report.Found{Scenario: small, Command: "mcpvisor chaos sim --seed 1"}, Verdicts: []invariant.Verdict{
		{ID: "I13", Title: "probes", Answer: invariant.Violated, Why: "No probe came.", Server: "s1", At: time.Minute},
		{ID: "I22", Title: "status", Answer: invariant.Violated, Why: "It said so still.", Server: "s1", At: time.Second},
	}}
	if err := report.Write(dir, run); err != nil {
		t.Fatal(err)
	}
	page := string(content(t, dir, "report.html"))
	if first, second := strings.LastIndex(page, "No probe came."), strings.Index(page, "It said so still."); first < 0 || first > second {
		t.Errorf("the violation that leads does not come first: %d, %d", first, second)
	}
	if !strings.Contains(page, "I13 is violated on s1 at 1m0s. No probe came. Violated as well: I22.") {
		t.Error("the head does not tell of the violation that leads")
	}
	if !strings.Contains(page, "  - fault: crash-loop\n    on: [s1]\n") {
		t.Error("the page does not show what is left of the day")
	}
	var text strings.Builder
	report.Terminal(&text, run, false)
	if first, second := strings.Index(text.String(), "No probe came."), strings.Index(text.String(), "It said so still."); first < 0 || first > second {
		t.Errorf("the terminal has another order:\n%s", &text)
	}
}
