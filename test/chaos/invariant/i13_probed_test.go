package invariant_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestParkedServersAreProbed(t *testing.T) {
	const ms = time.Millisecond
	fails := []time.Duration{500 * ms, 900 * ms, 3000 * ms, 300 * ms, 15000 * ms}
	parked := crashLoop(0, fails...)
	probed := crashLoop(0, append(fails, 300*time.Second, 290*time.Second)...)
	oneSlot := func(p *scenario.Plan) { p.Limits.Processes, p.Limits.Hold = 1, time.Hour }
	runCases(t, "I13", []storyCase{
		{name: "probed for ever", want: invariant.Holds, story: probed + `
			700s   - closing
		`},
		{name: "the run ends before the probe", want: invariant.Inconclusive, why: "No server was parked", story: parked + `
			60s    - closing
		`},
		{name: "never parked", want: invariant.Inconclusive, why: "No server was parked", story: `0s s1 open conn=1`},
		{name: "given up after the park", want: invariant.Violated, why: "had to be probed by 5m49", story: parked + `
			900s   - closing
		`},
		{name: "given up after two probes", want: invariant.Violated, why: "the manager has given it up", story: probed + `
			2000s  - closing
		`},
		{name: "the probe of a healed server does not connect it", want: invariant.Violated, why: "no probe had connected it", story: parked + `
			20s    s1 phase phase=failed retry=parked epoch=6 next=330s
			80s    - heal
			330s   s1 phase phase=pending step=dialing epoch=7
			330s   s1 open conn=7
			2000s  - closing
		`},
		// Seed 20860557: the gate had no slot until the owner had taken the server away.
		{name: "removed before there is a slot", servers: []string{"s1", "s2"}, plan: oneSlot, want: invariant.Holds, story: parked + `
			300s   s2 open conn=1
			900s   s1 command command=1 method=remove
			900s   s1 done command=1 method=remove
			1000s  s2 released conn=1
			2000s  - closing
		`},
		{name: "not removed before there is a slot", servers: []string{"s1", "s2"}, plan: oneSlot, want: invariant.Violated,
			why: "the manager has given it up", story: parked + `
			300s   s2 open conn=1
			1000s  s2 released conn=1
			2000s  - closing
		`},
		// Seed 20773429: a refused call parked the server until its owner had signed in; a millisecond later its connection ended,
		// and the next failure came after the sign-in.
		{name: "credentials are asked for before the connection ends", want: invariant.Holds, story: parked + `
			320s   s1 phase phase=pending step=dialing epoch=20
			320s   s1 open conn=20
			320s   s1 opened conn=20
			321s   s1 phase phase=needs-auth class=unauthorized epoch=20
			321.1s s1 down conn=20 class=network
			321.1s s1 released conn=20
			900s   s1 phase phase=pending step=dialing epoch=21
			900s   s1 open conn=21
			900s   s1 down conn=21 class=network
			900s   s1 released conn=21
			900s   s1 phase phase=failed class=network retry=parked next=1200s epoch=21
			910s   - closing
		`},
		{name: "disabled while it is parked", want: invariant.Inconclusive, story: parked + `
			21s    s1 command command=1 method=disable
			21s    s1 done command=1 method=disable
			2000s  - closing
		`},
	})
}
