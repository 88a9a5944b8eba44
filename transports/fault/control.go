package fault

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Control holds the rules of some conversations. It is safe for concurrent use, and costs one atomic load per message
// while it has no rule. New makes one; [Control.Named] and [Control.At] return views that share its rules.
type Control struct {
	*sharedRules
	server   string
	location Location // the name of the server, for Rule.Server; empty for none
} // where the rules are performed; decides which kinds are refused

// sharedRules are the state behind all views of a Control.
type sharedRules struct {
	seed uint64
	// rules is nil while there are none. A stored slice is never changed, so readers need no lock.
	rules atomic.Pointer[[]*rule]

	// mu guards the fields below, and orders the changes of rules.
	mu      sync.Mutex
	next    int           // number of the last name that freshName gave
	changed chan struct{} // closed and replaced at each change of the rules
	onHit   func(Hit)
	// keepIdle is set for a test, which is told at its end of the rules that never did anything; removed are those of them that
	// are not in force any more. It does not change after the control was made.
	keepIdle bool
	removed  []*rule
}

// New returns a control with rules, which may be none, for [Wrap]; see [Control.At] for other locations. The seed
// decides everything that is left to chance. An error is that of [Control.Set].
func New(seed uint64, rules ...Rule) (*Control, error) {
	c := newControl(seed, Program)
	return c, c.Set(rules)
}

// newControl returns a control without rules.
func newControl(seed uint64, at Location) *Control {
	return &Control{sharedRules: &sharedRules{seed: seed, changed: make(chan struct{})}, location: at}
}

// Named returns a view of the control for one server: the same rules, and later changes of them too. The name is
// compared with Rule.Server.
func (c *Control) Named(server string) *Control { return &Control{c.sharedRules, server, c.location} }

// At returns a view of the control for a location: Add and Set refuse kinds that cannot be done there. New's location
// is Program.
func (c *Control) At(p Location) *Control { return &Control{c.sharedRules, c.server, p} }

// Add puts a rule in force behind the others, and returns its name. The times of the rule count from now. An error is
// a *RuleError.
func (c *Control) Add(r Rule) (name string, err error) {
	// The rule is checked before the lock is taken: a rule that cannot be used changes nothing.
	compiled, err := compileRule(r, c.location)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rules := c.currentRules()
	if r.Name == "" {
		compiled.Name = c.freshName(rules)
	} else if slices.ContainsFunc(rules, func(o *rule) bool { return o.Name == r.Name }) {
		return "", &RuleError{Text: fmt.Sprintf("there is a rule %q already", r.Name), Fix: "remove it first, or choose another name"}
	}
	compiled.added = time.Now()
	c.storeRules(append(slices.Clone(rules), compiled))
	return compiled.Name, nil
}

// freshName returns a name that no rule has: r1, r2 … The caller holds mu.
func (c *Control) freshName(rules []*rule) string {
	for {
		c.next++
		name := "r" + strconv.Itoa(c.next)
		if !slices.ContainsFunc(rules, func(o *rule) bool { return o.Name == name }) {
			return name
		}
	}
}

// Remove takes a rule out of force. Its delays of messages that are already under way are not undone.
func (c *Control) Remove(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The stored slice is never changed: flows may be reading it.
	rules := slices.Clone(c.currentRules())
	i := slices.IndexFunc(rules, func(o *rule) bool { return o.Name == name })
	if i < 0 {
		var known []string
		for _, o := range rules {
			known = append(known, o.Name)
		}
		fix := "there is no rule at all"
		if len(known) > 0 {
			fix = suggestFix(name, known)
		}
		return &RuleError{Text: fmt.Sprintf("there is no rule %q", name), Fix: fix}
	}
	c.storeRules(slices.Delete(rules, i, i+1))
	return nil
}

// Set replaces all rules at once, or none if one of them cannot be used. A rule that is in force already, with an
// equal text, stays: its times and its counts go on.
func (c *Control) Set(rules []Rule) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := slices.Clone(c.currentRules())
	var set []*rule
	for i, r := range rules {
		// Set runs on every change of a file of rules, so a rule that did not change must not begin again.
		same := slices.IndexFunc(old, func(o *rule) bool {
			// A rule without a name was named when it was added, so the texts are compared without it.
			return r.problem == "" && o.Rule.String() == r.String() || r.problem == "" && r.Name == "" && o.textWithoutName() == r.String()
		})
		if same >= 0 {
			set = append(set, old[same])
			old = slices.Delete(old, same, same+1) // one old rule serves one new one: equal rules may be given twice
			continue
		}
		compiled, err := compileRule(r, c.location)
		if err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		if r.Name != "" && slices.ContainsFunc(set, func(o *rule) bool { return o.Name == r.Name }) {
			return &RuleError{Text: fmt.Sprintf("rule %d: there is a rule %q already", i+1, r.Name)}
		}
		compiled.added = time.Now()
		set = append(set, compiled)
	}
	for _, r := range set {
		// Names are given last, when those of all rules are known.
		if r.Name == "" {
			r.Name = c.freshName(set)
		}
	}
	c.storeRules(set)
	return nil
}

// Clear removes every rule.
func (c *Control) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storeRules(nil)
}

