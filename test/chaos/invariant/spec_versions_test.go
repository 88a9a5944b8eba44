package invariant_test

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// withAdjusts is a plan in which the owner adjusts s1 with each of some words, in order: command 1, 3, 5 …
func withAdjusts(all ...map[string]string) func(*scenario.Plan) {
	return func(p *scenario.Plan) {
		for i, with := range all {
			p.Commands = append(p.Commands, scenario.PlannedCommand{ID: 2*i + 1, Do: "adjust", Server: "s1", With: with})
		}
	}
}

// withPermits is a plan in which rules deny tools of s1, in order: command 1, 3, 5 …
func withPermits(all ...string) func(*scenario.Plan) {
	return func(p *scenario.Plan) {
		for i, tools := range all {
			p.Commands = append(p.Commands, scenario.PlannedCommand{ID: 2*i + 1, Do: "permit", Server: "s1", With: map[string]string{"refuse": tools}})
		}
	}
}

type adjustParams = map[string]string

const adjustedUp = `
	0s     s1 open conn=1
	1ms    s1 opened conn=1
	0s     s1 changed rev=1 hash=aa names=read,put,write
	10ms   s1 answered conn=1 method=initialize
	20ms   s1 answered conn=1 method=tools/list
	20ms   s1 listed conn=1 rev=1
	30ms   -  snapshot generation=1 entries=s1:live:2:3:aa:put+read+write
	30ms   s1 phase phase=connected epoch=2
	10s    s1 command command=1 method=adjust
	10s    s1 done command=1 method=adjust
`

