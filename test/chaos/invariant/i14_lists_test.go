package invariant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestTheServersTrueLists(t *testing.T) {
	const up = `
		0s     s1 changed rev=1 hash=a names=read,write
		0s     s1 open conn=1
		20ms   - snapshot generation=1 entries=s1:live:2:2:a
		20ms   s1 phase phase=connected epoch=2
	`
	const change = up + `
		10s    s1 changed rev=2 hash=b names=read
		10s    s1 notified conn=1 method=notifications/tools/list_changed
	`
	const reopened = up + `
		1s     s1 notified conn=1 method=notifications/subscriptions/acknowledged
		10s    s1 changed rev=2 hash=b names=read
		12s    s1 notified conn=1 method=notifications/subscriptions/acknowledged
	`
	const disabled = up + `
		10s    s1 command command=1 method=disable
		10s    - snapshot generation=2 entries=s1
		10s    s1 phase phase=disabled warm=true epoch=2
		10s    s1 done command=1 method=disable
		12s    s1 changed rev=2 hash=b names=read
		12s    s1 notified conn=1 method=notifications/tools/list_changed
		20s    s1 command command=2 method=enable
		20s    s1 phase phase=pending step=listing epoch=2
	`
	offers := func(p *scenario.Plan) { p.Servers[0].Offers = true }
	paged := func(p *scenario.Plan) { p.Servers[0].Pages, p.Servers[0].Latency = 2, 100*time.Millisecond }
	const listed = `
			0s     s1 changed rev=1 hash=a names=read
			0s     s1 open conn=1
			10ms   s1 received conn=1 method=tools/list id=1
			20ms   s1 answered conn=1 method=tools/list id=1
			20ms   s1 listed conn=1
			20ms   s1 phase phase=connected epoch=2
		`
	runCases(t, "I14", []storyCase{
		{name: "a change is shown", want: invariant.Holds, story: change + `
			10.06s - snapshot generation=2 entries=s1:live:2:1:b
			60s    - closing
		`},
		{name: "what was announced while it was disabled is shown with its tools", want: invariant.Holds, story: disabled + `
			20.2s  - snapshot generation=3 entries=s1:live:2:1:b
			20.2s  s1 phase phase=connected epoch=2
			60s    - closing
		`},
		{name: "what was announced while it was disabled is shown later", want: invariant.Violated, why: "before it was enabled at 20s", story: disabled + `
			20.2s  - snapshot generation=3 entries=s1:live:2:2:a
			20.2s  s1 phase phase=connected epoch=2
			20.4s  - snapshot generation=4 entries=s1:live:2:1:b
			60s    - closing
		`},
		{name: "what changed before the server agreed once more to send news is shown", want: invariant.Holds, story: reopened + `
			12.06s - snapshot generation=2 entries=s1:live:2:1:b
			60s    - closing
		`},
		{name: "what changed before the server agreed once more to send news is not shown", want: invariant.Violated, why: "it was announced at 12s", story: reopened + `
			60s    - closing
		`},
		{name: "what it agrees to may be resources", want: invariant.Inconclusive, plan: offers, story: reopened + `
			60s    - closing
		`},
		{name: "what nobody announced may be old", want: invariant.Holds, story: up + `
			10s    s1 changed rev=2 hash=b names=read
			60s    - closing
		`},
		{name: "what nobody announced may be new", want: invariant.Holds, story: up + `
			10s    s1 changed rev=2 hash=b names=read
			11s    - snapshot generation=2 entries=s1:live:2:1:b
			60s    - closing
		`},
		{name: "an empty list", want: invariant.Holds, story: `
			0s     s1 changed rev=1 hash=e
			0s     s1 open conn=1
			20ms   s1 phase phase=connected epoch=2
			60s    - closing
		`},
		{name: "a process that says what it offers when it has started", want: invariant.Holds, story: `
			0s     s1 open conn=1
			5ms    s1 changed rev=1 hash=a names=read
			20ms   s1 phase phase=connected epoch=2
			20ms   - snapshot generation=1 entries=s1:live:2:1:a
			60s    - closing
		`},
		{name: "its tools are not in the catalog", want: invariant.Violated, why: "no tools of it", story: `
			0s     s1 open conn=1
			5ms    s1 changed rev=1 hash=a names=read
			20ms   s1 phase phase=connected epoch=2
			60s    - closing
		`},
		{name: "a list that failed is asked for again", want: invariant.Holds, story: up + `
			10s    s1 received conn=1 method=tools/list id=1
			10.1s  s1 answered conn=1 method=tools/list id=1
			10.1s  s1 listed conn=1
			20s    - command method=refresh command=1
			20s    s1 received conn=1 method=tools/list id=2
			20.1s  s1 answered conn=1 method=tools/list id=2 code=-32603
			20.1s  - done command=1 class=rejected
			21.1s  s1 received conn=1 method=tools/list id=3
			21.2s  s1 answered conn=1 method=tools/list id=3
			21.2s  s1 listed conn=1
			300s   - closing
		`},
		{name: "a list that failed is forgotten", want: invariant.Violated, why: "what changed is forgotten", story: up + `
			10s    s1 received conn=1 method=tools/list id=1
			10.1s  s1 answered conn=1 method=tools/list id=1
			10.1s  s1 listed conn=1
			20s    - command method=refresh command=1
			20s    s1 received conn=1 method=tools/list id=2
			20.1s  s1 answered conn=1 method=tools/list id=2 code=-32603
			20.1s  - done command=1 class=rejected
			300s   - closing
		`},
		{name: "nothing was connected", want: invariant.Inconclusive, why: "No server that announced", story: `0s s1 changed rev=1 hash=a names=read`},
		{name: "the last change of a storm is lost", want: invariant.Violated, why: "changed at 10.5s to revision 3", story: change + `
			10.06s - snapshot generation=2 entries=s1:live:2:1:b
			10.5s  s1 changed rev=3 hash=c names=write
			10.5s  s1 notified conn=1 method=notifications/tools/list_changed
			60s    - closing
		`},
		{name: "no change is ever shown", want: invariant.Violated, why: "still showed revision 1", story: change + `
			60s    - closing
		`},
		{name: "connected with the list of the connection before", want: invariant.Violated, why: "before it was dialled", story: `
			0s     s1 changed rev=1 hash=a names=read,write
			5s     s1 changed rev=2 hash=b names=read
			10s    s1 open conn=2
			10s    - snapshot generation=3 entries=s1:live:3:2:a
			10s    s1 phase phase=connected epoch=3
			60s    - closing
		`},
		{name: "connected and no tools in the catalog", want: invariant.Violated, why: "no tools of it", story: `
			0s     s1 changed rev=1 hash=a names=read,write
			0s     s1 open conn=1
			20ms   s1 phase phase=connected epoch=2
			60s    - closing
		`},
		{name: "who offers more is connected without a list that cannot be read", plan: offers, want: invariant.Inconclusive, why: "No server", story: `
			0s     s1 fault-on fault=1 name=wrong-content-type
		` + listed + `
			25ms   s1 fault-off fault=1 name=wrong-content-type
			60s    - closing
		`},
		// Seed 6000661: the bytes of the list drip, and its time runs out.
		{name: "who offers more is connected without a list that is on its way", plan: offers, want: invariant.Inconclusive, why: "No server",
			story: strings.Replace(listed, "answered conn=1 method=tools/list id=1", "fired conn=1 fault=1 name=slow-drip", 1) + `
			60s    - closing
		`},
		{name: "who offers more is connected without the list that was read", plan: offers, want: invariant.Violated, why: "no tools of it",
			story: listed + `
			60s    - closing
		`},
		{name: "only the first page", want: invariant.Violated, why: "a list that the server never had", story: `
			0s     s1 changed rev=1 hash=a names=read,write
			0s     s1 open conn=1
			20ms   - snapshot generation=1 entries=s1:live:2:1:half
			20ms   s1 phase phase=connected epoch=2
			60s    - closing
		`},
		{name: "the list changes between two pages, and nobody says so", plan: paged, want: invariant.Holds, story: `
			0s     s1 changed rev=1 hash=a names=read,write
			1s     s1 open conn=1
			1.2s   s1 changed rev=2 hash=b names=put,read,write
			1.4s   - snapshot generation=1 entries=s1:live:2:3:ab
			1.4s   s1 phase phase=connected epoch=2
			60s    - closing
		`},
		{name: "the list changed before its pages were read", plan: paged, want: invariant.Violated, why: "a list that the server never had", story: `
			0s     s1 changed rev=1 hash=a names=read,write
			0.5s   s1 changed rev=2 hash=b names=put,read,write
			1s     s1 open conn=1
			1.4s   - snapshot generation=1 entries=s1:live:2:3:ab
			1.4s   s1 phase phase=connected epoch=2
			60s    - closing
		`},
		{name: "pages of two states are still shown when the change was announced", plan: paged, want: invariant.Violated, why: "a list that the server never had", story: `
			0s     s1 changed rev=1 hash=a names=read,write
			1s     s1 open conn=1
			1.2s   s1 changed rev=2 hash=b names=put,read,write
			1.4s   - snapshot generation=1 entries=s1:live:2:3:ab
			1.4s   s1 phase phase=connected epoch=2
			2s     s1 notified conn=1 method=notifications/tools/list_changed
			60s    - closing
		`},
		{name: "a server whose answers are held up is listed later", want: invariant.Holds, story: change + `
			9s     s1 fault-on fault=1 name=stop
			40s    s1 fault-off fault=1 name=stop
			60s    - closing
		`},
	})
}
