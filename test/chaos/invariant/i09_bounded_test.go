package invariant_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// pagedList is a connection that is asked for so many pages of its list, each as soon as the one before has come.
func pagedList(pages int) string {
	return "0s s1 open conn=1\n" + listPages("", 0, pages)
}

// listPages are the pages of one list, each asked for as soon as the one before has come, from a number of milliseconds on. The ids
// begin with a word.
func listPages(word string, from, pages int) string {
	b := new(strings.Builder)
	for i := range pages {
		at := time.Duration(from+i) * time.Millisecond
		fmt.Fprintf(b, "%v s1 received conn=1 method=tools/list id=%s%d cursor=%v\n%v s1 answered conn=1 method=tools/list id=%s%d\n", at, word, i, i > 0,
			at+time.Millisecond, word, i)
	}
	return b.String()
}

// byTime puts the lines of a story into the order of their times.
func byTime(story string) string {
	lines := strings.Split(strings.TrimSpace(story), "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		at, _ := time.ParseDuration(strings.Fields(a)[0])
		bt, _ := time.ParseDuration(strings.Fields(b)[0])
		return cmp.Compare(at, bt)
	})
	return strings.Join(lines, "\n")
}

// listenStorm is a connection that is asked for forty subscriptions, the reason of which may be a caller and an agent that come and go.
func listenStorm(wished bool) string {
	b := new(strings.Builder)
	for i := range 40 {
		at := time.Second + time.Duration(i)*100*time.Millisecond
		switch {
		case wished && i%4 == 0:
			fmt.Fprintf(b, "%v - asked agent=agent-1 epoch=1 id=%d method=resources/subscribe about=chaos://s1/one\n", at, i)
		case wished:
			fmt.Fprintf(b, "%v s1 read method=%s call=c%d\n", at, []string{"subscribe", "unsubscribe"}[i%2], i)
		}
		fmt.Fprintf(b, "%v s1 received conn=1 method=subscriptions/listen id=l%d\n", at, i)
	}
	return b.String()
}

// announcedLists are lists of which each comes so long after an announcement. They send the same state of the server, or a new one each.
func announcedLists(isNew bool, waits ...time.Duration) string {
	b, at, rev := new(strings.Builder), time.Second, 1
	for i, wait := range waits {
		if isNew {
			rev++
		}
		fmt.Fprintf(b, "%v s1 notified conn=1 method=notifications/tools/list_changed\n", at)
		at += wait
		fmt.Fprintf(b, "%[1]v s1 received conn=1 method=tools/list id=v%[2]d\n%[1]v s1 answered conn=1 method=tools/list id=v%[2]d\n%[1]v s1 listed conn=1 rev=%[3]d\n", at, i, rev)
		at += 100 * time.Millisecond
	}
	return b.String()
}

