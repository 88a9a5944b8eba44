package client

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// listsFollow is C6.
func (j *judgement) listsFollow() {
	for _, s := range j.h.Plan.Servers {
		j.listFollows(s.Name)
	}
}

func (j *judgement) listFollows(server string) {
	var truth, said *history.Event
	at := -1
	for i := range j.h.Events {
		switch e := j.x.Event(i); {
		case e.Server != server:
		case e.Kind == history.Changed:
			truth = e
		case e.Kind == history.ReadEnd && e.Class == "":
			said, at = e, i
		}
	}
	// The last list counts, which was asked for when everything was well: what changed shortly before it may be on its way.
	if truth == nil || said == nil || said.T < truth.T+j.limits.Back/2 || len(truth.Names) == 0 {
		return
	}
	j.v.Looked++
	want := slices.Sorted(slices.Values(truth.Names))
	if !slices.Equal(want, said.Names) {
		j.reportViolation(at, nil, "The tools of %s are %s since %s; at %s the client offers %s. List again after notifications/tools/list_changed, after each new connection, "+
			"and every page.", server, strings.Join(want, ", "), truth.T, said.T, strings.Join(said.Names, ", "))
	}
}

const (
	// mostOpenings is how often a server may be opened in a second; in stormTime it may be that often once more, and twice for each
	// call that was made meanwhile, since a client may dial for a call.
	mostOpenings = 50
	stormTime    = 30 * time.Second
	// redirectedRequests is how many requests net/http makes of one that is redirected again and again. The server counts each as an
	// opening, and only the first is the client's own.
	redirectedRequests = 10
)

// noStorm is C7.
func (j *judgement) noStorm() {
	for _, s := range j.h.Plan.Servers {
		var opened, called []time.Duration
		requests := 1
		if slices.ContainsFunc(j.h.Plan.Faults, func(f scenario.PlannedFault) bool { return f.Server == s.Name && f.Fault == "redirect" }) {
			requests = redirectedRequests
		}
		for i := range j.h.Events {
			e := j.x.Event(i)
			switch {
			case e.Server != s.Name:
				continue
			case e.Kind == history.Call || e.Kind == history.ReadEnd:
				called = append(called, e.T)
				continue
			case e.Kind != history.Open:
				continue
			}
			j.v.Looked++
			if opened = append(opened, e.T); len(opened) > requests*mostOpenings && e.T-opened[len(opened)-1-requests*mostOpenings] < time.Second {
				j.reportViolation(i, nil, "The client opened the server more than %d times in the second before %s.", requests*mostOpenings, e.T)
			}
			opened, called = since(opened, e.T-stormTime), since(called, e.T-stormTime)
			if len(opened) > requests*(mostOpenings+2*len(called)) {
				j.reportViolation(i, nil, "The client opened the server %d times in the %s before %s, in which %d calls and lists were asked of it. "+
					"Wait between two attempts, and longer after each that failed.", len(opened), stormTime, e.T, len(called))
			}
		}
	}
}

// since leaves out the times before one.
func since(times []time.Duration, first time.Duration) []time.Duration {
	n := 0
	for n < len(times) && times[n] < first {
		n++
	}
	return times[n:]
}

// wellAfter is when a server that has no fault must be served.
const wellAfter = 10 * time.Second

// neighboursServed is C8: of a server that no fault strikes every call has a result, whatever happens to the others.
func (j *judgement) neighboursServed() {
	givenUp := j.givenUp()
	for _, s := range j.h.Plan.Servers {
		if j.isDisturbed(s.Name) {
			continue
		}
		for _, c := range j.x.Calls() {
			if c.Begin < 0 || len(c.Ends) == 0 || j.x.Event(c.Begin).Server != s.Name {
				continue
			}
			begin, end := j.x.Event(c.Begin), j.x.Event(c.Ends[0])
			_, left := givenUp[c.ID]
			if left || begin.T < wellAfter || !j.hadTime(begin) {
				continue
			}
			j.v.Looked++
			if end.Outcome != messages.OutcomeResult {
				j.reportViolation(c.Ends[0], []int{c.Begin}, "No fault strikes %s on this day, and call %s of its tool %s failed at %s: %s", s.Name, c.ID, begin.Tool, end.T, end.Text)
			}
		}
	}
}

// isDisturbed reports whether the day holds a fault or a command for a server.
func (j *judgement) isDisturbed(server string) bool {
	for _, f := range j.h.Plan.Faults {
		if f.Server == "" || f.Server == server {
			return true
		}
	}
	for _, c := range j.h.Plan.Commands {
		if c.Server == server {
			return true
		}
	}
	return false
}
