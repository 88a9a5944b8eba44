package invariant_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// crashLoop is a server that is dialled and dies at once, after each of the gaps. It is connected for so long in between.
func crashLoop(lives time.Duration, gaps ...time.Duration) string {
	var b strings.Builder
	t := time.Duration(0)
	for i := 0; i <= len(gaps); i++ {
		n := i + 1
		fmt.Fprintf(&b, "%v s1 phase phase=pending step=dialing epoch=%d\n%v s1 open conn=%d\n", t, n, t, n)
		if lives > 0 {
			fmt.Fprintf(&b, "%v s1 answered conn=%d method=initialize\n%v s1 answered conn=%d method=tools/list\n%v s1 listed conn=%d\n", t, n, t, n, t, n)
			fmt.Fprintf(&b, "%v s1 phase phase=connected epoch=%d\n", t, n)
		}
		t += lives + 10*time.Millisecond
		fmt.Fprintf(&b, "%v s1 down conn=%d class=exited\n%v s1 released conn=%d\n", t, n, t, n)
		if i < len(gaps) {
			t += gaps[i]
		}
	}
	return b.String()
}

// manyRestarts is n servers that die once, at one moment, and are to come back after a delay each.
func manyRestarts(n int, delay func(i int) time.Duration) (servers []string, story string) {
	var b strings.Builder
	for i := range n {
		s := fmt.Sprintf("s%02d", i)
		servers = append(servers, s)
		fmt.Fprintf(&b, "0s %s open conn=1\n1s %s down conn=1 class=exited\n1s %s released conn=1\n", s, s, s)
		fmt.Fprintf(&b, "1s %s phase phase=failed retry=retry class=exited attempts=1 epoch=1 next=%v\n", s, time.Second+delay(i))
	}
	return servers, b.String()
}

