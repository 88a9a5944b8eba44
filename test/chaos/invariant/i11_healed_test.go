package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

func TestConnectedAfterTheHeal(t *testing.T) {
	const broken = `
		0s     s1 phase phase=pending step=restarting epoch=2 retry=retry class=exited next=90s
		80s    - heal
	`
	runCases(t, "I11", []storyCase{
		{name: "connected by the next attempt", want: invariant.Holds, story: broken + `
			90s    s1 phase phase=connected epoch=3
			300s   - closing
		`},
		{name: "connected all along", want: invariant.Holds, story: `
			0s     s1 phase phase=connected epoch=3
			80s    - heal
			300s   - closing
		`},
		{name: "parked, and connected by a probe", want: invariant.Holds, story: `
			0s     s1 phase phase=failed retry=parked epoch=3 next=340s
			80s    - heal
			340s   s1 phase phase=connected epoch=4
			900s   - closing
		`},
		{name: "nobody wants it", servers: []string{"s1 disabled=true"}, want: invariant.Inconclusive, why: "not healed", story: `
			0s     s1 phase phase=disabled
			80s    - heal
			900s   - closing
		`},
		{name: "it needs credentials", want: invariant.Inconclusive, story: `
			0s     s1 phase phase=needs-auth
			80s    - heal
			900s   - closing
		`},
		{name: "the run ends too soon", want: invariant.Inconclusive, why: "has until 2m55s", story: broken + `
			100s   - closing
		`},
		{name: "given up", want: invariant.Violated, why: "to be connected by 2m55s (the cap of the interval, 1m0s, and 35s for the attempts)", story: broken + `
			300s   - closing
		`},
		{name: "connected too late", want: invariant.Violated, why: "to be connected by 2m55s", story: broken + `
			280s   s1 phase phase=connected epoch=3
			300s   - closing
		`},
		{name: "parked and not probed", want: invariant.Violated, why: "the interval of the probes", story: `
			0s     s1 phase phase=failed retry=parked epoch=3 next=340s
			80s    - heal
			900s   - closing
		`},
		// That every server is disabled while the manager closes is not what it was.
		{name: "what it was before Close", want: invariant.Violated, why: "At 7m25s it was pending (queued) since 2m30s, after 3 failed attempts " +
			"(no slot), and its next attempt was due at 4m0s. It had not connected when the manager was closed at 15m0s.", story: `
			0s     s1 phase phase=failed retry=parked epoch=3 next=340s
			80s    - heal
			150s   s1 phase phase=pending step=queued attempts=3 text=no_slot next=240s
			900s   - closing
			900s   s1 phase phase=disabled
		`},
		{name: "connected and dropped for no reason", want: invariant.Violated, why: "connected at 1m30s. It did not stay so, though nothing broke any more: when the manager was closed at 5m0s it was pending (restarting) since 4m50s", story: broken + `
			90s    s1 phase phase=connected epoch=3
			290s   s1 phase phase=pending step=restarting epoch=3
			300s   - closing
		`},
	})
}