func TestWorkPerEvent(t *testing.T) {
	const first = `
		0s     s1 open conn=1
		0s     s1 received conn=1 method=tools/list id=1
		2ms    s1 answered conn=1 method=tools/list id=1
		2ms    s1 listed conn=1
	`
	const circle = `
		0.5s   s1 fault-on fault=1 name=cursor-loop
		1s     s1 notified conn=1 method=notifications/tools/list_changed
		1.05s  s1 received conn=1 method=tools/list id=2
		1.5s   s1 answered conn=1 method=tools/list id=2
		1.5s   s1 received conn=1 method=tools/list id=3 cursor=true
	`
	reopened := `
		100ms  s1 notified conn=1 method=notifications/subscriptions/acknowledged
		150ms  s1 received conn=1 method=tools/list id=2
		160ms  s1 answered conn=1 method=tools/list id=2
		160ms  s1 listed conn=1
		500ms  s1 notified conn=1 method=notifications/subscriptions/acknowledged
	` + listStorm(700*time.Millisecond, 2*time.Second)
	pings := new(strings.Builder)
	for i := range 200 {
		fmt.Fprintf(pings, "%dms s1 received conn=1 method=ping id=%d\n", 10*i, i+5)
	}
	runCases(t, "I9", []storyCase{
		{name: "a page asked for again with another token is no list of its own", want: invariant.Holds,
			story: `
			0s     s1 open conn=1
			0s     s1 received conn=1 method=tools/list id=1
			10ms   s1 answered conn=1 method=tools/list id=1
			10ms   s1 listed conn=1 rev=1
			10s    s1 notified conn=1 method=notifications/tools/list_changed
			10.05s s1 received conn=1 method=tools/list id=2
			10.05s s1 received conn=1 method=tools/list id=3
			10.05s s1 answered conn=1 method=tools/list id=2 code=401
			10.5s  s1 notified conn=1 method=notifications/tools/list_changed
			10.7s  s1 answered conn=1 method=tools/list id=3
			10.7s  s1 received conn=1 method=tools/list id=4 cursor=true
			11.3s  s1 answered conn=1 method=tools/list id=4
			11.3s  s1 listed conn=1 rev=2
			11.35s s1 received conn=1 method=tools/list id=5
			12s    s1 answered conn=1 method=tools/list id=5
			12s    s1 listed conn=1 rev=2
			60s    - closing
		`},
		{name: "a later list comes whose answer is not in the record, as on seed 788", want: invariant.Holds, story: first + `
			1s     s1 notified conn=1 method=notifications/tools/list_changed
			1.05s  s1 received conn=1 method=tools/list id=2
			1.15s  s1 notified conn=1 method=notifications/tools/list_changed
			1.25s  s1 answered conn=1 method=tools/list id=2
			1.3s   s1 received conn=1 method=tools/list id=3
			1.4s   s1 answered conn=1 method=tools/list id=3
			1.4s   s1 listed conn=1 rev=2
			14s    s1 notified conn=1 method=notifications/tools/list_changed
			14.05s s1 received conn=1 method=tools/list id=4
			14.15s s1 listed conn=1 rev=3
			60s    - closing
		`},
		{name: "the agreement to a subscription for a resource announces no list", want: invariant.Holds, story: first + `
			1s     s1 notified conn=1 method=notifications/subscriptions/acknowledged
			1.04s  s1 notified conn=1 method=notifications/subscriptions/acknowledged
			1.05s  s1 received conn=1 method=tools/list id=2
			1.1s   s1 answered conn=1 method=tools/list id=2
			1.1s   s1 listed conn=1
			60s    - closing
		`},
		{name: "a change that was announced meanwhile is waited for", want: invariant.Violated, why: "a burst of them is waited for", story: first + `
			1s     s1 notified conn=1 method=notifications/subscriptions/acknowledged
			1.04s  s1 notified conn=1 method=notifications/tools/list_changed
			1.05s  s1 received conn=1 method=tools/list id=2
			1.1s   s1 answered conn=1 method=tools/list id=2
			1.1s   s1 listed conn=1
			60s    - closing
		`},
		{name: "what is said in the instant of a list may come after it", want: invariant.Holds, story: first + `
			1s     s1 notified conn=1 method=notifications/tools/list_changed
			1.06s  s1 notified conn=1 method=notifications/tools/list_changed
			1.06s  s1 received conn=1 method=tools/list id=2
			1.1s   s1 answered conn=1 method=tools/list id=2
			1.1s   s1 listed conn=1
			1.15s  s1 received conn=1 method=tools/list id=3
			1.2s   s1 answered conn=1 method=tools/list id=3
			1.2s   s1 listed conn=1
			60s    - closing
		`},
		{name: "the quiet grows with lists that bring nothing new", want: invariant.Holds,
			story: first + announcedLists(false, 50*time.Millisecond, 100*time.Millisecond, 200*time.Millisecond, 400*time.Millisecond)},
		{name: "the quiet stays as it is, and nothing is new", want: invariant.Violated, why: "after 1 lists in a row that brought nothing new",
			story: first + announcedLists(false, 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond)},
		{name: "the quiet grows to half of what it should", want: invariant.Violated, why: "until 200ms of silence, or 1s, after 2 lists in a row",
			story: first + announcedLists(false, 50*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond)},
		{name: "the owner approves changed tools meanwhile", want: invariant.Holds, servers: []string{"s1", "s2"}, story: first +
			announcedLists(false, 50*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond) + "1.2s s2 command command=1 method=approve"},
		{name: "the owner sets other rules meanwhile", want: invariant.Holds, servers: []string{"s1", "s2"}, story: first +
			announcedLists(false, 50*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond) + "1.2s - command command=1 method=permit"},
		{name: "the owner sets other rules before the next list", want: invariant.Holds, servers: []string{"s1", "s2"}, story: first +
			announcedLists(false, 50*time.Millisecond, 100*time.Millisecond, 50*time.Millisecond) + "1.3s - command command=1 method=permit"},
		{name: "each list brings something new", want: invariant.Holds,
			story: first + announcedLists(true, 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond)},
		{name: "who watches comes and goes", want: invariant.Holds, story: first + listenStorm(true)},
		{name: "nobody comes, and a subscription follows another", want: invariant.Violated, why: "something feeds on itself", story: first + listenStorm(false)},
		{name: "who watches comes and goes, and something else is asked for", want: invariant.Violated, why: "0 changes of what is watched",
			story: first + strings.ReplaceAll(listenStorm(true), "subscriptions/listen", "ping")},
		// Seed 20398000: each of many reads asked once, when the connection broke, whether that serves others all the same.
		{name: "each lost read asks whether the connection serves", want: invariant.Holds, story: first + lostReads(60, "2s")},
		{name: "more than the lost reads ask", want: invariant.Violated, why: "something feeds on itself", story: first + lostReads(20, "2s")},
		{name: "reads that had ended ask", want: invariant.Violated, why: "something feeds on itself", story: first + lostReads(60, "0.9s")},
		{name: "a burst is listed once", want: invariant.Holds, story: first + `
			1s     s1 notified conn=1 method=notifications/tools/list_changed
			1.02s  s1 notified conn=1 method=notifications/tools/list_changed
			1.04s  s1 notified conn=1 method=notifications/tools/list_changed
			1.09s  s1 received conn=1 method=tools/list id=2
			1.1s   s1 answered conn=1 method=tools/list id=2
			1.1s   s1 listed conn=1
		`},
		{name: "a storm is listed once a second", want: invariant.Holds, story: first + listStorm(time.Second, 2500*time.Millisecond) + `
			2s     s1 received conn=1 method=tools/list id=2
			2.01s  s1 answered conn=1 method=tools/list id=2
			2.01s  s1 listed conn=1
			3.01s  s1 received conn=1 method=tools/list id=3
			3.02s  s1 answered conn=1 method=tools/list id=3
			3.02s  s1 listed conn=1
		`},
		{name: "a list of many pages", want: invariant.Holds, story: pagedList(900)},
		// Seed 4006695: each refused call makes a list of its own, which begins in the instant in which the one before has failed.
		{name: "lists side by side and one after the other are lists of their own", want: invariant.Holds,
			plan: func(p *scenario.Plan) { p.Servers[0].Headers = true }, story: byTime("0s s1 open conn=1\n" +
				"0s s1 answered conn=1 method=tools/call id=c code=400\n" + listPages("a", 0, 900) + listPages("b", 450, 900) + listPages("c", 1350, 900))},
		// Seed 20351103: the list of the first call went on for as long as its caller had time, and then the next call listed.
		{name: "calls list one after the other as the time of their callers ends", want: invariant.Holds, plan: func(p *scenario.Plan) { p.Servers[0].Headers = true },
			story: first + endlessList},
		{name: "lists follow each other without a refused call", want: invariant.Violated, why: "had announced no change since", plan: func(p *scenario.Plan) { p.Servers[0].Headers = true },
			story: first + strings.ReplaceAll(endlessList, " code=400", "")},
		{name: "a list that failed is asked for later each time", want: invariant.Holds, story: first + `
			1s     s1 notified conn=1 method=notifications/tools/list_changed
			1.05s  s1 received conn=1 method=tools/list id=2
			1.06s  s1 answered conn=1 method=tools/list id=2 code=-32603
			2.06s  s1 received conn=1 method=tools/list id=3
			2.07s  s1 answered conn=1 method=tools/list id=3 code=-32603
			4.07s  s1 received conn=1 method=tools/list id=4
			4.08s  s1 answered conn=1 method=tools/list id=4
			4.08s  s1 listed conn=1
		`},
		{name: "a list with a new token", want: invariant.Holds, story: first + `
			1s     s1 notified conn=1 method=notifications/tools/list_changed
			1.05s  s1 received conn=1 method=tools/list id=2
			1.06s  s1 answered conn=1 method=tools/list id=2 code=401
			2.06s  s1 received conn=1 method=tools/list id=3
			2.07s  s1 answered conn=1 method=tools/list id=3 code=401
			2.08s  s1 received conn=1 method=tools/list id=4
			2.09s  s1 answered conn=1 method=tools/list id=4
			2.09s  s1 listed conn=1
		`},
		{name: "a list that failed is asked for at one pace", want: invariant.Violated, why: "it is waited for 2s before", story: first + `
			1s     s1 notified conn=1 method=notifications/tools/list_changed
			1.05s  s1 received conn=1 method=tools/list id=2
			1.06s  s1 answered conn=1 method=tools/list id=2 code=-32603
			2.06s  s1 received conn=1 method=tools/list id=3
			2.07s  s1 answered conn=1 method=tools/list id=3 code=-32603
			3.07s  s1 received conn=1 method=tools/list id=4
			3.08s  s1 answered conn=1 method=tools/list id=4
			3.08s  s1 listed conn=1
		`},
		{name: "a list whose pages led in a circle ends when the circle does, as on seed 8000550", want: invariant.Holds, story: first + circle + `
			2s     s1 fault-off fault=1 name=cursor-loop
			2s     s1 notified conn=1 method=notifications/tools/list_changed
			2.001s s1 answered conn=1 method=tools/list id=3
			2.051s s1 received conn=1 method=tools/list id=4
		`},
		{name: "a list whose pages lead in a circle is asked for again at once", want: invariant.Violated, why: "it is waited for 1s before", story: first + circle + `
			1.8s   s1 answered conn=1 method=tools/list id=3
			1.851s s1 received conn=1 method=tools/list id=4
			2s     s1 fault-off fault=1 name=cursor-loop
		`},
		{name: "nothing was asked", want: invariant.Inconclusive, why: "No server was asked", story: `0s s1 open conn=1`},
		{name: "every announcement is listed at once", want: invariant.Violated, why: "a burst of them is waited for", story: first + `
			1s     s1 notified conn=1 method=notifications/tools/list_changed
			1s     s1 received conn=1 method=tools/list id=2
		`},
		{name: "a storm is not coalesced", want: invariant.Violated, why: "20ms after it had last announced", story: first + listStorm(time.Second, 2*time.Second) + `
			1.2s   s1 received conn=1 method=tools/list id=2
		`},
		// Seed 30190350: a stream was opened again, and what had changed before it agreed began the burst.
		{name: "a storm after a further agreement is listed a second after that", want: invariant.Holds, story: first + reopened + `
			1.5s   s1 received conn=1 method=tools/list id=3
		`},
		{name: "a storm after a further agreement is not coalesced", want: invariant.Violated, why: "900ms after the first announcement", story: first + reopened + `
			1.4s   s1 received conn=1 method=tools/list id=3
		`},
		{name: "lists without a reason", want: invariant.Violated, why: "had announced no change", story: first + `
			5s     s1 received conn=1 method=tools/list id=2
		`},
		{name: "somebody asked for it", want: invariant.Holds, story: first + `
			5s     s1 command command=1 method=refresh
			5s     s1 received conn=1 method=tools/list id=2
		`},
		{name: "a cut stream is open again after the fault, while a list is under way", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: first + `
			4s     - fault-on server=s1 fault=1 name=cut-stream
			4.5s   s1 fired conn=1 fault=1 name=cut-stream
			4.6s   - fault-off server=s1 fault=1 name=cut-stream
			5.25s  s1 received conn=1 method=tools/list id=2
			5.35s  s1 answered conn=1 method=tools/list id=2
			5.35s  s1 listed conn=1
			6.35s  s1 received conn=1 method=tools/list id=3
		`},
		{name: "a stream that was cut within a partition is open again after that", servers: []string{"s1 kind=http"}, want: invariant.Holds, story: first + `
			2s     - fault-on server=s1 fault=2 name=partition
			4s     - fault-on server=s1 fault=1 name=cut-stream
			4.5s   s1 fired conn=1 fault=1 name=cut-stream
			4.6s   - fault-off server=s1 fault=1 name=cut-stream
			8s     - fault-off server=s1 fault=2 name=partition
			8.1s   s1 received conn=1 method=tools/list id=2
			8.2s   s1 answered conn=1 method=tools/list id=2
			8.2s   s1 listed conn=1
			8.95s  s1 received conn=1 method=tools/list id=3
		`},
		{name: "a list without a reason, long after a stream was cut", servers: []string{"s1 kind=http"}, want: invariant.Violated,
			why: "had announced no change", story: first + `
			4s     - fault-on server=s1 fault=1 name=cut-stream
			4.5s   s1 fired conn=1 fault=1 name=cut-stream
			4.6s   - fault-off server=s1 fault=1 name=cut-stream
			5.25s  s1 received conn=1 method=tools/list id=2
			5.35s  s1 answered conn=1 method=tools/list id=2
			5.35s  s1 listed conn=1
			6.35s  s1 received conn=1 method=tools/list id=3
			6.4s   s1 answered conn=1 method=tools/list id=3
			6.4s   s1 listed conn=1
			7.5s   s1 received conn=1 method=tools/list id=4
		`},
		{name: "a cursor that leads back", want: invariant.Violated, why: "page 1300 of one list", story: pagedList(1300)},
		{name: "who reads which tasks there are asks after one", plan: useTasks, want: invariant.Holds, story: first + requestStory(9, "tasks/list", "tasks/get")},
		{name: "who reads which tasks there are asks after one, which has ended", plan: useTasks, want: invariant.Holds,
			story: first + requestStory(9, "tasks/list", "tasks/get", "tasks/result")},
		{name: "nobody reads which tasks there are, and one is asked after", plan: useTasks, want: invariant.Violated, why: "asked 9 times until 18s",
			story: first + requestStory(9, "tasks/get")},
		{name: "a task is asked for on the next connection, as its call has not ended", plan: useTasks, want: invariant.Holds, story: first + movedTask + `
			9s     s1 end call=c1 outcome=unknown
		`},
		{name: "a task is asked for on the next connection, and its call has ended", plan: useTasks, want: invariant.Violated, why: "asked 1 times", story: first + movedTask + `
			6s     s1 end call=c1 outcome=unknown
		`},
		{name: "a program that has listed the tasks asks for it on the next connection, as on seed 20982401", plan: useTasks, want: invariant.Holds, story: first + `
			3s     s1 received conn=1 method=tasks/list id=20` + movedTask + `
			6s     s1 end call=c1 outcome=unknown
		`},
		// Seed 20702266: the gateway keeps looking for the task of an agent that it cannot reach now.
		{name: "a task is asked for on the next connection, and its agent may come back", plan: useTasks, want: invariant.Holds, story: first + movedTask + `
			5s     s1 told method=call-ended tool=put outcome=unknown took=3s
			4s     s1 end call=c1 tool=put outcome=unknown name=unseen
		`},
		{name: "a task is asked for when its agent has been away for long", plan: useTasks, want: invariant.Violated, why: "asked 1 times",
			story: first + strings.ReplaceAll(movedTask, "8s", "37s") + `
			5s     s1 told method=call-ended tool=put outcome=unknown took=3s
			4s     s1 end call=c1 tool=put outcome=unknown name=unseen
		`},
		{name: "pings without an end", servers: []string{"s1 kind=http"}, want: invariant.Violated, why: "feeds on itself",
			story: first + pings.String()},
		{name: "a livelock that the harness saw", want: invariant.Violated, why: "talks without an end", story: first + `
			1s     - violation name=I9 text=somebody_talks_without_an_end
		`},
	})
}