func TestAdjustedAroundAConnection(t *testing.T) {
	restSoon := adjustParams{"connect": "lazy", "idleTimeout": "1s"}
	// After a removal it is known only some time later that an adjust is in force.
	removedBefore := `
			0s     s1 command command=2 method=remove
			0s     s1 done command=2 method=remove
			0s     s1 command command=4 method=add
			0s     s1 done command=4 method=add
	` + strings.ReplaceAll(adjustedUp, "10s    s1", "2s     s1")
	runCases(t, "I17", []storyCase{
		{name: "the connection stays", plan: withAdjusts(adjustParams{"callTimeout": "1s"}), want: invariant.Holds, story: adjustedUp + `
			60s    -  closing`},
		{name: "it is lost", plan: withAdjusts(adjustParams{"callTimeout": "1s"}), want: invariant.Violated, why: "needs no other connection", story: adjustedUp + `
			10s    s1 phase phase=pending step=closing epoch=2
			60s    -  closing`},
		{name: "it is dialled beside", plan: withAdjusts(adjustParams{"callTimeout": "1s"}), want: invariant.Violated, why: "it was dialled at 10.01s", story: adjustedUp + `
			10.01s s1 open conn=2
			60s    -  closing`},
		{name: "it is lazy from then on and rests", plan: withAdjusts(adjustParams{"connect": "lazy", "idleTimeout": "5s"}), want: invariant.Holds, story: adjustedUp + `
			15.1s  s1 phase phase=pending step=idle epoch=2
			60s    -  closing`},
		{name: "it rests and a call wakes it while the adjust may be on its way, as on seed 4001843", plan: withAdjusts(restSoon), want: invariant.Holds, story: removedBefore + `
			3.1s  s1 phase phase=pending step=idle epoch=2
			3.1s  s1 released conn=1
			4s    s1 call call=c1 tool=read
			4s    s1 open conn=2
			60s    -  closing`},
		{name: "it is let go at once", plan: withAdjusts(restSoon), want: invariant.Violated, why: "needs no other connection", story: removedBefore + `
			1.9s   s1 call call=c1 tool=read
			1.9s   s1 received conn=1 method=tools/call id=5 call=c1
			1.91s  s1 end call=c1 tool=read outcome=result
			2s    s1 phase phase=pending step=idle epoch=2
			2s    s1 released conn=1
			4s    s1 open conn=2
			60s    -  closing`},
		{name: "it is lazy from then on and does not rest", plan: withAdjusts(adjustParams{"connect": "lazy", "idleTimeout": "5s"}), want: invariant.Violated,
			why: "is to be let go when it was not used for 5s", story: adjustedUp + `
			60s    -  closing`},
		{name: "nothing is adjusted", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
}

// A set of servers in which a server stands as before leaves it as the owner has switched it.
func TestASetWithTheSameServer(t *testing.T) {
	sets := func(second string) func(*scenario.Plan) {
		return func(p *scenario.Plan) {
			for i, deny := range []string{"write", second} {
				p.Commands = append(p.Commands, scenario.PlannedCommand{ID: 2 + 2*i, Do: "adjust", Server: "s1", With: adjustParams{"deny": deny}})
			}
		}
	}
	story := strings.ReplaceAll(adjustedUp, "command=1", "command=2") + `
			20s    s1 command command=3 method=disable
			20s    s1 phase phase=disabled warm=true epoch=2
			20s    s1 done command=3 method=disable
			30s    s1 command command=4 method=adjust
			30s    s1 done command=4 method=adjust
			60s    - closing
	`
	runCases(t, "I16", []storyCase{
		{name: "it stays disabled, as on seed 4004876", plan: sets("write"), want: invariant.Holds, story: story},
		{name: "another description of it is ignored", plan: sets("read"), want: invariant.Violated, why: "was wanted by its owner", story: story},
		{name: "nothing is asked", want: invariant.Inconclusive, why: "asked for nothing", story: "0s s2 open conn=1"},
	})
}

// TestAFilterOfAServerWithoutItsList: one that offers more than tools may be connected before its list could be read, and shows no tool then.
func TestAFilterOfAServerWithoutItsList(t *testing.T) {
	offers := func(p *scenario.Plan) {
		withAdjusts(adjustParams{"deny": ""})(p)
		p.Servers[0].Offers = true
		p.Commands = append(p.Commands, scenario.PlannedCommand{ID: 5, Do: "adjust", Server: "s1", With: adjustParams{"deny": "write"}})
	}
	story := func(page string) string {
		return `
			0s     s1 open conn=1
			0s     s1 changed rev=1 hash=aa names=read,put,write
			10ms   s1 received conn=1 method=tools/list id=1
			20ms   s1 listed conn=1 rev=1
			20ms   s1 answered conn=1 method=tools/list id=1
			30ms   -  snapshot generation=1 entries=s1:live:2:3:aa:put+read+write
			30ms   s1 phase phase=connected epoch=2
			2s     s1 down conn=1
			2s     s1 phase phase=pending step=restarting epoch=2 class=exited
			2s     -  snapshot generation=2 entries=s1:lost:2:3:aa:put+read+write
			3s     s1 open conn=2
			3.1s   s1 received conn=2 method=tools/list id=2
			` + page + `
			3.2s   s1 answered conn=2 method=tools/list id=2
			3.2s   -  snapshot generation=3 entries=s1::0:0
			3.2s   s1 phase phase=connected epoch=3
			10s    s1 command command=1 method=adjust
			10s    s1 done command=1 method=adjust
			60s    -  closing`
	}
	runCases(t, "I14", []storyCase{
		{name: "the last page never came, as on seed 9710433", plan: offers, want: invariant.Holds, story: story("")},
		{name: "the list has come", plan: offers, want: invariant.Violated, why: "has 3 tools", story: story("3.2s   s1 listed conn=2 rev=1")},
		{name: "nothing is asked", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
}

func TestAdjustedFilter(t *testing.T) {
	denies := withAdjusts(adjustParams{"deny": "write"}, adjustParams{"deny": ""})
	runCases(t, "I14", []storyCase{
		{name: "what is denied goes", plan: denies, want: invariant.Holds, story: adjustedUp + `
			10s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			60s    -  closing`},
		{name: "what is denied stays", plan: denies, want: invariant.Violated, why: "denied the tools \"write\"", story: adjustedUp + `
			60s    -  closing`},
		{name: "what is denied goes when the registry has a successor, as on seed 9711400", plan: denies, want: invariant.Holds, story: adjustedUp + `
			10s    -  fault-on fault=-1 name=broken-actor
			11s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			60s    -  closing`},
		{name: "the registry had broken a moment before, as on seed 20601113", plan: denies, want: invariant.Holds, story: adjustedUp + `
			9.2s   -  fault-on fault=-1 name=broken-actor
			10.2s  -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			60s    -  closing`},
		{name: "the registry had broken long before", plan: denies, want: invariant.Violated, why: "denied the tools \"write\"", story: adjustedUp + `
			8s     -  fault-on fault=-1 name=broken-actor
			10.2s  -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			60s    -  closing`},
		{name: "what is denied no more comes back", plan: denies, want: invariant.Holds, story: adjustedUp + `
			10s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			20s    s1 command command=3 method=adjust
			20s    s1 done command=3 method=adjust
			20s    -  snapshot generation=2 entries=s1:live:2:3:aa:put+read+write
			60s    -  closing`},
		{name: "what is denied no more stays away", plan: denies, want: invariant.Violated, why: "put,read", story: adjustedUp + `
			10s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			20s    s1 command command=3 method=adjust
			20s    s1 done command=3 method=adjust
			60s    -  closing`},
		{name: "what is denied is called", plan: denies, want: invariant.Violated, why: "when the owner had denied the tool", story: adjustedUp + `
			10s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			15s    s1 call call=c1 tool=write
			15s    s1 received conn=1 call=c1 method=tools/call id=7
			16s    s1 end call=c1 tool=write outcome=result
			60s    -  closing`},
		{name: "nothing is listed", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
}

// holdsBack adds to a plan that changed tools of s1 are held back.
func holdsBack(plan func(*scenario.Plan)) func(*scenario.Plan) {
	return func(p *scenario.Plan) {
		plan(p)
		p.Scenario.Manager.Pins, p.Servers[0].Pin = true, messages.PinHold
	}
}

func TestPermittedTools(t *testing.T) {
	permittedUp := strings.ReplaceAll(adjustedUp, "method=adjust", "method=permit")
	denies := withPermits("write", "*", "")
	runCases(t, "I14", []storyCase{
		{name: "what a rule denies goes", plan: denies, want: invariant.Holds, story: permittedUp + `
			10s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			60s    -  closing`},
		{name: "what a rule allows again is held back, as on seed 30000142", plan: holdsBack(withPermits("write", "")), want: invariant.Holds, story: permittedUp + `
			10s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			20s    s1 command command=3 method=permit
			20s    -  snapshot generation=3 entries=s1:live:2:2:bb:put+read
			20s    s1 done command=3 method=permit
			60s    -  closing`},
		{name: "what a rule denies stays where tools are held back", plan: holdsBack(denies), want: invariant.Violated, why: "denied the tools \"write\"", story: permittedUp + `
			60s    -  closing`},
		{name: "what a rule denies stays", plan: denies, want: invariant.Violated, why: "denied the tools \"write\"", story: permittedUp + `
			60s    -  closing`},
		{name: "the whole server is denied and stays", plan: denies, want: invariant.Violated, why: "denied the tools \"*\"", story: permittedUp + `
			10s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			20s    s1 command command=3 method=permit
			20s    s1 done command=3 method=permit
			60s    -  closing`},
		{name: "what no rule denies any more stays away", plan: denies, want: invariant.Violated, why: "put,read", story: permittedUp + `
			10s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			20s    s1 command command=3 method=permit
			20s    s1 done command=3 method=permit
			20s    -  snapshot generation=3 entries=s1
			30s    s1 command command=5 method=permit
			30s    s1 done command=5 method=permit
			30s    -  snapshot generation=4 entries=s1:live:2:2:bb:put+read
			60s    -  closing`},
		{name: "what a rule denies is called", plan: denies, want: invariant.Violated, why: "when the owner had denied the tool", story: permittedUp + `
			10s    -  snapshot generation=2 entries=s1:live:2:2:bb:put+read
			15s    s1 call call=c1 tool=write
			15s    s1 received conn=1 call=c1 method=tools/call id=7
			16s    s1 end call=c1 tool=write outcome=result
			60s    -  closing`},
		{name: "nothing is listed", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
	runCases(t, "I20", []storyCase{
		{name: "a server that is denied is not read", plan: withPermits("*"), want: invariant.Holds, story: permittedUp + `
			5s     s1 offered rev=1
			15s    s1 read call=r1 method=prompt
			15s    s1 read-end call=r1 method=prompt class=denied
			60s    -  closing`},
		{name: "a server that is denied is read", plan: withPermits("*"), want: invariant.Violated, why: "when a rule denied the whole server", story: permittedUp + `
			5s     s1 offered rev=1
			15s    s1 read call=r1 method=prompt
			15s    s1 read-end call=r1 method=prompt rev=1
			60s    -  closing`},
		{name: "nothing is read", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
}

func TestAllIsDenied(t *testing.T) {
	all := withAdjusts(adjustParams{"deny": "read,put,write"})
	deniedAway := strings.ReplaceAll(strings.ReplaceAll(adjustedUp, "method=adjust", "method=permit"), "10s    s1 command", `
			9.5s   s1 phase phase=pending step=restarting epoch=2 class=exited text=gone
			9.5s   -  snapshot generation=2 entries=s1:lost:2:3:aa:put+read+write
			10s    s1 command`) + `
			11s    s1 listed conn=2 rev=1
			11s    -  snapshot generation=3 entries=s1
	`
	lost, _, _ := strings.Cut(adjustedUp, "	10s ")
	lost += `
			10s    s1 phase phase=pending step=restarting epoch=2 class=exited text=gone
			10s    -  snapshot generation=2 entries=s1:lost:2:3:aa:put+read+write
	`
	runCases(t, "I1", []storyCase{
		{name: "the last tool that is not denied goes", plan: all, want: invariant.Holds, story: adjustedUp + `
			20s    s1 changed rev=2 hash=bb names=read,put,write
			20s    -  snapshot generation=2 entries=s1
			60s    -  closing`},
		{name: "the whole server is denied and then rests", plan: withPermits("write", "*", ""), want: invariant.Holds, story: strings.ReplaceAll(adjustedUp, "method=adjust", "method=permit") + `
			20s    - snapshot generation=2 entries=s1::0:0
			20s    s1 command command=3 method=permit
			20s    s1 done command=3 method=permit
			20.02s s1 phase phase=pending step=idle epoch=2
			60s    - closing
		`},
		{name: "the connection is lost and the tools go", plan: all, want: invariant.Violated, why: "makes the tools flap", story: adjustedUp + `
			20s    s1 phase phase=pending step=restarting epoch=2 class=exited text=gone
			20s    -  snapshot generation=2 entries=s1
			60s    -  closing`},
		{name: "rules of the time in which it was away deny all, as on seed 4001666", plan: withPermits("*"), want: invariant.Holds, story: deniedAway + `
			11s    s1 phase phase=connected epoch=3
			60s    -  closing`},
		// Seed 20882125: the connection came back for 20 ms.
		{name: "rules of that time deny all, and it is lost again at once", plan: withPermits("*"), want: invariant.Holds, story: deniedAway + `
			11s    s1 phase phase=connected epoch=3
			11.02s s1 phase phase=pending step=restarting epoch=3 class=exited text=gone
			60s    -  closing`},
		{name: "rules of that time deny some", plan: withPermits("write"), want: invariant.Violated, why: "makes the tools flap", story: deniedAway + `
			11s    s1 phase phase=connected epoch=3
			60s    -  closing`},
		// Seeds 20701032, 20701108: the server came back in another era, in which it describes its tools in other words.
		{name: "all is held back at its return", plan: holdsBack(withAdjusts()), want: invariant.Holds, story: lost + `
			11s    s1 changed rev=2 hash=bb names=read,put,write
			11s    s1 listed conn=2 rev=2
			11s    -  snapshot generation=3 entries=s1
			11s    s1 phase phase=connected epoch=3
			60s    -  closing`},
		{name: "all is held back as the server begins to rest, as on seed 20981298", plan: holdsBack(withAdjusts()), want: invariant.Holds, story: adjustedUp + `
			20s    s1 changed rev=2 hash=bb names=read,put,write
			20s    s1 listed conn=1 rev=2
			20s    -  snapshot generation=2 entries=s1
			20s    s1 phase phase=pending step=idle epoch=2
			60s    -  closing`},
		{name: "what has not changed goes as the server begins to rest", plan: holdsBack(withAdjusts()), want: invariant.Violated, why: "makes the tools flap", story: adjustedUp + `
			20s    s1 listed conn=1 rev=1
			20s    -  snapshot generation=2 entries=s1
			20s    s1 phase phase=pending step=idle epoch=2
			60s    -  closing`},
		{name: "what has not changed is held back at its return", plan: holdsBack(withAdjusts()), want: invariant.Violated, why: "makes the tools flap", story: lost + `
			11s    s1 listed conn=2 rev=1
			11s    -  snapshot generation=3 entries=s1
			11s    s1 phase phase=connected epoch=3
			60s    -  closing`},
		{name: "what has changed goes though nothing is held back", plan: withAdjusts(), want: invariant.Violated, why: "makes the tools flap", story: lost + `
			11s    s1 changed rev=2 hash=bb names=read,put,write
			11s    s1 listed conn=2 rev=2
			11s    -  snapshot generation=3 entries=s1
			11s    s1 phase phase=connected epoch=3
			60s    -  closing`},
		{name: "rules of that time deny all, and it is not back", plan: withPermits("*"), want: invariant.Violated, why: "makes the tools flap", story: deniedAway + `
			60s    -  closing`},
		{name: "nothing is shown", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
}

func TestAdjustedBounds(t *testing.T) {
	two := withAdjusts(adjustParams{"callTimeout": "2s"})
	runCases(t, "I2", []storyCase{
		{name: "the new timeout counts", plan: two, want: invariant.Holds, story: adjustedUp + `
			15s    s1 call call=c1 tool=write
			15s    s1 received conn=1 call=c1 method=tools/call id=7
			17s    s1 end call=c1 tool=write outcome=unknown class=timeout
			60s    -  closing`},
		{name: "the old timeout counts on", plan: two, want: invariant.Violated, why: "had to end at 17s", story: adjustedUp + `
			15s    s1 call call=c1 tool=write
			15s    s1 received conn=1 call=c1 method=tools/call id=7
			75s    s1 end call=c1 tool=write outcome=unknown class=timeout
			80s    -  closing`},
		{name: "a call from before keeps its timeout", plan: two, want: invariant.Holds, story: adjustedUp + `
			4s     s1 call call=c1 tool=write
			4s     s1 received conn=1 call=c1 method=tools/call id=7
			64s    s1 end call=c1 tool=write outcome=unknown class=timeout
			80s    -  closing`},
		{name: "nothing is called", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
	one, more := adjustParams{"maxInFlight": "1"}, adjustParams{"maxInFlight": "3"}
	calls := `
			15s    s1 call call=c1 tool=write
			15s    s1 received conn=1 call=c1 method=tools/call id=7
			15.5s  s1 call call=c2 tool=write
			16s    s1 command command=3 method=adjust
			16s    s1 done command=3 method=adjust
`
	runCases(t, "I21", []storyCase{
		{name: "who waits is let in by another bound", plan: withAdjusts(one, more), want: invariant.Holds, story: adjustedUp + calls + `
			16s    s1 received conn=1 call=c2 method=tools/call id=8
			17s    s1 end call=c1 tool=write outcome=result
			17s    s1 end call=c2 tool=write outcome=result
			60s    -  closing`},
		{name: "who waits waits on", plan: withAdjusts(one, more), want: invariant.Violated, why: "1 calls were in flight, and maxInFlight allows 3", story: adjustedUp + calls + `
			17s    s1 end call=c1 tool=write outcome=result
			17s    s1 received conn=1 call=c2 method=tools/call id=8
			18s    s1 end call=c2 tool=write outcome=result
			60s    -  closing`},
		{name: "the new bound is not kept", plan: withAdjusts(one), want: invariant.Violated, why: "1 others were in flight: maxInFlight allows 1", story: adjustedUp + `
			15s    s1 call call=c1 tool=write
			15s    s1 received conn=1 call=c1 method=tools/call id=7
			15.5s  s1 call call=c2 tool=write
			15.5s  s1 received conn=1 call=c2 method=tools/call id=8
			17s    s1 end call=c1 tool=write outcome=result
			17s    s1 end call=c2 tool=write outcome=result
			60s    -  closing`},
		{name: "nothing is called", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
}

// An adjust of a connected server leaves what the policy has counted: the connection that ends next is the second failure in a row.
func TestAnAdjustLeavesTheFailures(t *testing.T) {
	story := func(attempts string) string {
		return `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			0s     s1 answered conn=1 method=initialize
			0s     s1 answered conn=1 method=tools/list
			0s     s1 listed conn=1
			0s     s1 phase phase=connected epoch=1
			2s     s1 down conn=1 class=exited
			2s     s1 released conn=1
			2s     s1 phase phase=pending step=restarting retry=retry class=exited attempts=1 epoch=1 next=2.8s
			2.8s   s1 phase phase=pending step=dialing epoch=2
			2.8s   s1 open conn=2
			2.8s   s1 answered conn=2 method=initialize
			2.8s   s1 answered conn=2 method=tools/list
			2.8s   s1 listed conn=2
			2.8s   s1 phase phase=connected epoch=2
			4s     s1 command command=1 method=adjust
			4s     s1 done command=1 method=adjust
			5s     s1 down conn=2 class=exited
			5s     s1 released conn=2
			5s     s1 phase phase=pending step=restarting retry=retry class=exited attempts=` + attempts + ` epoch=2 next=5.9s
			5.9s   s1 open conn=3
			5.9s   s1 phase phase=pending step=dialing epoch=3
			10s    -  closing
		`
	}
	plan := withAdjusts(adjustParams{"callTimeout": "2s"})
	runCases(t, "I7", []storyCase{
		{name: "the second failure in a row", plan: plan, want: invariant.Holds, story: story("2")},
		{name: "forgotten with the adjust", plan: plan, want: invariant.Violated, why: "counts 1 failures in a row", story: story("1")},
		// A reconnect is a person's wish, with which the count begins anew.
		{name: "forgotten with a reconnect", plan: plan, want: invariant.Holds, story: strings.ReplaceAll(story("1"), "method=adjust", "method=reconnect")},
		{name: "nothing ended", plan: plan, want: invariant.Inconclusive, story: adjustedUp + "60s - closing"},
	})
}

// What rules deny of a lazy server goes from the catalog while it rests, and what they allow again comes back.
func TestPermittedAtRest(t *testing.T) {
	const resting = `
		0s     s1 open conn=1
		1ms    s1 opened conn=1
		0s     s1 changed rev=1 hash=aa names=read,put,write
		10ms   s1 answered conn=1 method=initialize
		20ms   s1 answered conn=1 method=tools/list
		20ms   s1 listed conn=1 rev=1
		30ms   -  snapshot generation=1 entries=s1:live:2:3:aa:put+read+write
		30ms   s1 phase phase=connected epoch=2
		5s     s1 released conn=1
		5s     -  snapshot generation=2 entries=s1:cached:2:3:aa:put+read+write
		5s     s1 phase phase=pending step=idle epoch=2
		10s    s1 command command=1 method=permit
	`
	const answered = `
		10s    s1 done command=1 method=permit
	`
	lazy := []string{"s1 connect=lazy"}
	runCases(t, "I14", []storyCase{
		{name: "what is denied goes", servers: lazy, plan: withPermits("write"), want: invariant.Holds, story: resting + `
			10s    -  snapshot generation=3 entries=s1:cached:2:2:bb:put+read
		` + answered + "60s - closing"},
		{name: "what is denied stays", servers: lazy, plan: withPermits("write"), want: invariant.Violated, why: "while it rested", story: resting + answered + "60s - closing"},
		{name: "what is allowed again stays away", servers: lazy, plan: withPermits("write", ""), want: invariant.Violated, why: "while it rested", story: resting + `
			10s    -  snapshot generation=3 entries=s1:cached:2:2:bb:put+read
		` + answered + `
			20s    s1 command command=3 method=permit
			20s    s1 done command=3 method=permit
			60s    - closing`},
		{name: "a call wakes it meanwhile", servers: lazy, plan: withPermits("write"), want: invariant.Holds, story: resting + answered + `
			10.01s s1 phase phase=pending step=dialing epoch=3
			11s    s1 open conn=2
			60s    - closing`},
		{name: "nothing is listed", want: invariant.Inconclusive, story: "1s s1 open conn=1"},
	})
}
