package client

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Limits are what a client is allowed. The zero value of a field has the meaning that its comment gives.
type Limits struct {
	// Back is how long after the end of the last fault calls may still fail; a minute.
	Back time.Duration
	// Late is how long after its deadline a call may end; two seconds.
	Late time.Duration
}

// withDefaults fills in the defaults.
func (l Limits) withDefaults() Limits {
	if l.Back <= 0 {
		l.Back = time.Minute
	}
	if l.Late <= 0 {
		l.Late = 2 * time.Second
	}
	return l
}

// check is one thing that is seen from outside.
type check struct {
	id, title string
	judge     func(j *judgement)
}

// checks are C1 to C11. Of the last three only the run itself can see the cases, and its record holds what it saw. The reasons say what a client must do; a case in which it does not is a violation.
var checks = []check{
	{"C1", "every call ends by its deadline", (*judgement).everyCallEnds},
	{"C2", "each caller gets its own answer", (*judgement).ownAnswers},
	{"C3", "nothing is sent twice that may have run", (*judgement).nothingTwice},
	{"C4", "the client comes back", (*judgement).comesBack},
	{"C5", "nothing is left", (*judgement).nothingLeft},
	{"C6", "lists follow", (*judgement).listsFollow},
	{"C7", "the server is not stormed", (*judgement).noStorm},
	{"C8", "a server that is well is served", (*judgement).neighboursServed},
	{"C9", "who gives up a call tells its server", func(j *judgement) { j.sawCases(history.GivenUp, "") }},
	{"C10", "what is sent keeps the protocol", func(j *judgement) { j.sawCases(history.Received, "") }},
	{"C11", "progress comes to its own call", func(j *judgement) { j.sawCases(history.Notified, "notifications/progress") }},
}

// Judge says of the record of a run what was seen wrong with the client. A check without a case is inconclusive.
func Judge(h *history.History, l Limits) (all []invariant.Verdict) {
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == history.Violation && !slices.ContainsFunc(checks, func(c check) bool { return c.id == e.Name }) {
			return []invariant.Verdict{{ID: e.Name, Title: "the day ends", Answer: invariant.Violated, Why: e.Text, At: e.T, Evidence: []int{i}, Looked: 1}}
		}
	}
	for _, c := range checks {
		j := &judgement{h: h, x: h.Index(), limits: l.withDefaults(), v: invariant.Verdict{ID: c.id, Title: c.title, Answer: invariant.Holds}}
		c.judge(j)
		for i := range h.Events {
			if e := &h.Events[i]; e.Kind == history.Violation && e.Name == c.id {
				j.v.Looked++
				j.reportViolation(i, nil, "%s", e.Text)
			}
		}
		if j.v.Looked == 0 && j.v.Answer == invariant.Holds {
			j.v.Answer, j.v.Why = invariant.Inconclusive, "the day held no case of it"
		}
		all = append(all, j.v)
	}
	return all
}

// Fired reports whether every fault of the plan had an effect, and names one that had none.
func Fired(h *history.History) (without string, all bool) {
	for _, f := range h.Plan.Faults {
		if !slices.ContainsFunc(h.Events, func(e history.Event) bool { return e.Kind == history.Fired && e.Fault == f.ID }) {
			return f.Fault, false
		}
	}
	return "", true
}

// judgement is one check of one record.
type judgement struct {
	h      *history.History
	x      *history.Index
	limits Limits
	v      invariant.Verdict
}

// reportViolation reports the first violation; at is the event that shows it.
func (j *judgement) reportViolation(at int, others []int, why string, args ...any) {
	if j.v.Answer == invariant.Violated {
		return
	}
	e := j.x.Event(at)
	j.v.Answer, j.v.Why, j.v.At = invariant.Violated, fmt.Sprintf(why, args...), e.T
	j.v.Server, j.v.Evidence = e.Server, append(slices.Clone(others), at)
}

// sawCases counts the events that are a case of a check whose violations the run itself has recorded.
func (j *judgement) sawCases(kind history.Kind, method string) {
	for i := range j.h.Events {
		if e := j.x.Event(i); e.Kind == kind && (method == "" || e.Method == method) {
			j.v.Looked++
		}
	}
}

// givenUp returns which calls their callers have given up, and when.
func (j *judgement) givenUp() map[string]time.Duration {
	all := map[string]time.Duration{}
	for i := range j.h.Events {
		if e := j.x.Event(i); e.Kind == history.GivenUp {
			all[e.Call] = e.T
		}
	}
	return all
}

// findFirst returns the first event of a kind, -1 if there is none.
func (j *judgement) findFirst(kind history.Kind) int {
	return slices.IndexFunc(j.h.Events, func(e history.Event) bool { return e.Kind == kind })
}

func (j *judgement) everyCallEnds() {
	givenUp := j.givenUp()
	for _, c := range j.x.Calls() {
		if c.Begin < 0 {
			continue
		}
		j.v.Looked++
		begin := j.x.Event(c.Begin)
		switch {
		case len(c.Ends) == 0:
			j.reportViolation(c.Begin, nil, "Call %s of tool %s was made at %s with a deadline at %s, and never returned.", c.ID, begin.Tool, begin.T, begin.Deadline)
		case len(c.Ends) > 1:
			j.reportViolation(c.Ends[1], []int{c.Begin}, "Call %s of tool %s ended twice.", c.ID, begin.Tool)
		default:
			if end := j.x.Event(c.Ends[0]); end.T > begin.Deadline+j.limits.Late {
				j.reportViolation(c.Ends[0], []int{c.Begin}, "Call %s of tool %s had its deadline at %s, and returned at %s.", c.ID, begin.Tool, begin.Deadline, end.T)
			} else if at, ok := givenUp[c.ID]; ok && end.T > at+j.limits.Late {
				j.reportViolation(c.Ends[0], []int{c.Begin}, "The caller of %s gave it up at %s, and it returned at %s.", c.ID, at, end.T)
			}
		}
	}
}