// endlessList is that of a call whose headers were refused, until its caller has no more time.
const endlessList = `
	0.5s   s1 fault-on fault=1 name=cursor-loop
	1s     s1 call call=c1 tool=put
	1s     s1 received conn=1 method=tools/call id=c call=c1
	1.1s   s1 answered conn=1 method=tools/call id=c call=c1 code=400
	1.1s   s1 received conn=1 method=tools/list id=2
	2s     s1 answered conn=1 method=tools/list id=2
	2s     s1 received conn=1 method=tools/list id=3 cursor=true
	20s    s1 answered conn=1 method=tools/list id=3
	20s    s1 received conn=1 method=tools/list id=4 cursor=true
	40s    s1 answered conn=1 method=tools/list id=4
	40s    s1 received conn=1 method=tools/list id=5 cursor=true
	60.9s  s1 answered conn=1 method=tools/list id=5
	61s    s1 end call=c1 tool=put outcome=rejected
	61s    s1 received conn=1 method=tools/list id=6
	62s    s1 answered conn=1 method=tools/list id=6
	62s    s1 received conn=1 method=tools/list id=7 cursor=true
	62.1s  s1 answered conn=1 method=tools/list id=7
	62.12s s1 received conn=1 method=tools/list id=8
`

// movedTask is a call that becomes a task on one connection, and is asked for on the next one.
const movedTask = `
	2s     s1 call call=c1 tool=put
	2s     s1 received conn=1 method=tools/call id=2 call=c1
	2.1s   s1 answered conn=1 method=tools/call id=2 task=task-1-1
	5s     s1 down conn=1 class=network
	5s     s1 released conn=1
	7s     s1 open conn=2
	7s     s1 opened conn=2
	8s     s1 received conn=2 method=tasks/get id=5 task=task-1-1
	8.1s   s1 answered conn=2 method=tasks/get id=5 task=task-1-1 code=-32602
`

