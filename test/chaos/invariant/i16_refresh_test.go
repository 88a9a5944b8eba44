package invariant_test

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A refusal of the list is the answer to a refresh. One that waits until a later list comes through is late, unless a fault may have held up the
// refusal.
func TestARefusedRefresh(t *testing.T) {
	const refused = `
		0s     s1 open conn=1
		0s     s1 phase phase=pending step=dialing epoch=2
		20ms   s1 phase phase=connected epoch=2
		5s     s1 command command=1 method=refresh
		5s     s1 received conn=1 method=tools/list id=7
		5.2s   s1 answered conn=1 method=tools/list id=7 code=-32603
	`
	const later = `
		6.2s   s1 received conn=1 method=tools/list id=8
		6.3s   s1 answered conn=1 method=tools/list id=8
		6.3s   s1 done command=1 method=refresh
		60s    -  closing
	`
	const atOnce = `
		5.2s   s1 done command=1 method=refresh
		60s    -  closing
	`
	runCases(t, "I16", []storyCase{
		{name: "no command", want: invariant.Inconclusive, story: "0s s2 open conn=1"},
		{name: "answered with the refusal", want: invariant.Holds, story: refused + atOnce},
		{name: "answered with a later list", want: invariant.Violated, why: "that was the answer", story: refused + later},
		{name: "never answered", want: invariant.Violated, why: "that was the answer", story: refused + `
			60s    -  closing`},
		{name: "the refusal came late through the network", want: invariant.Holds, story: strings.Replace(refused, "5s     s1 command", "4s s1 fault-on fault=1 name=slow-drip\n7s s1 fault-off fault=1 name=slow-drip\n5s s1 command", 1) + later},
		{name: "the list is read again because a call was refused for its headers", want: invariant.Holds, story: refused + later,
			plan: func(p *scenario.Plan) { p.Servers[0].Headers = true }},
		{name: "the credentials are refused and renewed, as on seed 20995641", want: invariant.Holds, story: strings.Replace(refused, "-32603", "401", 1) + later},
		{name: "the list is refused with another status", want: invariant.Violated, why: "that was the answer", story: strings.Replace(refused, "-32603", "403", 1) + later},
		{name: "the connection ended", want: invariant.Holds, story: refused + `
			5.21s  s1 phase phase=pending step=restarting epoch=2 class=exited
			6s     s1 phase phase=connected epoch=3
			6.3s   s1 done command=1 method=refresh
			60s    -  closing`},
	})
}
