package invariant

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// checker runs one check: it holds the history and what several checks compute from it, counts the judged cases, and keeps the
// earliest violation. Only one violation is described in full, because it usually causes the others; these are counted.
type checker struct {
	h    *history.History
	x    *history.Index
	plan *scenario.Plan
	*tolerance

	// evidence holds indexes of events, the one that shows the violation last.
	judged int
	// emptyReason is the verdict's reason if no case was judged.
	emptyReason     string
	violationText   string
	violationServer string
	violationTime   time.Duration
	evidence        []int
	violations      int
	// undecidedCases counts the cases that this history cannot decide; the first of them becomes the reason of an inconclusive
	// verdict.
	undecidedCases int
	firstUndecided string
	// The maps are caches by server, filled when a check first asks; one checker judges one invariant, in one goroutine.
	spec             map[string]*scenario.Server
	windows          map[string][]faultWindow
	machineWindows   []faultWindow
	attemptCache     map[string][]*attempt
	commandCache     map[string][]ownerCommand
	fullnessCache    map[string]*fullness
	gateCache        map[string]*gateRecord
	occupiedCache    *fullness
	readyAt          map[string]time.Duration
	specVersionCache map[string][]specVersion
	// taskEnds is what was told of the ends of calls that became agents' tasks.
	taskEnds map[*history.CallRecord]*history.Event
	// exitCache has the calls of agents that the gateway passes on, by server.
	exitCache map[string]map[*history.CallRecord]time.Duration
	// windowKeyCache tells which calls share a window of the gateway, by the id of the call.
	windowKeyCache map[string]string
	// taskCache has the tasks of the servers.
	taskCache map[string]taskStatuses
	// offerings are the times at which the owner approved changed definitions, or set other rules; nil before they were looked for.
	offerings []time.Duration
	// watchCache has the times at which a server's resource was asked to be watched, or to be watched no longer.
	watchCache map[string][]time.Duration
}

// tolerance says how exact the times of a run are. In virtual time only the manager's own delays count. In a run of real
// processes an event is seen a moment later, more so when five hundred processes share two processors.
type tolerance struct {
	// skew bounds how far apart two sides may see one event; slack is added to every bound.
	skew, slack time.Duration
	// busyLatency bounds how late a call may be because the machine was busy: twice the measured lag.
	busyLatency time.Duration
	real        bool
}

// publishGap bounds how long the registry may wait for more changes before it publishes a snapshot: 25 ms, as its comment says.
const publishGap = 25 * time.Millisecond

// newChecker prepares a history for one check.
func newChecker(h *history.History) *checker {
	c := &checker{h: h, x: h.Index(), plan: &h.Plan, tolerance: &tolerance{skew: publishGap, slack: publishGap}}
	if h.Plan.Tier == scenario.Real {
		lag := lagOf(h)
		c.tolerance = &tolerance{skew: 500*time.Millisecond + 2*lag, slack: 2*time.Second + 4*lag, busyLatency: 2 * lag, real: true}
	}
	c.spec = make(map[string]*scenario.Server, len(h.Plan.Servers))
	for i := range h.Plan.Servers {
		c.spec[h.Plan.Servers[i].Name] = &h.Plan.Servers[i]
	}
	return c
}

// newCheck makes a Check of a function that reports what it finds. nothing is the reason if the function judges no case.
func newCheck(id, title, text, nothing string, judge func(*checker)) Check {
	return Check{ID: id, Title: title, Text: text, Judge: func(h *history.History) Verdict {
		c := newChecker(h)
		c.emptyReason = nothing
		judge(c)
		c.addHarnessFindings(id)
		return c.buildVerdict(id, title)
	}}
}

// reportViolation reports a violation that the event at shows; evidence are the events that lead to it.
func (c *checker) reportViolation(server string, at int, evidence []int, format string, args ...any) {
	c.reportViolationAt(c.x.Event(at).T, server, at, evidence, format, args...)
}

// reportViolationAt is reportViolation at a time at which no event came although one was due.
func (c *checker) reportViolationAt(t time.Duration, server string, at int, evidence []int, format string, args ...any) {
	c.violations++
	if c.violations > 1 && t >= c.violationTime {
		return
	}
	c.violationText, c.violationServer, c.violationTime = fmt.Sprintf(format, args...), server, t
	c.evidence = c.evidence[:0]
	for _, i := range append(slices.Clone(evidence), at) {
		if i >= 0 && !slices.Contains(c.evidence, i) {
			c.evidence = append(c.evidence, i)
		}
	}
}

