package fault

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// What happens by the clock: instants, storms, noise.

// beat is where a rule is in a flow.
type beat struct {
	window int // the last one that has begun, from 1
	active bool
	next   time.Time
	count  int
}

// series are notifications of progress for a request.
type series struct {
	rule     *rule
	call     *call
	every    time.Duration
	next     time.Time
	n        int
	withheld bool // the answer does not end it
}

// clock is what a fault does by the time.
type clock struct {
	// begin and end are called when a window of the rule begins and ends; an instant only has begin.
	begin, end func(*moment)
	// period is how often beat is called inside a window; 0: never.
	period func(values) time.Duration
	beat   func(*moment)
}

// moment is what a clock works with.
type moment struct {
	f      *Flow
	r      *rule
	n      int // how many beats there were before
	events *[]Event
}

func (m *moment) happen(e Event, text string) {
	e.Hit = Hit{Rule: m.r.Name, Fault: m.r.kind.Name, Server: m.f.control.server, Text: text}
	*m.events = append(*m.events, e)
	m.r.mu.Lock()
	m.r.done++
	m.r.mu.Unlock()
	m.f.control.tell(e.Hit)
}

// Tick says what happens now, and when to ask again at the latest: zero if only a change of the rules, or a message, can
// bring something. The events are to be done in their order.
func (f *Flow) Tick() (events []Event, wake time.Time) {
	if f.control.Passive() && f.quiet() {
		return nil, time.Time{}
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	sooner := func(t time.Time) {
		if !t.IsZero() && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	rules := f.control.current()
	for r, b := range f.beats {
		if b.active && !slices.Contains(rules, r) {
			f.leave(r, b, &events)
			delete(f.beats, r)
		}
	}
	for _, r := range rules {
		c := r.kind.effect.clock
		if c == nil || r.matcher || !anyMatches(r.servers, f.control.server) {
			continue
		}
		b := f.beats[r]
		if b == nil {
			b = &beat{}
			f.beats[r] = b
		}
		f.advance(r, c, b, now, &events)
		sooner(r.wake(now))
		if b.active && c.period != nil {
			sooner(b.next)
		}
	}
	for _, s := range f.series {
		if !now.Before(s.next) {
			s.n++
			events = append(events, Event{Do: Deliver, Call: s.call.id, Body: progress(s.call.token, s.n), Hit: Hit{
				Rule: s.rule.Name, Fault: s.rule.kind.Name, Server: f.control.server, Method: s.call.method, Tool: s.call.tool,
				ID: s.call.id, Text: "progress was reported"}})
			s.next = now.Add(s.every)
		}
		sooner(s.next)
	}
	return events, wake
}

func (f *Flow) quiet() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series = slices.DeleteFunc(f.series, func(s *series) bool { return !f.inForce(s.rule) })
	return len(f.series) == 0 && len(f.beats) == 0
}

func (f *Flow) advance(r *rule, c *clock, b *beat, now time.Time, events *[]Event) {
	n, active := r.window(now)
	r.mu.Lock()
	spent := r.most > 0 && r.done >= r.most
	r.mu.Unlock()
	switch {
	case active && !spent && (!b.active || b.window != n+1):
		if r.kind.Instant && !r.first(f.control.server, n) {
			b.window, b.active = n+1, true
			return
		}
		if b.active {
			f.leave(r, b, events)
		}
		b.window, b.active, b.next, b.count = n+1, true, now, 0
		if c.begin != nil {
			c.begin(&moment{f, r, 0, events})
		}
		if c.period != nil && r.kind.Name == crashLoop {
			b.next = now.Add(c.period(r.values))
		}
	case !active && b.active:
		f.leave(r, b, events)
	}
	if !b.active || c.period == nil || spent {
		return
	}
	// Beats that were missed are made up for, but a program that was stopped is not flooded.
	for made := 0; !now.Before(b.next); made++ {
		if made == 1000 {
			b.next = now
		}
		c.beat(&moment{f, r, b.count, events})
		b.count++
		b.next = b.next.Add(max(c.period(r.values), time.Millisecond))
	}
}

func (f *Flow) leave(r *rule, b *beat, events *[]Event) {
	b.active = false
	if end := r.kind.effect.clock.end; end != nil {
		end(&moment{f, r, b.count, events})
	}
}

// first reports whether an instant has not happened yet to this server in the n-th window, and notes that it has.
func (r *rule) first(server string, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.instants == nil {
		r.instants = map[string]int{}
	}
	if r.instants[server] > n {
		return false
	}
	r.instants[server] = n + 1
	return true
}

// On reports whether a fault that is a state, and no deed, is in force now, with its parameters.
func (f *Flow) On(name string) bool { _, on := f.state(name); return on }

func (f *Flow) state(name string) (*rule, bool) {
	for _, r := range f.control.current() {
		if r.kind.Name != name || !anyMatches(r.servers, f.control.server) {
			continue
		}
		if _, active := r.window(time.Now()); active {
			return r, true
		}
	}
	return nil, false
}

// Active reports whether a rule's time is now. One that was removed has none.
func (f *Flow) Active(rule string) bool {
	for _, r := range f.control.current() {
		if r.Name == rule {
			_, active := r.window(time.Now())
			return active
		}
	}
	return false
}

// Note tells of a fault that somebody else has done: one that is a state.
func (f *Flow) Note(name, text string) {
	if r, on := f.state(name); on {
		r.mu.Lock()
		r.done++
		r.mu.Unlock()
		f.control.tell(Hit{Rule: r.Name, Fault: name, Server: f.control.server, Text: text})
	}
}

// Param is a parameter of a fault that is in force, as text.
func (f *Flow) Param(name, param string) string {
	r, on := f.state(name)
	if !on {
		return ""
	}
	return fmt.Sprint(r.values[param])
}

func progress(token json.RawMessage, n int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, n)
}
