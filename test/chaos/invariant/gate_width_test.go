package invariant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// severalServers are the servers s1 to sn.
func severalServers(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("s%d", i+1))
	}
	return names
}

// eachServer repeats the lines of a story for the servers from one number to another; SERVER in it stands for the server.
func eachServer(from, to int, story string) (all string) {
	for i := from; i <= to; i++ {
		all += strings.ReplaceAll(story, "SERVER", fmt.Sprintf("s%d", i))
	}
	return all
}

// starvedStarts is how four servers start that wait for a processor: the gate of four slots has two from 1.5 s on.
var starvedStarts = eachServer(1, 4, `
	0s     SERVER phase phase=pending step=dialing epoch=1
	0s     SERVER open conn=1
`) + eachServer(1, 4, `
	1.5s   SERVER measured conn=1 ran=150ms waited=1350ms
`) + eachServer(1, 4, `
	3s     SERVER answered conn=1 method=initialize
	3s     SERVER received conn=1 method=tools/list
`)

// fourSlots gives the gate four slots for processes.
func fourSlots(p *scenario.Plan) { p.Limits.Processes = 4 }

// TestTheWidthOfTheGate has stories of a gate that starved starts have narrowed, as I6 sees it: how many may start.
func TestTheWidthOfTheGate(t *testing.T) {
	starts := func(from, to int, at string) string { return eachServer(from, to, "\n"+at+" SERVER open conn=1\n") }
	quick := `
		4s     s5 open conn=1
		4.5s   s5 answered conn=1 method=initialize
		4.5s   s5 received conn=1 method=tools/list
	`
	runCases(t, "I6", []storyCase{
		{name: "nothing was dialled", want: invariant.Inconclusive, story: `1s s1 call call=c1`},
		{name: "half as many as have not answered", want: invariant.Holds, servers: severalServers(6), plan: fourSlots, story: starvedStarts + starts(5, 6, "4s")},
		{name: "one too many", want: invariant.Violated, why: "3 starts of the processes held a slot of the start gate at 4s, and it had 2",
			servers: severalServers(7), plan: fourSlots, story: starvedStarts + starts(5, 7, "4s")},
		{name: "a quick start adds one", want: invariant.Holds, servers: severalServers(8), plan: fourSlots, story: starvedStarts + quick + starts(6, 8, "5s")},
		{name: "a quick start adds no more", want: invariant.Violated, why: "4 starts of the processes held a slot of the start gate at 5s, and it had 3",
			servers: severalServers(9), plan: fourSlots, story: starvedStarts + quick + starts(6, 9, "5s")},
		{name: "one start widens and another narrows", want: invariant.Holds, servers: severalServers(7), plan: fourSlots, story: starvedStarts +
			starts(5, 6, "4s") + `
			5.5s   s5 measured conn=1 ran=150ms waited=1350ms
			5.5s   s6 measured conn=1 ran=1s waited=400ms
			5.5s   s7 open conn=1
		`},
		{name: "a start adds one and not two", want: invariant.Violated, why: "4 starts of the processes held a slot of the start gate at 6s, and it had 3",
			servers: severalServers(9), plan: fourSlots, story: starvedStarts + `
			4s     s5 open conn=1
			5.5s   s5 measured conn=1 ran=1500ms
			5.8s   s5 answered conn=1 method=initialize
			5.8s   s5 received conn=1 method=tools/list
		` + starts(6, 9, "6s")},
		{name: "a slow start adds none", want: invariant.Violated, why: "3 starts of the processes held a slot of the start gate at 8s, and it had 2",
			servers: severalServers(8), plan: fourSlots, story: starvedStarts + `
			4s     s5 open conn=1
			7s     s5 answered conn=1 method=initialize
			7s     s5 received conn=1 method=tools/list
		` + starts(6, 8, "8s")},
		{name: "a start from before adds none", want: invariant.Violated, why: "3 starts of the processes held a slot of the start gate at 4s, and it had 2",
			servers: severalServers(7), plan: fourSlots, story: strings.ReplaceAll(starvedStarts, "3s     s4", "1.9s   s4") + starts(5, 7, "4s")},
		{name: "an answer that the manager makes nothing of may add one", want: invariant.Holds, servers: severalServers(8), plan: fourSlots,
			story: starvedStarts + strings.ReplaceAll(quick, "received", "notified") + starts(6, 8, "5s")},
		// Seed 20701263: a process that has written a line is not measured, and keeps its slot no longer.
		{name: "who waits for a processor has written a line", want: invariant.Holds, servers: severalServers(2), plan: func(p *scenario.Plan) { p.Limits.Processes = 1 }, story: `
			0s     s1 open conn=1
			1s     s1 fired conn=1 fault=1 name=noise
			1.5s   s1 measured conn=1 ran=500ms waited=1s
			2.5s   s2 open conn=1
		`},
		{name: "who waits for a processor keeps its slot", want: invariant.Violated, why: "2 starts of the processes held a slot of the start gate at 2.5s, and it had 1",
			servers: severalServers(2), plan: func(p *scenario.Plan) { p.Limits.Processes = 1 }, story: `
			0s     s1 open conn=1
			1.5s   s1 measured conn=1 ran=500ms waited=1s
			2.5s   s2 open conn=1
		`},
		// Seeds 4000211 and 4004980: the manager reads what the processes have used, sees that the attempt has lasted for too long, and
		// does not tell the gate.
		{name: "what is measured as an attempt ends may not count", want: invariant.Holds, servers: severalServers(7), plan: fourSlots, story: eachServer(1, 4, `
			0s     SERVER phase phase=pending step=dialing epoch=1
			0s     SERVER open conn=1
		`) + eachServer(1, 4, `
			10s    SERVER measured conn=1 ran=150ms waited=9s
			10s    SERVER phase phase=failed class=timeout epoch=1
			10.1s  SERVER released conn=1
		`) + starts(5, 7, "11s")},
		{name: "and loses it in the end", want: invariant.Holds, servers: severalServers(2), plan: func(p *scenario.Plan) { p.Limits.Processes = 1 }, story: `
			0s     s1 open conn=1
			1.5s   s1 measured conn=1 ran=500ms waited=1s
			3.1s   s2 open conn=1
		`},
	})
}

