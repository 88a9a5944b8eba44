package invariant

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// checker hears one check: it holds the history with what the checks share, counts what was looked at, and keeps the earliest
// violation. One violation is told in full, because it is usually the cause of the rest; of the others there is a count.
type checker struct {
	h    *history.History
	x    *history.Index
	plan *scenario.Plan
	*tolerance

	judged          int
	emptyReason     string // why nothing can be said, if nothing was looked at
	violationText   string
	violationServer string
	violationTime   time.Duration
	evidence        []int
	violations      int
	// undecidedCases are cases that could not be decided; the first of them is told if nothing is violated and nothing was looked at.
	undecidedCases   int
	firstUndecided   string
	spec             map[string]*scenario.Server
	windows          map[string][]faultWindow
	machineWindows   []faultWindow
	attemptCache     map[string][]*attempt
	fullnessCache    map[string]*fullness
	readyAt          map[string]time.Duration
	specVersionCache map[string][]specVersion
}

// tolerance is how exact the times of a run are. In virtual time an instant is an instant. In a run of real processes what
// happened is seen a moment later, more so when five hundred processes share two processors.
type tolerance struct {
	// skew is how far apart two sides may see what happens at once; late is added to every bound.
	skew, slack time.Duration
	// busyLatency is by how much a call may be late because the machine was busy: twice the lateness that was measured.
	busyLatency time.Duration
	real        bool
}

// publishGap is how long the registry may wait for more changes before it publishes a snapshot: 25 ms, as its comment says.
const publishGap = 25 * time.Millisecond

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

// newCheck makes a Check of a function that takes down what it finds.
func newCheck(id, title, text, nothing string, judge func(*checker)) Check {
	return Check{ID: id, Title: title, Text: text, Judge: func(h *history.History) Verdict {
		c := newChecker(h)
		c.emptyReason = nothing
		judge(c)
		c.addHarnessFindings(id)
		return c.buildVerdict(id, title)
	}}
}

// reportViolation takes down a violation that event at shows; evidence are the events that lead to it.
func (c *checker) reportViolation(server string, at int, evidence []int, format string, args ...any) {
	c.reportViolationAt(c.x.Event(at).T, server, at, evidence, format, args...)
}

// reportViolationAt is violated for what no event shows but that none has come by a time.
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

// reportUndecided takes down a case that this history says too little about.
func (c *checker) reportUndecided(format string, args ...any) {
	if c.undecidedCases++; c.undecidedCases == 1 {
		c.firstUndecided = fmt.Sprintf(format, args...)
	}
}

// addHarnessFindings takes over what only the harness could see while it happened: Violation events that name this invariant.
func (c *checker) addHarnessFindings(id string) {
	for _, server := range append([]string{""}, c.x.Servers()...) {
		for _, i := range c.x.ServerEvents(server) {
			if e := c.x.Event(i); e.Kind == history.Violation && e.Name == id {
				c.judged++
				c.reportViolation(server, i, nil, "The harness saw it at %s, while it happened: %s.", timeText(e.T),
					strings.TrimSuffix(e.Text, "."))
			}
		}
	}
}

func (c *checker) buildVerdict(id, title string) Verdict {
	v := Verdict{ID: id, Title: title, Looked: c.judged, Answer: Holds}
	switch {
	case c.violations > 0:
		v.Answer, v.Why, v.Server, v.At, v.Evidence = Violated, c.violationText, c.violationServer, c.violationTime, c.evidence
		if v.Server != "" {
			v.Why = nameServer(v.Why, v.Server)
		}
		if c.violations > 1 {
			v.Why += fmt.Sprintf(" It is the first of %d.", c.violations)
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

// endTime is the time of the last event.
func (c *checker) endTime() time.Duration {
	if order := c.x.Order(); len(order) > 0 {
		return c.x.Event(order[len(order)-1]).T
	}
	return 0
}

// closeTime is when the manager began to close; the end of the history if it never did.
func (c *checker) closeTime() time.Duration {
	for _, i := range c.x.ServerEvents("") {
		if e := c.x.Event(i); e.Kind == history.Closing {
			return e.T
		}
	}
	return c.endTime()
}

// healTime is when every fault had ended.
func (c *checker) healTime() (time.Duration, bool) {
	for _, i := range c.x.ServerEvents("") {
		if e := c.x.Event(i); e.Kind == history.Heal {
			return e.T, true
		}
	}
	return 0, false
}

// serverSpec is the plan of a server. A history may hold one that the plan does not know: it has the defaults.
func (c *checker) serverSpec(name string) *scenario.Server {
	if s := c.spec[name]; s != nil {
		return s
	}
	s := &scenario.Server{Name: name, ConnectTimeout: 30 * time.Second, CallTimeout: time.Minute}
	c.spec[name] = s
	return s
}

// timeText is a time as a person reads it.
func timeText(t time.Duration) string { return t.Round(time.Millisecond).String() }

// subjectPattern is what a reason begins with that does not say of which server it speaks.
var subjectPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(The server|Connection \d+|(A caller made call|Call) \S+ of tool [^ ,]+)`)
})

// nameServer is a reason that names the server.
func nameServer(why, server string) string {
	at := subjectPattern().FindString(why)
	switch {
	case at == "":
		return why
	case at == "The server":
		return at + " " + server + why[len(at):]
	}
	return at + " of " + server + why[len(at):]
}