// reportUndecided reports a case for which this history holds too little.
func (c *checker) reportUndecided(format string, args ...any) {
	if c.undecidedCases++; c.undecidedCases == 1 {
		c.firstUndecided = fmt.Sprintf(format, args...)
	}
}

// addHarnessFindings adds what only the harness could see while it happened: Violation events that name this invariant.
func (c *checker) addHarnessFindings(id string) {
	for _, server := range append([]string{""}, c.x.Servers()...) {
		for _, i := range c.x.ServerEvents(server) {
			if e := c.x.Event(i); e.Kind == history.Violation && e.Name == id {
				c.judged++
				seen := " (seen at " + timeText(e.T) + ")"
				if strings.Contains(e.Text, timeText(e.T)) {
					seen = ""
				}
				c.reportViolation(server, i, nil, "%s%s.", sentenceOf(e.Text), seen)
			}
		}
	}
}

// sentenceOf makes the beginning of a sentence of what the harness saw, which it tells of a server as "it". What was seen comes first,
// because a summary may show no more than a line.
func sentenceOf(text string) string {
	text = strings.TrimSuffix(text, ".")
	if rest, about := strings.CutPrefix(text, "it "); about {
		return "The server " + rest
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// buildVerdict makes the verdict: a violation wins over everything, and a check without a judged case is inconclusive.
func (c *checker) buildVerdict(id, title string) Verdict {
	v := Verdict{ID: id, Title: title, Looked: c.judged, Answer: Holds}
	switch {
	case c.violations > 0:
		v.Answer, v.Why, v.Server, v.At, v.Evidence = Violated, c.violationText, c.violationServer, c.violationTime, c.evidence
		if v.Server != "" {
			v.Why = nameServer(v.Why, v.Server)
		}
		if c.violations > 1 {
			v.Why += fmt.Sprintf(" It is the first of %d such cases.", c.violations)
		}
		shown := -1
		if n := len(c.evidence); n > 0 {
			shown = c.evidence[n-1]
		}
		v.Before = c.precedingText(c.violationServer, c.violationTime, shown)
	case c.judged == 0:
		v.Answer, v.Why = Inconclusive, c.emptyReason
		if c.undecidedCases > 0 {
			v.Why = c.firstUndecided
		}
	}
	return v
}

// endTime returns the time of the last event.
func (c *checker) endTime() time.Duration {
	if order := c.x.Order(); len(order) > 0 {
		return c.x.Event(order[len(order)-1]).T
	}
	return 0
}

// closeTime returns when the manager began to close; the end of the history if it never did.
func (c *checker) closeTime() time.Duration {
	for _, i := range c.x.ServerEvents("") {
		if e := c.x.Event(i); e.Kind == history.Closing {
			return e.T
		}
	}
	return c.endTime()
}

// healTime returns when every fault had ended, false if that time was not reached.
func (c *checker) healTime() (time.Duration, bool) {
	for _, i := range c.x.ServerEvents("") {
		if e := c.x.Event(i); e.Kind == history.Heal {
			return e.T, true
		}
	}
	return 0, false
}

// serverSpec returns the plan's description of a server. A history may hold a server that the plan lacks; it has the defaults.
func (c *checker) serverSpec(name string) *scenario.Server {
	if s := c.spec[name]; s != nil {
		return s
	}
	s := &scenario.Server{Name: name, ConnectTimeout: 30 * time.Second, CallTimeout: time.Minute}
	c.spec[name] = s
	return s
}

// timeText formats a time for people.
func timeText(t time.Duration) string { return t.Round(time.Millisecond).String() }

// subjectPattern matches the beginning of a reason that does not name its server.
var subjectPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(The server|Connection \d+|The owner asked for [a-zA-Z]+|(A caller made call|Call) \S+ of tool [^ ,]+)`)
})

// nameServer inserts the server's name into such a reason.
func nameServer(why, server string) string {
	at := subjectPattern().FindString(why)
	switch {
	case at == "" && strings.Contains(why, server):
		return why
	case at == "":
		// The server may be named first in the middle of the sentence.
		return strings.Replace(why, " the server ", " the server "+server+" ", 1)
	case at == "The server":
		return at + " " + server + why[len(at):]
	}
	return at + " of " + server + why[len(at):]
}