func TestTheGapsBetweenAttempts(t *testing.T) {
	const ms = time.Millisecond
	const s = time.Second
	spread, spreadStory := manyRestarts(40, func(i int) time.Duration { return 200*ms + time.Duration(i)*800*ms/40 })
	alike, alikeStory := manyRestarts(40, func(int) time.Duration { return 600 * ms })
	latest, latestStory := manyRestarts(40, func(i int) time.Duration { return s - time.Duration(i)*ms })
	lazy := func(p *scenario.Plan) { p.Servers[0].Connect = "lazy" }
	parked := crashLoop(0, 500*ms, 900*ms, 3*s, 300*ms, 15*s) + `
			19.76s s1 phase phase=failed retry=parked class=exited attempts=6 epoch=6 next=310s
	`
	one := func(next string) string {
		return `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			1s     s1 down conn=1 class=exited
			1s     s1 released conn=1
			1s     s1 phase phase=failed retry=retry class=exited attempts=1 epoch=1 next=1.5s
		` + next
	}
	// Forty servers lack resources of the machine; the owner's command clears the count of each, and short delays follow.
	var cleared strings.Builder
	for i := range 40 {
		s := fmt.Sprintf("s%02d", i)
		lack := func(n int, at time.Duration, retry string) {
			fmt.Fprintf(&cleared, "%v %s phase phase=pending step=dialing epoch=%d\n%v %s open conn=%d\n", at, s, n, at, s, n)
			fmt.Fprintf(&cleared, "%v %s down conn=%d class=exhausted\n%v %s released conn=%d\n", at, s, n, at, s, n)
			fmt.Fprintf(&cleared, "%v %s phase phase=failed class=exhausted epoch=%d %s\n", at, s, n, retry)
		}
		lack(1, 0, "")
		lack(2, time.Second, "")
		lack(3, 3*time.Second, "")
		fmt.Fprintf(&cleared, "7s %s command command=%d method=reconnect\n7s %s done command=%d method=reconnect\n", s, i+1, s, i+1)
		lack(4, 7500*ms, fmt.Sprintf("retry=retry next=%v", 7700*ms+time.Duration(i)*800*ms/40))
	}
	throttled := func(method string) string {
		return `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			0s     s1 opened conn=1
			10ms   s1 answered conn=1 method=initialize id=1
			20ms   s1 answered conn=1 method=` + method + ` id=3 code=503 retryAfter=5s
			20ms   s1 listed conn=1 rev=1
			20ms   s1 phase phase=connected epoch=1
			2s     s1 down conn=1 class=network
			2s     s1 released conn=1
			2s     s1 phase phase=pending step=restarting retry=retry class=network attempts=1 epoch=1 next=2.3s
			2.3s   s1 phase phase=pending step=dialing epoch=2
			2.3s   s1 open conn=2
		`
	}
	runCases(t, "I7", []storyCase{
		{name: "an owner's command clears what the machine lacked", servers: spread, want: invariant.Holds, story: cleared.String() + "7.6s - closing\n"},
		{name: "of two refusals in one instant the demand counts", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			0s     s1 opened conn=1
			1s     s1 received conn=1 method=ping id=3
			1s     s1 answered conn=1 code=429 retryAfter=20s
			1s     s1 answered conn=1 method=server/discover id=1 code=-32601
			1s     s1 phase phase=failed class=throttled epoch=1
			1s     s1 released conn=1
			1s     s1 phase phase=failed retry=retry class=throttled attempts=1 epoch=1 next=22s
			22s    s1 phase phase=pending step=dialing epoch=2
			22s    s1 open conn=2
		`},
		{name: "a call is throttled in the instant of the list, as on seed 4004884", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: throttled("tools/call")},
		{name: "the list is throttled", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "the restart policy asks for", story: throttled("tools/list")},
		{name: "refused once, and asked again with other credentials", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			0s     s1 opened conn=1
			0s     s1 received conn=1 method=server/discover id=1
			0s     s1 received conn=1 method=server/discover id=2
			0s     s1 answered conn=1 method=server/discover id=1 code=401
			5s     s1 phase phase=failed class=timeout epoch=1
			5s     s1 released conn=1
			5s     s1 phase phase=failed retry=retry class=timeout attempts=1 epoch=1 next=5.4s
			5.4s   s1 phase phase=pending step=dialing epoch=2
			5.4s   s1 open conn=2
		`},
		{name: "five failures and a park", want: invariant.Holds, story: crashLoop(0, 500*ms, 900*ms, 3*s, 300*ms, 15*s, 300*s, 280*s)},
		{name: "stable lives", want: invariant.Holds, story: crashLoop(61*s, 100*ms, 400*ms, 500*ms, 20*ms, 0, 300*ms, 200*ms)},
		{name: "nothing ended", want: invariant.Inconclusive, why: "No attempt or connection ended", story: `0s s1 open conn=1`},
		{name: "a spin", want: invariant.Violated, why: "after 200ms at the earliest", story: crashLoop(0, 50*ms)},
		{name: "the interval does not end at a cap", want: invariant.Violated, why: "dialled at 2m11.58s", servers: []string{"s1 kind=http"},
			plan: func(p *scenario.Plan) { p.Policy.NetworkPark = 99 }, story: crashLoop(0, 500*ms, s, 2*s, 4*s, 8*s, 16*s, 10*s, 90*s)},
		{name: "the count starts anew with each connection", want: invariant.Violated, why: "failure 6 in a row at least", story: crashLoop(20*s, 500*ms, 500*ms,
			500*ms, 500*ms, 500*ms, 500*ms, 500*ms)},
		{name: "a stable life does not clear the count", want: invariant.Violated, why: "due at 1m1.51s", story: crashLoop(61*s, 14*s)},
		{name: "parked for too long", want: invariant.Violated, why: "due at", story: crashLoop(0, 500*ms, 900*ms, 3*s, 300*ms, 15*s, 400*s)},
		{name: "never parked", want: invariant.Violated, why: "is parked then", story: crashLoop(0, 500*ms, 900*ms, 3*s, 300*ms, 15*s, 30*s)},
		{name: "given up after some failures", want: invariant.Violated, why: "never dialled again", story: crashLoop(0, 500*ms, 900*ms) + `
			600s - closing
		`},
		{name: "Retry-After is respected", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: `
			0s     s1 open conn=1
			1s     s1 refused conn=1 class=throttled retryAfter=30s
			32s    s1 open conn=2
		`},
		{name: "Retry-After is ignored", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "asked to be left alone for 30s", story: `
			0s     s1 open conn=1
			1s     s1 answered conn=1 method=initialize code=429 retryAfter=30s
			1s     s1 released conn=1
			1.4s   s1 open conn=2
		`},
		{name: "Retry-After is respected though the other question is answered later", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			0s     s1 received conn=1 method=server/discover id=1
			1s     s1 received conn=1 method=initialize id=2
			1s     s1 answered conn=1 method=initialize id=2 code=429 retryAfter=5s
			1.1s   s1 answered conn=1 method=server/discover id=1 code=-32601
			1.1s   s1 phase phase=failed retry=retry class=throttled attempts=1 epoch=1 next=6.2s
			1.1s   s1 released conn=1
			6.2s   s1 open conn=2
		`},
		{name: "Retry-After is ignored because the other question is answered later", servers: []string{"s1 kind=http"}, want: invariant.Violated,
			why: "asks for 5s to 5.5s", story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			0s     s1 received conn=1 method=server/discover id=1
			1s     s1 received conn=1 method=initialize id=2
			1s     s1 answered conn=1 method=initialize id=2 code=429 retryAfter=5s
			1.1s   s1 answered conn=1 method=server/discover id=1 code=-32601
			1.1s   s1 phase phase=failed retry=retry class=throttled attempts=1 epoch=1 next=1.5s
			1.1s   s1 released conn=1
		`},
		{name: "Retry-After is stretched", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "due at 34s", story: `
			0s     s1 open conn=1
			1s     s1 refused conn=1 class=throttled retryAfter=30s
			50s    s1 open conn=2
		`},
		{name: "bad configuration is tried again", want: invariant.Violated, why: "never tried again by itself", story: `
			0s     s1 open conn=1
			0s     s1 refused conn=1 class=config
			2s     s1 open conn=2
		`},
		{name: "a missing binary is tried again", want: invariant.Violated, why: "ended at 0s with missing", story: `
			0s     s1 open conn=1
			0s     s1 refused conn=1 class=missing
			500ms  s1 open conn=2
		`},
		{name: "a missing binary of what listed its tools and ended in one moment may be tried again", want: invariant.Holds, story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			10ms   s1 opened conn=1
			20ms   s1 answered conn=1 method=tools/list
			20ms   s1 down conn=1 class=exited
			20ms   s1 released conn=1
			20ms   s1 phase phase=pending step=restarting retry=retry class=exited attempts=1 epoch=1 next=500ms
			500ms  s1 open conn=2
			500ms  s1 refused conn=2 class=missing
			500ms  s1 phase phase=failed retry=retry class=missing attempts=2 epoch=2 next=2s
			2s     s1 open conn=3
			2.1s   s1 opened conn=3
			90s    - closing
		`},
		{name: "a missing binary of what was connected before may be an upgrade", want: invariant.Holds,
			story: crashLoop(20*s) + `
			21s    s1 open conn=2
			21s    s1 refused conn=2 class=missing
			22s    s1 open conn=3
		`},
		{name: "a rejected token is tried again", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "with unauthorized", story: `
			0s     s1 open conn=1
			0s     s1 answered conn=1 method=initialize id=1 code=401
			0s     s1 released conn=1
			400ms  s1 open conn=2
		`},
		{name: "a person asks", want: invariant.Inconclusive, story: crashLoop(0) + `
			11ms   s1 command command=1 method=reconnect
			12ms   s1 open conn=2
			13ms   s1 done command=1 method=reconnect
		`},
		{name: "the machine wakes up", want: invariant.Holds, story: crashLoop(0, 500*ms, 900*ms, 3*s, 300*ms, 15*s) + `
			60s    - command command=1 method=wake
			60s    - done command=1 method=wake
			64s    s1 open conn=7
		`},
		{name: "the machine wakes up, and a server that waits is dialled in that instant", want: invariant.Violated, why: "are to be tried again spread over 5s", story: parked + `
			60s    - command command=1 method=wake
			60s    - done command=1 method=wake
			60s    s1 open conn=7
		`},
		{name: "it is dialled a little later", want: invariant.Holds, story: parked + `
			60s    - command command=1 method=wake
			60s    - done command=1 method=wake
			60.001s s1 open conn=7
		`},
		{name: "the machine wakes up, and a server that waits is left to its timer", want: invariant.Violated, why: "it had to be brought forward to 1m5s", story: parked + `
			60s    - command command=1 method=wake
			60s    - done command=1 method=wake
			90s    - closing
		`},
		{name: "the machine wakes up, and the run ends before a server that waits is due", want: invariant.Holds, story: parked + `
			60s    - command command=1 method=wake
			60s    - done command=1 method=wake
			65s    - closing
		`},
		{name: "the machine wakes up in the instant in which a server is due", want: invariant.Holds, story: one(`
			1.5s   - command command=1 method=wake
			1.5s   - done command=1 method=wake
			1.5s   s1 open conn=2
		`)},
		{name: "the machine wakes up twice, as on seed 20993077", want: invariant.Holds, story: crashLoop(0, 500*ms, 900*ms, 3*s, 300*ms, 15*s) + `
			60s    - command command=1 method=wake
			60s    - done command=1 method=wake
			60.008s s1 open conn=7
			60.02s - command command=2 method=wake
			60.02s - done command=2 method=wake
		`},
		{name: "it wakes up a moment after the dial", want: invariant.Violated, why: "parked", story: crashLoop(0, 500*ms, 900*ms, 3*s, 300*ms, 15*s) + `
			60.008s s1 open conn=7
			60.02s - command command=2 method=wake
			60.02s - done command=2 method=wake
		`},
		{name: "a machine that is exhausted parks nobody", want: invariant.Holds, story: strings.ReplaceAll(crashLoop(0, 500*ms, s, 2*s, 4*s, 8*s, 16*s, 20*s),
			"class=exited", "class=exhausted")},
		{name: "a server that rested in the instant of its dial", plan: lazy, want: invariant.Holds, story: `
			1s     s1 phase phase=pending step=idle
			1s     s1 phase phase=pending step=dialing epoch=1
			1s     s1 open conn=1
			1s     s1 down conn=1 class=exited
			1s     s1 released conn=1
			1s     s1 phase phase=failed retry=retry class=exited attempts=1 epoch=1 next=1.5s
			1.5s   s1 phase phase=pending step=dialing epoch=2
			1.5s   s1 open conn=2
			1.5s   s1 down conn=2 class=exited
			1.5s   s1 released conn=2
			1.5s   s1 phase phase=failed retry=retry class=exited attempts=2 epoch=2 next=2.5s
			2.5s   s1 phase phase=pending step=dialing epoch=3
			2.5s   s1 open conn=3
			2.5s   s1 down conn=3 class=exited
			2.5s   s1 released conn=3
			2.5s   s1 phase phase=failed retry=retry class=exited attempts=3 epoch=3 next=4.5s
		`},
		{name: "a server that rested in the instant of its dial, counted wrongly", plan: lazy, want: invariant.Violated, why: "counts 4 failures in a row", story: `
			1s     s1 phase phase=pending step=idle
			1s     s1 phase phase=pending step=dialing epoch=1
			1s     s1 open conn=1
			1s     s1 down conn=1 class=exited
			1s     s1 released conn=1
			1s     s1 phase phase=failed retry=retry class=exited attempts=1 epoch=1 next=1.5s
			1.5s   s1 phase phase=pending step=dialing epoch=2
			1.5s   s1 open conn=2
			1.5s   s1 down conn=2 class=exited
			1.5s   s1 released conn=2
			1.5s   s1 phase phase=failed retry=retry class=exited attempts=2 epoch=2 next=2.5s
			2.5s   s1 phase phase=pending step=dialing epoch=3
			2.5s   s1 open conn=3
			2.5s   s1 down conn=3 class=exited
			2.5s   s1 released conn=3
			2.5s   s1 phase phase=failed retry=retry class=exited attempts=4 epoch=3 next=4.5s
		`},
		{name: "a lazy server is used again", plan: lazy, want: invariant.Inconclusive, story: crashLoop(20*s) + `
			20.01s s1 phase phase=pending step=idle epoch=1
			20.02s s1 open conn=2
		`},
		{name: "the manager says another time than the policy", want: invariant.Violated, why: "policy asks for 200ms to 1s", story: `
			0s     s1 phase phase=pending step=dialing epoch=1
			0s     s1 open conn=1
			1s     s1 down conn=1 class=exited
			1s     s1 released conn=1
			1s     s1 phase phase=failed retry=retry class=exited attempts=1 epoch=1 next=9s
		`},
		{name: "the manager dials before its own time", want: invariant.Violated, why: "due at 1.5s, and dialled at 1.3s", story: one(`
			1.3s   s1 open conn=2
		`)},
		{name: "the manager dials after its own time", want: invariant.Violated, why: "It was dialled at 4s", story: one(`
			4s     s1 open conn=2
		`)},
		{name: "the gate was full meanwhile", servers: []string{"s1", "s2"}, plan: func(p *scenario.Plan) { p.Limits.Processes, p.Limits.UnansweredFactor = 1, 1 },
			want: invariant.Holds, story: one(`
			1.2s   s2 open conn=1
			4s     s2 answered conn=1 method=initialize
			4s     s1 open conn=2
		`)},
		{name: "the manager counts less than there were", want: invariant.Violated, why: "counts 1 failures in a row", story: crashLoop(0, 500*ms) + `
			520ms  s1 phase phase=failed retry=retry class=exited attempts=1 epoch=2 next=1.5s
		`},
		{name: "the manager parks at once", want: invariant.Violated, why: "was parked at 1s after 1 failures", story: `
			0s     s1 open conn=1
			1s     s1 released conn=1
			1s     s1 phase phase=failed retry=parked class=exited attempts=1 epoch=1 next=300s
		`},
		{name: "the manager gives up what is tried again", want: invariant.Violated, why: "said that nothing follows", story: `
			0s     s1 open conn=1
			1s     s1 down conn=1 class=exited
			1s     s1 released conn=1
			1s     s1 phase phase=failed retry=none class=exited attempts=1 epoch=1
		`},
		{name: "those who died together are spread", servers: spread, want: invariant.Holds, story: spreadStory},
		{name: "a stampede", servers: alike, want: invariant.Violated, why: "come back together", story: alikeStory},
		{name: "no jitter worth the name", servers: latest, want: invariant.Violated, why: "not spread evenly", story: latestStory},
	})
}
