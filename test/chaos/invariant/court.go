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

// court hears one check: it holds the history with what the checks share, counts what was looked at, and keeps the earliest
// violation. One violation is told in full, because it is usually the cause of the rest; of the others there is a count.
type court struct {
	h    *history.History
	x    *history.Index
	plan *scenario.Plan
	*tolerance

	looked   int
	nothing  string // why nothing can be said, if nothing was looked at
	why      string
	where    string
	at       time.Duration
	evidence []int
	broken   int
	// doubts are cases that could not be decided; the first of them is told if nothing is violated and nothing was looked at.
	doubts  int
	doubt   string
	spec    map[string]*scenario.Server
	windows map[string][]window
	machine []window
	tries   map[string][]*attempt
	fulls   map[string]*fullness
	readyAt map[string]time.Duration
	told    map[string][]described
}

// tolerance is how exact the times of a run are. In virtual time an instant is an instant. In a run of real processes what
// happened is seen a moment later, more so when five hundred processes share two processors.
type tolerance struct {
	// moment is how far apart two sides may see what happens at once; late is added to every bound.
	moment, late time.Duration
	// crossing is by how much a call may be late because the machine was busy: twice the lateness that was measured.
	crossing time.Duration
	real     bool
}

// publishGap is how long the registry may wait for more changes before it publishes a snapshot: 25 ms, as its comment says.
const publishGap = 25 * time.Millisecond

func newCourt(h *history.History) *court {
	c := &court{h: h, x: h.Index(), plan: &h.Plan, tolerance: &tolerance{moment: publishGap, late: publishGap}}
	if h.Plan.Tier == scenario.Real {
		lag := lagOf(h)
		c.tolerance = &tolerance{moment: 500*time.Millisecond + 2*lag, late: 2*time.Second + 4*lag, crossing: 2 * lag, real: true}
	}
	c.spec = make(map[string]*scenario.Server, len(h.Plan.Servers))
	for i := range h.Plan.Servers {
		c.spec[h.Plan.Servers[i].Name] = &h.Plan.Servers[i]
	}
	return c
}

// check makes a Check of a function that takes down what it finds.
func check(id, title, text, nothing string, judge func(*court)) Check {
	return Check{ID: id, Title: title, Text: text, Judge: func(h *history.History) Verdict {
		c := newCourt(h)
		c.nothing = nothing
		judge(c)
		c.reported(id)
		return c.verdict(id, title)
	}}
}

// violated takes down a violation that event at shows; evidence are the events that lead to it.
func (c *court) violated(server string, at int, evidence []int, format string, args ...any) {
	c.violatedAt(c.x.Event(at).T, server, at, evidence, format, args...)
}

// violatedAt is violated for what no event shows but that none has come by a time.
func (c *court) violatedAt(t time.Duration, server string, at int, evidence []int, format string, args ...any) {
	c.broken++
	if c.broken > 1 && t >= c.at {
		return
	}
	c.why, c.where, c.at = fmt.Sprintf(format, args...), server, t
	c.evidence = c.evidence[:0]
	for _, i := range append(slices.Clone(evidence), at) {
		if i >= 0 && !slices.Contains(c.evidence, i) {
			c.evidence = append(c.evidence, i)
		}
	}
}

// undecided takes down a case that this history says too little about.
func (c *court) undecided(format string, args ...any) {
	if c.doubts++; c.doubts == 1 {
		c.doubt = fmt.Sprintf(format, args...)
	}
}

// reported takes over what only the harness could see while it happened: Violation events that name this invariant.
func (c *court) reported(id string) {
	for _, server := range append([]string{""}, c.x.Servers()...) {
		for _, i := range c.x.Of(server) {
			if e := c.x.Event(i); e.Kind == history.Violation && e.Name == id {
				c.looked++
				c.violated(server, i, nil, "The harness saw it at %s, while it happened: %s.", clock(e.T),
					strings.TrimSuffix(e.Text, "."))
			}
		}
	}
}

func (c *court) verdict(id, title string) Verdict {
	v := Verdict{ID: id, Title: title, Looked: c.looked, Answer: Holds}
	switch {
	case c.broken > 0:
		v.Answer, v.Why, v.Server, v.At, v.Evidence = Violated, c.why, c.where, c.at, c.evidence
		if v.Server != "" {
			v.Why = named(v.Why, v.Server)
		}
		if c.broken > 1 {
			v.Why += fmt.Sprintf(" It is the first of %d.", c.broken)
		}
		shown := -1
		if n := len(c.evidence); n > 0 {
			shown = c.evidence[n-1]
		}
		v.Before = c.lead(c.where, c.at, shown)
	case c.looked == 0:
		v.Answer, v.Why = Inconclusive, c.nothing
		if c.doubts > 0 {
			v.Why = c.doubt
		}
	}
	return v
}

// end is the time of the last event.
func (c *court) end() time.Duration {
	if order := c.x.Order(); len(order) > 0 {
		return c.x.Event(order[len(order)-1]).T
	}
	return 0
}

// closing is when the manager began to close; the end of the history if it never did.
func (c *court) closing() time.Duration {
	for _, i := range c.x.Of("") {
		if e := c.x.Event(i); e.Kind == history.Closing {
			return e.T
		}
	}
	return c.end()
}

// healed is when every fault had ended.
func (c *court) healed() (time.Duration, bool) {
	for _, i := range c.x.Of("") {
		if e := c.x.Event(i); e.Kind == history.Heal {
			return e.T, true
		}
	}
	return 0, false
}

// server is the plan of a server. A history may hold one that the plan does not know: it has the defaults.
func (c *court) server(name string) *scenario.Server {
	if s := c.spec[name]; s != nil {
		return s
	}
	s := &scenario.Server{Name: name, ConnectTimeout: 30 * time.Second, CallTimeout: time.Minute}
	c.spec[name] = s
	return s
}

// clock is a time as a person reads it.
func clock(t time.Duration) string { return t.Round(time.Millisecond).String() }

// subject is what a reason begins with that does not say of which server it speaks.
var subject = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(The server|Connection \d+|(A caller made call|Call) \S+ of tool [^ ,]+)`)
})

// named is a reason that names the server.
func named(why, server string) string {
	at := subject().FindString(why)
	switch {
	case at == "":
		return why
	case at == "The server":
		return at + " " + server + why[len(at):]
	}
	return at + " of " + server + why[len(at):]
}