// listStorm is announcements every 20 ms.
func listStorm(from, to time.Duration) string {
	b := new(strings.Builder)
	for t := from; t <= to; t += 20 * time.Millisecond {
		fmt.Fprintf(b, "%v s1 notified conn=1 method=notifications/tools/list_changed\n", t)
	}
	return b.String()
}

// useTasks has the first server run calls as tasks.
func useTasks(p *scenario.Plan) { p.Servers[0].Tasks = scenario.TasksOptional }

// requestStory is requests of these methods, n times, one time a second.
func requestStory(n int, methods ...string) string {
	b := new(strings.Builder)
	for i := range n {
		for _, m := range methods {
			fmt.Fprintf(b, "%ds s1 received conn=1 method=%s id=%s-%d\n", 10+i, m, m, i)
		}
	}
	return b.String()
}

// lostReads has so many reads that end at a time, of a connection that ends at 1 s and is asked 60 times then whether it lives.
func lostReads(reads int, ended string) string {
	b := &strings.Builder{}
	for n := range reads {
		fmt.Fprintf(b, "0.8s s1 read call=c%d method=resource\n%s s1 read-end call=c%[1]d method=resource class=network\n", n, ended)
	}
	for n := range 60 {
		fmt.Fprintf(b, "1s s1 received conn=1 method=ping id=%d\n", n+9)
	}
	return b.String() + "1s s1 down conn=1 class=network\n1s s1 released conn=1\n60s - closing\n"
}