// storeRules makes rules the rules in force and wakes the readers of Changed. The caller holds mu.
func (c *Control) storeRules(rules []*rule) {
	for _, r := range c.currentRules() {
		if c.keepIdle && !slices.Contains(rules, r) {
			c.removed = append(c.removed, r)
		}
	}
	if len(rules) == 0 {
		c.rules.Store(nil) // nil makes Passive one atomic load
	} else {
		c.rules.Store(&rules)
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// currentRules returns the rules in force; the caller must not change the slice.
func (c *Control) currentRules() []*rule {
	if p := c.rules.Load(); p != nil {
		return *p
	}
	return nil
}

// Changed returns a channel that is closed when the rules change the next time.
func (c *Control) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Passive reports whether there is no rule at all.
func (c *Control) Passive() bool { return c.rules.Load() == nil }

// Watch registers f, which is called for every fault that is done, on the goroutine that does it; a second call
// replaces the first. f must return quickly and must not use a Flow, because a flow is locked during the call.
func (c *Control) Watch(f func(Hit)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onHit = f
}

// reportHit calls the function of Watch, without holding the lock of the rules.
func (c *Control) reportHit(h Hit) {
	c.mu.Lock()
	f := c.onHit
	c.mu.Unlock()
	if f != nil {
		f(h)
	}
}

// A Hit reports one fault that was done.
type Hit struct {
	// Rule is the rule's name, Fault its kind; Server, Method, Tool and ID are those of the message, empty if the
	// fault was not about one.
	Rule, Fault, Server, Method, Tool, ID string
	// Text says in a few words what happened.
	Text string
}

// Status is a rule in force with its counts.
type Status struct {
	Rule Rule `json:"rule"`
	// Matched counts the messages that the rule's patterns fit, Done those that it hit, and the instants that have
	// happened.
	Matched int `json:"matched"`
	Done    int `json:"done"`
	// Active is true if the rule is in force now: its time has come, and Times is not used up.
	Active bool `json:"active"`
}

// List returns the rules in force, in their order, with their counts.
func (c *Control) List() []Status {
	var out []Status
	now := time.Now()
	for _, r := range c.currentRules() {
		r.mu.Lock()
		s := Status{Rule: r.Rule, Matched: r.matched, Done: r.done}
		r.mu.Unlock()
		_, s.Active = r.currentWindow(now)
		s.Active = s.Active && (r.maxHits == 0 || s.Done < r.maxHits)
		out = append(out, s)
	}
	return out
}

// A rule is a compiled Rule in force. Its fields down to added never change, so messages read them without a lock.
type rule struct {
	Rule
	kind    Kind
	values  Values   // the parameters, parsed, with the defaults of the kind
	methods []string // patterns; empty fits every method
	tools   []string
	servers []string
	// needsMessage is true if the rule is limited to certain messages, so that an instant waits for such a message
	// instead of the clock.
	needsMessage bool
	maxHits      int       // Rule.Times, or the kind's own; 0: no limit
	added        time.Time // when the rule was added: the zero of At, For and Every

	// mu guards the counts below. It is taken while Flow.mu is held.
	mu            sync.Mutex
	seenCounts    map[string]int // messages by server, direction, method and tool; they number the random draws
	matched, done int            // the counts of Status
	instants      map[string]int // by server: the number of the last window whose instant has happened

	effects atomic.Int64 // how often it changed something: done counts the messages that it chose
}

// textWithoutName returns the text of the rule without its name, which Set compares.
func (r *rule) textWithoutName() string {
	u := r.Rule
	u.Name = ""
	return u.String()
}

// currentWindow reports whether the rule's time is now, and which of its repetitions (Every) that is, from 0. Before
// the first it returns -1.
func (r *rule) currentWindow(now time.Time) (n int, active bool) {
	t := now.Sub(r.added) - time.Duration(r.At)
	if t < 0 {
		return -1, false
	}
	if r.Every > 0 {
		n = int(t / time.Duration(r.Every))
		// From here on t is the time since the beginning of this repetition.
		t %= time.Duration(r.Every)
	}
	return n, r.For == 0 || t < time.Duration(r.For)
}

// nextWindowChange returns the next time at which a window begins or ends, zero if there is none. Tick sleeps until
// then.
func (r *rule) nextWindowChange(now time.Time) time.Time {
	begin := r.added.Add(time.Duration(r.At))
	// Before its beginning a rule has one change ahead: the beginning.
	if now.Before(begin) {
		return begin
	}
	if r.Every > 0 {
		begin = begin.Add(now.Sub(begin) / time.Duration(r.Every) * time.Duration(r.Every))
	}
	// Inside a window the next change is its end, else the next repetition.
	if r.For > 0 && now.Before(begin.Add(time.Duration(r.For))) {
		return begin.Add(time.Duration(r.For))
	}
	if r.Every > 0 {
		return begin.Add(time.Duration(r.Every))
	}
	return time.Time{}
}

// drawHit decides whether a message is hit, and returns the random source for the effect's own draws. Both depend on
// the seed, the rule's name, the kind of the message and the number of those before it, and on nothing else: so a
// conversation can be repeated.
func (r *rule) drawHit(seed uint64, server string, d Direction, method, tool string) (*rand.Rand, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := server + "\x00" + string(d) + "\x00" + method + "\x00" + tool
	r.seenCounts[key]++
	r.matched++
	// Matched is counted before Nth and Times are looked at: Nth counts matching messages.
	if r.maxHits > 0 && r.done >= r.maxHits || r.Nth > 1 && r.matched%r.Nth != 0 {
		return nil, false
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Name + "\x00" + key))
	// The count, spread by the golden ratio of 64 bits, gives each message of a kind a generator of its own.
	rng := rand.New(rand.NewPCG(seed, h.Sum64()+uint64(r.seenCounts[key])*0x9e3779b97f4a7c15))
	// A chance of 1 draws nothing, so that adding "chance=1" changes no other draw.
	if r.Chance > 0 && r.Chance < 1 && rng.Float64() >= r.Chance {
		return nil, false
	}
	r.done++
	return rng, true
}
