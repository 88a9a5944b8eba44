package invariant_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// crowdStory is a story of an agent that makes 33 calls at once, of which the last is sent at a time; session is the session in which that is.
func crowdStory(session, sent string) string {
	b := &strings.Builder{}
	b.WriteString("0s s1 open conn=1\n10ms s1 opened conn=1\n20ms s1 phase phase=connected epoch=1\n")
	for n := range 32 {
		fmt.Fprintf(b, "1s - asked agent=agent-5 by=a epoch=1 id=%d method=tools/call about=a5-%d\n", n, n)
		fmt.Fprintf(b, "1s s1 call call=a5-%d tool=write by=a agent=agent-5\n", n)
		fmt.Fprintf(b, "1s s1 received conn=1 method=tools/call id=%d call=a5-%d\n", n+5, n)
	}
	fmt.Fprintf(b, "1.1s - asked agent=agent-5 by=a epoch=%s id=99 method=tools/call about=a5-99\n", session)
	b.WriteString("1.1s s1 call call=a5-99 tool=write by=a agent=agent-5\n1.5s - tasked agent=agent-5 by=a about=a5-7 deadline=1h\n")
	fmt.Fprintf(b, "%s s1 received conn=1 method=tools/call id=99 call=a5-99\n9s s1 end call=a5-99 tool=write outcome=result\n9s - closing\n", sent)
	return b.String()
}

// Seed 20381189: the gateway lets 32 calls of one session be under way at a server that has given no result yet, and the judge took the 33rd for one that
// waited for its turn.
func TestCallsWaitInTheWindowOfTheirAgent(t *testing.T) {
	onLines := func(p *scenario.Plan) {
		p.Agents = []scenario.PlannedAgent{{Name: "agent-5", As: "a", Over: scenario.OverLines, Era: messages.EraLegacy}}
	}
	modern := func(p *scenario.Plan) {
		p.Agents = []scenario.PlannedAgent{{Name: "agent-5", As: "a", Over: scenario.OverHTTP, Era: messages.EraModern}}
	}
	beside := []string{"s1", "s2 connect=lazy"} // beside a lazy server agents read nothing
	untilQuiet := func(story string) string {
		return strings.ReplaceAll(story, "1.5s - tasked agent=agent-5 by=a about=a5-7 deadline=1h\n", "")
	}
	aResultBefore := "0.5s s1 call call=c1 tool=write by=b\n0.5s - asked agent=agent-6 by=b epoch=1 id=1 method=tools/call about=c1\n" +
		"0.5s s1 received conn=1 method=tools/call id=4 call=c1\n0.6s s1 end call=c1 tool=write outcome=result\n"
	padded := func(p *scenario.Plan) {
		onLines(p)
		p.Faults = []scenario.PlannedFault{{ID: 1, Fault: "big-result", Server: "s1", Begin: 400 * time.Millisecond, End: 650 * time.Millisecond}}
	}
	// afterLarge is a crowd on the connection after the one on which a result of 1 MiB came, and then small ones.
	afterLarge := func(small int, sent string) string {
		b := &strings.Builder{}
		b.WriteString(aResultBefore + strings.ReplaceAll(crowdStory("1", sent), "conn=1 method", "conn=2 method"))
		for n := range small {
			fmt.Fprintf(b, "0.7s s1 call call=c%d tool=write by=b\n0.7s - asked agent=agent-6 by=b epoch=1 id=%[1]d method=tools/call about=c%[1]d\n", n+2)
			fmt.Fprintf(b, "0.7s s1 received conn=1 method=tools/call id=%d call=c%[1]d\n0.75s s1 end call=c%[1]d tool=write outcome=result\n", n+2)
		}
		b.WriteString("0.8s s1 down conn=1\n0.8s s1 phase phase=pending\n0.8s s1 released conn=1\n0.85s s1 open conn=2\n0.85s s1 opened conn=2\n0.9s s1 phase phase=connected epoch=2\n")
		return b.String()
	}
	runCases(t, "I21", []storyCase{
		{name: "the first of them has become a task", servers: beside, plan: onLines, want: invariant.Holds, story: crowdStory("1", "1.5s")},
		{name: "it waits on when there is room", servers: beside, plan: onLines, want: invariant.Violated, why: "Call a5-99 of tool write of s1 began at 1.1s while the server was connected, and was not sent by 1.501s",
			story: crowdStory("1", "1.6s")},
		{name: "none is answered for a second", servers: beside, plan: onLines, want: invariant.Holds, story: untilQuiet(crowdStory("1", "2.1s"))},
		{name: "it waits on when none is answered for a second", servers: beside, plan: onLines, want: invariant.Violated, why: "was not sent by 2.101s", story: untilQuiet(crowdStory("1", "2.2s"))},
		{name: "it is in another session", servers: beside, plan: onLines, want: invariant.Violated, why: "was not sent by 1.101s", story: crowdStory("2", "1.5s")},
		{name: "the results of the tool are known to be small", servers: beside, plan: onLines, want: invariant.Violated, why: "was not sent by 1.101s", story: aResultBefore + crowdStory("1", "1.5s")},
		{name: "a result of the tool was large", servers: beside, plan: padded, want: invariant.Holds, story: afterLarge(0, "3.5s")},
		{name: "it waits on when there is room for large ones", servers: beside, plan: padded, want: invariant.Violated, why: "was not sent by 3.501s", story: afterLarge(0, "3.6s")},
		{name: "the results of the tool are small again", servers: beside, plan: padded, want: invariant.Violated, why: "was not sent by 1.101s", story: afterLarge(8, "1.5s")},
		{name: "no result of the tool was large", servers: beside, plan: onLines, want: invariant.Violated, why: "was not sent by 1.101s", story: afterLarge(0, "2.5s")},
		{name: "all agents of a principal may have more", servers: beside, plan: modern, want: invariant.Violated, why: "was not sent by 1.101s", story: crowdStory("1", "1.5s")},
		{name: "no call", servers: beside, plan: onLines, want: invariant.Inconclusive, story: "0s s1 open conn=1"},
	})
}