// TestWhoWaitsForANarrowGate has stories of the same gate as I18 sees it: who may wait.
func TestWhoWaitsForANarrowGate(t *testing.T) {
	const waits = `
		0s     s7 phase phase=pending step=queued epoch=1
	`
	end := "90s - closing\n" + eachServer(1, 7, "90s SERVER status phase=connected text=end\n")
	const late = `
		30s    s7 phase phase=pending step=dialing epoch=1
		30s    s7 open conn=1
	`
	const next = `
		4s     SERVER open conn=1
		5.5s   SERVER measured conn=1 ran=150ms waited=1350ms
		6.5s   SERVER measured conn=1 ran=250ms waited=2250ms
		7s     SERVER answered conn=1 method=initialize
		7s     SERVER received conn=1 method=tools/list
	`
	runCases(t, "I18", []storyCase{
		{name: "nobody asks", want: invariant.Inconclusive, story: `0s s1 open conn=1`},
		{name: "two slots are held", want: invariant.Holds, servers: severalServers(7), plan: fourSlots, story: starvedStarts + eachServer(5, 6, next) + waits + `
			7s     s7 phase phase=pending step=dialing epoch=1
			7s     s7 open conn=1
		` + end},
		// Seed 4005688: a client looks by ping whether the server lives that has left the question about its era unanswered.
		{name: "a server that agreed on no version had a ping", want: invariant.Holds, servers: severalServers(7), plan: fourSlots, story: starvedStarts + `
			3.1s   s4 phase phase=pending step=dialing epoch=2
			3.1s   s4 open conn=2
			3.3s   s4 received conn=2 method=ping
			3.3s   s4 answered conn=2 method=initialize
			3.3s   s4 phase phase=failed class=unsupported epoch=2
			3.4s   s4 released conn=2
		` + eachServer(5, 6, next) + waits + `
			7s     s7 phase phase=pending step=dialing epoch=1
			7s     s7 open conn=1
		` + end},
		{name: "one slot of two is held", want: invariant.Violated, why: "a slot of the gate has been free since 3s", servers: severalServers(7), plan: fourSlots,
			story: starvedStarts + eachServer(5, 5, next) + waits + late + end},
		{name: "no slot is held for ever", want: invariant.Violated, why: "a slot of the gate has been free since 20s", servers: severalServers(7),
			plan: func(p *scenario.Plan) { p.Limits.Processes = 1 }, story: `
			0s     s1 open conn=1
			1.5s   s1 measured conn=1 waited=1500ms
			3400ms s1 measured conn=1 waited=3400ms
			5300ms s1 measured conn=1 waited=5300ms
			7200ms s1 measured conn=1 waited=7200ms
			9100ms s1 measured conn=1 waited=9100ms
			11000ms s1 measured conn=1 waited=11000ms
			12900ms s1 measured conn=1 waited=12900ms
			14800ms s1 measured conn=1 waited=14800ms
			16700ms s1 measured conn=1 waited=16700ms
			18600ms s1 measured conn=1 waited=18600ms
			19900ms s1 measured conn=1 waited=19900ms
		` + waits + late + end},
	})
}
