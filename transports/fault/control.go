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

// Control holds the rules of some conversations. It is safe for concurrent use, and costs nothing but one atomic load
// per message while it has none. New makes one.
type Control struct {
	*sharedRules
	server   string
	location Location
}

type sharedRules struct {
	seed uint64
	// rules is nil while there are none. A slice that was stored is never changed.
	rules atomic.Pointer[[]*rule]

	mu      sync.Mutex
	next    int
	changed chan struct{}
	onHit   func(Hit)
}

// New makes a control with rules, which may be none, for Wrap; see At for other places. The seed decides everything that is
// left to chance.
func New(seed uint64, rules ...Rule) (*Control, error) {
	c := &Control{sharedRules: &sharedRules{seed: seed, changed: make(chan struct{})}, location: Program}
	return c, c.Set(rules)
}

// Named is the same control for one server: its rules, and those changes too. The name is what Rule.Server is compared
// with.
func (c *Control) Named(server string) *Control { return &Control{c.sharedRules, server, c.location} }

// At is the same control for a place: Add and Set refuse what cannot be done there. New's is Program.
func (c *Control) At(p Location) *Control { return &Control{c.sharedRules, c.server, p} }

// Add puts a rule in force, behind those that are, and returns its name.
func (c *Control) Add(r Rule) (name string, err error) {
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

func (c *Control) freshName(rules []*rule) string {
	for {
		c.next++
		name := "r" + strconv.Itoa(c.next)
		if !slices.ContainsFunc(rules, func(o *rule) bool { return o.Name == name }) {
			return name
		}
	}
}

// Remove takes a rule out of force. What it has done to messages that are still on their way is not undone.
func (c *Control) Remove(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// Set replaces all rules at once, or none if one of them cannot be used. A rule that is in force already, with equal
// words, goes on: its time and its counts are not begun again.
func (c *Control) Set(rules []Rule) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := slices.Clone(c.currentRules())
	var set []*rule
	for i, r := range rules {
		same := slices.IndexFunc(old, func(o *rule) bool {
			return o.Rule.String() == r.String() || r.Name == "" && o.textWithoutName() == r.String()
		})
		if same >= 0 {
			set = append(set, old[same])
			old = slices.Delete(old, same, same+1)
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

// storeRules is called with the lock held.
func (c *Control) storeRules(rules []*rule) {
	if len(rules) == 0 {
		c.rules.Store(nil)
	} else {
		c.rules.Store(&rules)
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Control) currentRules() []*rule {
	if p := c.rules.Load(); p != nil {
		return *p
	}
	return nil
}

// Changed is closed when the rules change the next time.
func (c *Control) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Passive reports whether there is no rule.
func (c *Control) Passive() bool { return c.rules.Load() == nil }

// Watch lets f be told of every fault that is done, by whatever goroutine does it. It must return quickly.
func (c *Control) Watch(f func(Hit)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onHit = f
}

func (c *Control) reportHit(h Hit) {
	c.mu.Lock()
	f := c.onHit
	c.mu.Unlock()
	if f != nil {
		f(h)
	}
}

// Hit is one fault that was done.
type Hit struct {
	// Rule is the rule's name; Server, Method, Tool and ID are those of the message, empty if it was not about one.
	Rule, Fault, Server, Method, Tool, ID string
	// Text says in a few words what was done.
	Text string
}

// Status is a rule in force with what it has done.
type Status struct {
	Rule Rule `json:"rule"`
	// Matched counts the messages that it was about, Done those that it hit (and the instants that have happened).
	Matched int `json:"matched"`
	Done    int `json:"done"`
	// Active says whether its time is now.
	Active bool `json:"active"`
}

// List is the rules in force.
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

// rule is a Rule in force.
type rule struct {
	Rule
	kind    Kind
	values  values
	methods []string
	tools   []string
	servers []string
	// needsMessage says that the rule is about certain messages, so that an instant waits for one.
	needsMessage bool
	maxHits      int // Times, or the fault's own
	added        time.Time

	mu            sync.Mutex
	seenCounts    map[string]int // messages by what they are about
	matched, done int
	instants      map[string]int // how many instants have happened, by server
}

func (r *rule) textWithoutName() string {
	u := r.Rule
	u.Name = ""
	return u.String()
}

// currentWindow reports whether the rule's time is now, and which of its repetitions that is, from 0.
func (r *rule) currentWindow(now time.Time) (n int, active bool) {
	t := now.Sub(r.added) - time.Duration(r.At)
	if t < 0 {
		return -1, false
	}
	if r.Every > 0 {
		n = int(t / time.Duration(r.Every))
		t %= time.Duration(r.Every)
	}
	return n, r.For == 0 || t < time.Duration(r.For)
}

// nextWindowChange is when the window changes the next time, zero if it never does.
func (r *rule) nextWindowChange(now time.Time) time.Time {
	begin := r.added.Add(time.Duration(r.At))
	if now.Before(begin) {
		return begin
	}
	if r.Every > 0 {
		begin = begin.Add(now.Sub(begin) / time.Duration(r.Every) * time.Duration(r.Every))
	}
	if r.For > 0 && now.Before(begin.Add(time.Duration(r.For))) {
		return begin.Add(time.Duration(r.For))
	}
	if r.Every > 0 {
		return begin.Add(time.Duration(r.Every))
	}
	return time.Time{}
}

// drawHit decides whether a message is hit. What it draws hangs on the seed, the rule's name, what the message is about and
// how many of those there were.
func (r *rule) drawHit(seed uint64, server string, d Direction, method, tool string) (*rand.Rand, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := server + "\x00" + string(d) + "\x00" + method + "\x00" + tool
	r.seenCounts[key]++
	r.matched++
	if r.maxHits > 0 && r.done >= r.maxHits || r.Nth > 1 && r.matched%r.Nth != 0 {
		return nil, false
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.Name + "\x00" + key))
	rng := rand.New(rand.NewPCG(seed, h.Sum64()+uint64(r.seenCounts[key])*0x9e3779b97f4a7c15))
	if r.Chance > 0 && r.Chance < 1 && rng.Float64() >= r.Chance {
		return nil, false
	}
	r.done++
	return rng, true
}
