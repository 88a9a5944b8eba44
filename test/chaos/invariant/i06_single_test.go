package invariant_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// manyDials is n servers that are dialled one after the other and answer after a time (0: never).
func manyDials(n int, gap, answer time.Duration) (servers []string, story string) {
	var b strings.Builder
	for i := range n {
		name := fmt.Sprintf("s%03d", i)
		servers = append(servers, name)
		begin := time.Second + time.Duration(i)*gap
		fmt.Fprintf(&b, "%v %s open conn=1\n", begin, name)
		if answer > 0 {
			fmt.Fprintf(&b, "%v %s answered conn=1 method=initialize\n", begin+answer, name)
		}
	}
	return servers, b.String() + "\n99s - closing\n"
}

func TestOneConnectionAndTheGate(t *testing.T) {
	eight, eightStory := manyDials(8, 0, time.Second)
	nine, nineStory := manyDials(9, 0, time.Second)
	silent := func(p *scenario.Plan) { p.Limits.UnansweredFactor = 2 }
	realTier := func(p *scenario.Plan) { p.Tier = scenario.Real }
	crowd, crowdStory := manyDials(17, 2*time.Second, 0)
	runCases(t, "I6", []storyCase{
		{name: "one after the other", want: invariant.Holds, story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			1s     s1 down conn=1
			1.02s  s1 released conn=1
			2s     s1 phase phase=pending step=dialing epoch=2
			2s     s1 open conn=2
			3s     s1 refused conn=2
			5s     s1 phase phase=pending step=dialing epoch=3
			5s     s1 open conn=3
		`},
		{name: "opened in the very instant of the release", want: invariant.Holds, story: `
			0s     s1 open conn=1
			1s     s1 released conn=1
			1s     s1 open conn=2
		`},
		{name: "a second opening after the question about the era", want: invariant.Holds, story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			10ms   s1 received conn=1 method=server/discover
			10ms   s1 down conn=1 class=exited
			30ms   s1 released conn=1
			30ms   s1 open conn=2
			50ms   s1 answered conn=2 method=initialize
		`},
		{name: "a second opening by a process that starts slowly", plan: realTier, want: invariant.Holds, story: `
			100ms  s1 phase phase=pending step=dialing epoch=1
			300ms  s1 open conn=1
			310ms  s1 received conn=1 method=server/discover
			320ms  s1 down conn=1 class=exited
			350ms  s1 released conn=1
			1.486s s1 open conn=2
			1.5s   s1 answered conn=2 method=initialize
			9s     - house house=0,0,0,120 text=after_close
		`},
		// A busy machine in TestEveryFault of package live: the server has seen the dial before the manager published the attempt.
		{name: "a second opening in an attempt that is published late", plan: realTier, want: invariant.Holds, story: `
			300ms  s1 open conn=1
			305ms  s1 phase phase=pending step=dialing epoch=1
			310ms  s1 received conn=1 method=server/discover
			320ms  s1 down conn=1 class=exited
			321ms  s1 released conn=1
			330ms  s1 open conn=2
			340ms  s1 answered conn=2 method=initialize
			9s     - house house=0,0,0,120 text=after_close
		`},
		{name: "a third opening in an attempt that is published late", plan: realTier, want: invariant.Violated, why: "the manager had begun 1 attempts", story: `
			300ms  s1 open conn=1
			305ms  s1 phase phase=pending step=dialing epoch=1
			310ms  s1 received conn=1 method=server/discover
			320ms  s1 down conn=1 class=exited
			321ms  s1 released conn=1
			330ms  s1 open conn=2
			340ms  s1 received conn=2 method=initialize
			350ms  s1 down conn=2 class=exited
			351ms  s1 released conn=2
			360ms  s1 open conn=3
			9s     - house house=0,0,0,120 text=after_close
		`},
		{name: "as many as there are slots", servers: eight, want: invariant.Holds, story: eightStory},
		{name: "nothing was dialled", want: invariant.Inconclusive, why: "No server was dialled", story: `1s s1 call call=c1`},
		{name: "a reconnect does not wait for the old process", want: invariant.Violated, why: "while connection 1 was still there", story: `
			0s     s1 open conn=1
			2s     s1 open conn=2
			2.5s   s1 released conn=1
		`},
		{name: "the old process is never ended", want: invariant.Violated, why: "never released", story: `
			0s     s1 open conn=1
			2s     s1 open conn=2
		`},
		{name: "the gate lets one more through", servers: nine, want: invariant.Violated, why: "9 starts of the processes held a slot",
			story: nineStory},
		{name: "silent processes pile up", servers: crowd, plan: silent, want: invariant.Violated,
			why: "17 processes had neither answered", story: crowdStory},
		{name: "two dials in one epoch", want: invariant.Violated, why: "the manager had begun 1 attempts", story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			1s     s1 refused conn=1 class=network
			2s     s1 open conn=2
		`},
		{name: "a second dial of a slow machine without the question", plan: realTier, want: invariant.Violated,
			why: "the manager had begun 1 attempts", story: `
			100ms  s1 phase phase=pending step=dialing epoch=1
			300ms  s1 open conn=1
			310ms  s1 received conn=1 method=initialize
			320ms  s1 down conn=1 class=exited
			350ms  s1 released conn=1
			1.486s s1 open conn=2
		`},
		{name: "a second dial of a slow machine that is not at once", plan: realTier, want: invariant.Violated,
			why: "the manager had begun 1 attempts", story: `
			100ms  s1 phase phase=pending step=dialing epoch=1
			300ms  s1 open conn=1
			310ms  s1 received conn=1 method=server/discover
			320ms  s1 down conn=1 class=exited
			350ms  s1 released conn=1
			6s     s1 open conn=2
		`},
		{name: "a third opening", want: invariant.Violated, why: "dialled at 60ms for the 2. time", story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			10ms   s1 received conn=1 method=server/discover
			10ms   s1 down conn=1 class=exited
			30ms   s1 released conn=1
			30ms   s1 open conn=2
			40ms   s1 received conn=2 method=initialize
			50ms   s1 down conn=2 class=exited
			60ms   s1 released conn=2
			60ms   s1 open conn=3
		`},
	})
}
