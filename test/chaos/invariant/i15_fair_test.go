package invariant_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// callStory is n calls before the fault of the other server, at 1000 s, and n after it, that take so long.
func callStory(n int, before, during time.Duration) string {
	b := new(strings.Builder)
	fmt.Fprintln(b, "0s s1 phase phase=connected epoch=1")
	for i := range 2 * n {
		at, took := time.Duration(i+1)*time.Second, before
		if i >= n {
			at, took = 1000*time.Second+time.Duration(i-n)*time.Second, during
		}
		fmt.Fprintf(b, "%v s1 call call=c%d tool=read\n%v s1 end call=c%d tool=read outcome=result took=%v\n", at, i, at+took, i, took)
	}
	return b.String()
}

// slowCallStory is n calls to a third server, which takes its time for each.
func slowCallStory(n int) string {
	b := new(strings.Builder)
	fmt.Fprintln(b, "0s s3 phase phase=connected epoch=1")
	for i := range n {
		fmt.Fprintf(b, "%ds s3 call call=s%d tool=read\n%d.5s s3 end call=s%d tool=read outcome=result took=500ms\n", 1100+i, i, 1100+i, i)
	}
	return b.String()
}

func TestHealthyServersAreServedAsBefore(t *testing.T) {
	two := []string{"s1", "s2"}
	faulty := func(p *scenario.Plan) {
		p.Faults = []scenario.PlannedFault{{ID: 1, Fault: "crash-loop", Server: "s2", Begin: 1000 * time.Second, End: 2000 * time.Second}}
	}
	live := func(p *scenario.Plan) {
		faulty(p)
		p.Tier = scenario.Real
	}
	const ms = time.Millisecond
	runCases(t, "I15", []storyCase{
		{name: "as before", servers: two, plan: faulty, want: invariant.Holds, story: callStory(300, 4*ms, 10*ms)},
		{name: "nothing is faulty", servers: two, want: invariant.Inconclusive, why: "No server was faulty", story: callStory(300, 4*ms, 4*ms)},
		{name: "too few calls", servers: two, plan: faulty, want: invariant.Inconclusive, why: "needs 200", story: callStory(100, 4*ms, 90*ms)},
		{name: "slower by more than is fair", servers: two, plan: faulty, want: invariant.Violated, why: "at most 11ms is fair",
			story: callStory(300, 4*ms, 12*ms)},
		{name: "the machine was late itself", servers: two, plan: live, want: invariant.Inconclusive, why: "late by 5ms",
			story: callStory(300, 4*ms, 20*ms) + "3000s - house house=0,0,0,5\n"},
		{name: "later than the machine", servers: two, plan: live, want: invariant.Violated, why: "at most 11ms is fair",
			story: callStory(300, 4*ms, 22*ms) + "3000s - house house=0,0,0,5\n"},
		{name: "a call to a healthy server fails", servers: two, plan: faulty, want: invariant.Violated, why: "which was well, ended with unknown",
			story: callStory(300, 4*ms, 4*ms) + `
			1100s  s1 call call=x tool=read
			1100s  s1 end call=x tool=read outcome=unknown class=timeout
		`},
		{name: "a slower healthy server is called more often than before", servers: []string{"s1", "s2", "s3"}, want: invariant.Holds,
			plan: func(p *scenario.Plan) {
				faulty(p)
				p.Servers[2].Latency = 500 * ms
			}, story: callStory(300, 4*ms, 4*ms) + slowCallStory(40)},
		{name: "a call to the faulty server may fail", servers: two, plan: faulty, want: invariant.Holds, story: callStory(300, 4*ms, 4*ms) + `
			1100s  s2 call call=x tool=read
			1100s  s2 end call=x tool=read outcome=unknown class=timeout
		`},
		{name: "the call timeout of the server is shorter than its answers take", servers: two, want: invariant.Holds, plan: func(p *scenario.Plan) {
			faulty(p)
			p.Servers[0].Latency, p.Servers[0].CallTimeout = time.Second, time.Second
		}, story: callStory(300, 4*ms, 4*ms) + `
			1100s  s1 call call=x tool=read
			1101s  s1 end call=x tool=read outcome=unknown class=timeout
		`},
		{name: "who gives no time gets no answer", servers: two, plan: faulty, want: invariant.Holds, story: callStory(300, 4*ms, 4*ms) + `
			1100s  s1 call call=x tool=read deadline=1100.05s
			1100.05s s1 end call=x tool=read outcome=unknown class=timeout
		`},
	})
}
