package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestSubscriptionsOutliveConnections: one-refusal-ends-resubscribing, where one resource that was gone kept the others from their turn.
func TestSubscriptionsOutliveConnections(t *testing.T) {
	offers := func(p *scenario.Plan) { p.Servers[0].Offers = true }
	const before = `
		0s     s1 open conn=1
		20ms   s1 phase phase=connected epoch=2
		1s     s1 read call=c1 method=subscribe
		1s     s1 answered conn=1 method=resources/subscribe id=5
		1s     s1 read-end call=c1 method=subscribe
	`
	const anew = before + `
		10s    s1 down conn=1
		10s    s1 released conn=1
		10s    s1 phase phase=failed epoch=2 retry=retry-at
		11s    s1 open conn=2
		11.1s  s1 phase phase=connected epoch=3
	`
	runCases(t, "I20", []storyCase{
		{name: "it is subscribed to again", plan: offers, want: invariant.Holds, story: anew + `
			11.2s  s1 answered conn=2 method=resources/subscribe id=3 code=-32002
			11.3s  s1 answered conn=2 method=resources/subscribe id=4
			60s    - closing
		`},
		{name: "nobody subscribes again behind a refusal", plan: offers, want: invariant.Violated,
			why: "had agreed to no subscription on connection 2 by", story: anew + `
			11.2s  s1 answered conn=2 method=resources/subscribe id=3 code=-32002
			60s    - closing
		`},
		{name: "it was ended meanwhile", plan: offers, want: invariant.Holds, story: anew + `
			11.2s  s1 read call=c2 method=unsubscribe
			11.3s  s1 read-end call=c2 method=unsubscribe
			60s    - closing
		`},
		{name: "the connection ends before it can be", plan: offers, want: invariant.Holds, story: anew + `
			11.2s  s1 down conn=2
			11.2s  s1 phase phase=failed epoch=3 retry=retry-at
			60s    - closing
		`},
		{name: "it was ended while it was asked for", plan: offers, want: invariant.Holds, story: `
			0s     s1 open conn=1
			20ms   s1 phase phase=connected epoch=2
			1s     s1 read call=c1 method=subscribe
			1s     s1 read call=c2 method=unsubscribe
			1s     s1 read-end call=c2 method=unsubscribe
			1.01s  s1 read-end call=c1 method=subscribe
			10s    s1 down conn=1
			10s    s1 released conn=1
			10s    s1 phase phase=failed epoch=2 retry=retry-at
			11s    s1 open conn=2
			11.1s  s1 phase phase=connected epoch=3
			60s    - closing
		`},
		{name: "nobody watches", plan: offers, want: invariant.Inconclusive, why: "nothing was read", story: `0s s1 open conn=1`},
		{name: "the server was removed and added", plan: offers, want: invariant.Holds, story: before + `
			10s    s1 command command=1 method=remove
			10s    s1 done command=1 method=remove
			10s    s1 released conn=1
			10s    s1 removed
			11s    s1 command command=2 method=add
			11s    s1 open conn=2
			11.1s  s1 phase phase=connected epoch=3
			11.1s  s1 done command=2 method=add
			60s    - closing
		`},
	})
}

// TestStreamsAreOpenedAgain: calm-stream-waits-long, where the pauses of an hour ago counted still.
func TestStreamsAreOpenedAgain(t *testing.T) {
	modern := func(p *scenario.Plan) { p.Servers[0].Kind, p.Servers[0].Era = messages.HTTP, messages.EraModern }
	const up = `
		0s     s1 open conn=1
		0s     s1 changed rev=1 hash=a names=read
		20ms   - snapshot generation=1 entries=s1:live:2:1:a
		20ms   s1 phase phase=connected epoch=2
		30ms   s1 received conn=1 method=subscriptions/listen id=2
		40ms   s1 notified conn=1 method=notifications/subscriptions/acknowledged
	`
	const cut = up + `
		90s    s1 fired conn=1 name=cut-stream fault=1
	`
	runCases(t, "I14", []storyCase{
		{name: "within a second", plan: modern, want: invariant.Holds, story: cut + `
			90.9s  s1 received conn=1 method=subscriptions/listen id=3
			120s   - closing
		`},
		{name: "after eight", plan: modern, want: invariant.Violated, why: "was cut at 1m30s", story: cut + `
			98s    s1 received conn=1 method=subscriptions/listen id=3
			120s   - closing
		`},
		{name: "never", plan: modern, want: invariant.Violated, why: "was cut at 1m30s", story: cut + `
			200s   - closing
		`},
		{name: "after a short life", plan: modern, want: invariant.Holds, story: up + `
			30s    s1 fired conn=1 name=cut-stream fault=1
			38s    s1 received conn=1 method=subscriptions/listen id=3
			120s   - closing
		`},
		{name: "no server", want: invariant.Inconclusive, story: `0s s1 open conn=1`},
	})
}
