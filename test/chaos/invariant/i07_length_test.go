package invariant_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// How long an attempt may last at a server that sends nothing.
func TestLengthsOfAttempts(t *testing.T) {
	const once = `
		0s     s1 phase phase=pending step=queued epoch=1
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		10ms   s1 phase phase=pending step=handshaking epoch=2
	`
	const failed = once + `
		30s    s1 phase phase=failed epoch=2 class=timeout text=silent
		30s    s1 released conn=1
		30s    s1 phase phase=failed epoch=2 class=timeout text=silent retry=retry next=30500ms attempts=1
		30.5s  s1 phase phase=pending step=dialing epoch=3
		30.5s  s1 open conn=2
		30.5s  s1 phase phase=pending step=handshaking epoch=3
	`
	const over = `
		300s   - closing
	`
	own := func(p *scenario.Plan) {
		p.Servers[0].NoConnectTimeout, p.Servers[0].ConnectTimeout = true, 5*time.Minute
	}
	runCases(t, "I7", []storyCase{
		{name: "nothing is tried", want: invariant.Inconclusive, why: "ended", story: `0s s2 phase phase=disabled`},
		{name: "twice as long the second time", plan: own, want: invariant.Holds, story: failed + `
		90.5s  s1 phase phase=failed epoch=3 class=timeout text=silent
		90.5s  s1 released conn=2
		91s    - closing
		`},
		{name: "no longer the second time", plan: own, want: invariant.Violated, why: "1m0s had to pass", story: failed + `
		60.5s  s1 phase phase=failed epoch=3 class=timeout text=silent
		60.5s  s1 released conn=2
		61s    - closing
		`},
		{name: "never given up", plan: own, want: invariant.Violated, why: "had to be given up when 30s", story: once + over},
		{name: "a spec is exact", want: invariant.Violated, why: "had to be given up when 30s", story: failed + `
		90.5s  s1 phase phase=failed epoch=3 class=timeout text=silent
		90.5s  s1 released conn=2
		91s    - closing
		`},
	})
}