func (j *judgement) ownAnswers() {
	for _, c := range j.x.Calls() {
		if c.Begin < 0 || len(c.Ends) == 0 {
			continue
		}
		end := j.x.Event(c.Ends[0])
		evidence := append([]int{c.Begin}, c.Executed...)
		switch end.Outcome {
		case messages.OutcomeResult:
			j.v.Looked++
			if end.ID != c.ID {
				j.reportViolation(c.Ends[0], evidence, "The caller of %s was given the result of %s.", c.ID, end.ID)
			} else if len(c.Executed) == 0 {
				j.reportViolation(c.Ends[0], evidence, "Call %s ended with a result, and no server has run it.", c.ID)
			}
		case messages.OutcomeNotSent:
			j.v.Looked++
			if len(c.Executed) > 0 {
				j.reportViolation(c.Ends[0], evidence, "The client says that call %s was not sent, and the server has run it: who calls again runs it twice.", c.ID)
			}
		}
	}
}

func (j *judgement) nothingTwice() {
	for _, c := range j.x.Calls() {
		if len(c.Received) == 0 {
			continue
		}
		j.v.Looked++
		if c.Begin >= 0 && j.x.Event(c.Begin).Tool == scenario.ReadTool {
			continue // it is marked read-only, so that it may be asked again
		}
		for n := 1; n < len(c.Received); n++ {
			before, e := j.x.Event(c.Received[n-1]), j.x.Event(c.Received[n])
			// A request that the server has refused by an error of the protocol has not run.
			refused := slices.ContainsFunc(c.Answered, func(i int) bool {
				a := j.x.Event(i)
				return a.Code != 0 && a.T >= before.T && a.T <= e.T
			})
			if !refused {
				j.reportViolation(c.Received[n], c.Received[:n], "Call %s of tool %s was made once and sent twice: on connection %d at %s and on connection %d at "+
					"%s. Nobody knows whether the first one ran, so that the second may run it twice.", c.ID, j.toolOf(c), before.Conn, before.T, e.Conn, e.T)
				break
			}
		}
	}
}

// toolOf returns the tool of a call.
func (j *judgement) toolOf(c *history.CallRecord) string {
	if c.Begin < 0 {
		return "?"
	}
	return j.x.Event(c.Begin).Tool
}

// offers reports whether a server had a tool at a time.
func (j *judgement) offers(server, tool string, at time.Duration) (has bool) {
	for i := range j.h.Events {
		if e := j.x.Event(i); e.Kind == history.Changed && e.Server == server && e.T <= at {
			has = slices.Contains(e.Names, tool)
		}
	}
	return has
}

// hadTime reports whether a healthy server could answer a call before its deadline, and before the client is closed.
func (j *judgement) hadTime(begin *history.Event) bool {
	enough := time.Second
	for _, s := range j.h.Plan.Servers {
		if s.Name == begin.Server {
			enough += 4 * s.Latency
		}
	}
	return begin.Deadline-begin.T >= enough && begin.Deadline <= j.h.Plan.End
}

func (j *judgement) comesBack() {
	heal := j.findFirst(history.Heal)
	if heal < 0 {
		return
	}
	healed := j.x.Event(heal).T
	givenUp := j.givenUp()
	for _, c := range j.x.Calls() {
		if _, left := givenUp[c.ID]; left || c.Begin < 0 || j.x.Event(c.Begin).T < healed+j.limits.Back || len(c.Ends) == 0 {
			continue
		}
		begin, end := j.x.Event(c.Begin), j.x.Event(c.Ends[0])
		if !j.hadTime(begin) || !j.offers(begin.Server, begin.Tool, begin.T) {
			continue // or its tool has gone from the server's list
		}
		j.v.Looked++
		if end.Outcome != messages.OutcomeResult {
			j.reportViolation(c.Ends[0], []int{heal, c.Begin}, "The last fault ended at %s, and the server is healthy since. A call that was made %s later failed: %s",
				healed, begin.T-healed, end.Text)
		}
	}
}

func (j *judgement) nothingLeft() {
	closed := j.findFirst(history.Closed)
	if closed < 0 {
		return
	}
	j.v.Looked++
	if text := j.x.Event(closed).Text; text != "" {
		j.reportViolation(closed, nil, "%s", text)
	}
	for _, s := range j.h.Plan.Servers {
		if s.Kind != messages.Stdio {
			continue // a session may be left to the server's timeout
		}
		for _, c := range j.x.Conns(s.Name) {
			j.v.Looked++
			// At the end of that time the harness itself ends what is open.
			ended := func(i int) bool { return i >= 0 && j.x.Event(i).T < j.x.Event(closed).T+realLeftTime }
			if c.Opened >= 0 && !ended(c.Released) && !ended(c.Down) {
				j.reportViolation(closed, []int{c.Opened}, "Connection %d of %s, opened at %s, was still open after the client was closed.", c.Conn, s.Name, j.x.Event(c.Opened).T)
			}
		}
	}
	for i := range j.h.Events {
		if e := j.x.Event(i); e.Kind == history.Resources && e.House != nil && e.House.Goroutines > 0 {
			j.reportViolation(i, nil, "%d goroutines of the client are left that nothing will wake: %s", e.House.Goroutines,
				strings.Join(e.House.Left[:min(len(e.House.Left), 4)], ", "))
		}
	}
}