// Seed 20397117: the call was taken back while it waited in the window of its agent, and the judge took it for one that the manager had refused late.
func TestCallsThatEndInTheWindowOfTheirAgent(t *testing.T) {
	onLines := func(p *scenario.Plan) {
		p.Agents = []scenario.PlannedAgent{{Name: "agent-5", As: "a", Over: scenario.OverLines, Era: messages.EraLegacy}}
	}
	crowd, _, _ := strings.Cut(crowdStory("1", "1.5s"), "1.5s - tasked")
	elsewhere, _, _ := strings.Cut(crowdStory("2", "1.5s"), "1.5s - tasked")
	const takenBack = "1.3s s1 left call=a5-99 tool=write by=a agent=agent-5\n1.3s s1 end call=a5-99 tool=write outcome=not-sent class=canceled by=a agent=agent-5\n"
	const room = "1.2s - tasked agent=agent-5 by=a about=a5-7 deadline=1h\n"
	waits := func(p *scenario.Plan) {
		onLines(p)
		p.CallWait = 20 * time.Second
	}
	const lost = "1.15s s1 down conn=1\n1.15s s1 phase phase=pending step=restarting retry=at class=exited epoch=1\n"
	const refused = "END s1 end call=a5-99 tool=write outcome=not-sent class=network by=a agent=agent-5\n40s - closing\n"
	runCases(t, "I2", []storyCase{
		{name: "taken back in the window", plan: onLines, want: invariant.Holds, story: crowd + takenBack},
		{name: "taken back when there was room", plan: onLines, want: invariant.Violated, why: "Call a5-99 of tool write of s1 began at 1.1s and reached no server, and its caller was told that it was not sent only at 1.3s",
			story: crowd + room + takenBack},
		{name: "taken back in another session", plan: onLines, want: invariant.Violated, why: "was not sent only at 1.3s", story: elsewhere + takenBack},
		{name: "it waits for its server after the window", plan: waits, want: invariant.Holds, story: crowd + lost + strings.ReplaceAll(refused, "END", "22.1s")},
		{name: "it waits for its server too long after the window", plan: waits, want: invariant.Violated, why: "It may wait for 20s, until 22.125s",
			story: crowd + lost + strings.ReplaceAll(refused, "END", "22.3s")},
		{name: "no call", want: invariant.Inconclusive, story: "0s s1 open conn=1"},
	})
}
