package invariant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Each occasion has a story in which it happened; the empty day has none of them.
func TestOccasions(t *testing.T) {
	stories := map[string]string{
		"park": `1s s1 phase phase=failed retry=parked`,
		"probe-success": `
			1s s1 phase phase=failed retry=parked
			2s s1 phase phase=pending step=dialing
			3s s1 phase phase=connected
		`,
		"disabled-while-connecting": `
			1s s1 open conn=1
			2s s1 command command=1 method=disable
			3s s1 released conn=1
		`,
		"retry-after": `1s s1 refused conn=1 retryAfter=3s`,
		"withdrawn": `
			1s - snapshot generation=1 entries=s1:lost:1:3:a
			6s - snapshot generation=2 entries=s1::0:0
		`,
		"replayed": `
			1s s1 call call=c1 tool=read
			1s s1 received conn=1 call=c1
			2s s1 received conn=2 call=c1
		`,
		"stable-reset": crashLoop(0, 500*time.Millisecond) + `
			60s  s1 phase phase=connected epoch=3
			200s - closing
		`,
	}
	almost := map[string]string{
		"probe-success": `
			1s s1 phase phase=failed retry=parked
			2s s1 phase phase=pending step=queued
			3s s1 phase phase=connected
		`,
		"disabled-while-connecting": `
			1s s1 open conn=1
			1s s1 listed conn=1
			2s s1 command command=1 method=disable
		`,
		"withdrawn": `
			1s - snapshot generation=1 entries=s1:lost:1:3:a
			6s - snapshot generation=2 entries=s1:live:2:3:a
		`,
		"stable-reset": crashLoop(61*time.Second, 500*time.Millisecond),
	}
	for word := range scenario.Occasions {
		check, ok := invariant.Find("sometimes " + word)
		if !ok || stories[word] == "" {
			t.Errorf("%s: no check, or no story", word)
			continue
		}
		judge := func(story string) invariant.Verdict {
			return check.Judge(&history.History{Plan: simPlan(t, "s1"), Events: parseEvents(t, story)})
		}
		if v := judge(stories[word]); v.Answer != invariant.Holds || v.Looked == 0 {
			t.Errorf("%s happened, and the check says %s", word, v.Answer)
		}
		for _, story := range []string{"", almost[word]} {
			if v := judge(story); v.Answer != invariant.Inconclusive || v.Why == "" {
				t.Errorf("%s did not happen, and the check says %s %q", word, v.Answer, v.Why)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	p := simPlan(t, "s1")
	p.Scenario.Invariants, p.Scenario.Sometimes = []string{"I5", "I2"}, []string{"park"}
	p.Faults = []scenario.PlannedFault{{ID: 1, Fault: "crash", Server: "s1"}, {ID: 2, Fault: "stop", Server: "s1"}, {ID: 3, Fault: "crash", Server: "s1"}}
	h := &history.History{Plan: p, Events: parseEvents(t, `
		1s s1 fired fault=3 name=crash
		2s - snapshot generation=1
	`)}
	var got []string
	for _, v := range invariant.Judge(h) {
		got = append(got, v.ID+" "+string(v.Answer))
	}
	want := "I2 inconclusive, I5 holds, sometimes park inconclusive, sometimes fault crash holds, sometimes fault stop inconclusive"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	h.Plan.Scenario.Invariants = nil
	got = nil
	for _, v := range invariant.Judge(h) {
		if strings.HasPrefix(v.ID, "I") {
			got = append(got, v.ID)
		}
	}
	if s := strings.Join(got, " "); s != strings.Join(scenario.Invariants, " ") {
		t.Errorf("all that are judged: %s", s)
	}
}
