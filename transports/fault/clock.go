package fault

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// What happens by the clock: instants, storms, noise.

// clockState is where a rule is in a flow.
type clockState struct {
	window int // the last one that has begun, from 1
	active bool
	next   time.Time
	count  int
}

// progressSeries are notifications of progress for a request.
type progressSeries struct {
	rule           *rule
	call           *call
	every          time.Duration
	next           time.Time
	n              int
	untilCancelled bool // the answer does not end it
}

// clockEffect is what a fault does by the time.
type clockEffect struct {
	// begin and end are called when a window of the rule begins and ends; an instant only has begin.
	begin, end func(*clockContext)
	// period is how often beat is called inside a window; 0: never.
	period   func(values) time.Duration
	onPeriod func(*clockContext)
}

// clockContext is what a clock works with.
type clockContext struct {
	f      *Flow
	r      *rule
	n      int // how many beats there were before
	events *[]Event
}

func (m *clockContext) emitEvent(e Event, text string) {
	e.Hit = Hit{Rule: m.r.Name, Fault: m.r.kind.Name, Server: m.f.control.server, Text: text}
	*m.events = append(*m.events, e)
	m.r.mu.Lock()
	m.r.done++
	m.r.mu.Unlock()
	m.f.control.reportHit(e.Hit)
}

// Tick says what happens now, and when to ask again at the latest: zero if only a change of the rules, or a message, can
// bring something. The events are to be done in their order.
func (f *Flow) Tick() (events []Event, wake time.Time) {
	if f.control.Passive() && f.isIdle() {
		return nil, time.Time{}
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	wakeBy := func(t time.Time) {
		if !t.IsZero() && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	rules := f.control.currentRules()
	for r, b := range f.clockStates {
		if b.active && !slices.Contains(rules, r) {
			f.leaveWindow(r, b, &events)
			delete(f.clockStates, r)
		}
	}
	for _, r := range rules {
		c := r.kind.effect.clock
		if c == nil || r.needsMessage || !matchesAny(r.servers, f.control.server) {
			continue
		}
		b := f.clockStates[r]
		if b == nil {
			b = &clockState{}
			f.clockStates[r] = b
		}
		f.advanceRule(r, c, b, now, &events)
		wakeBy(r.nextWindowChange(now))
		if b.active && c.period != nil {
			wakeBy(b.next)
		}
	}
	for _, s := range f.series {
		if !now.Before(s.next) {
			s.n++
			events = append(events, Event{Do: Deliver, Call: s.call.id, Body: newProgress(s.call.token, s.n), Hit: Hit{
				Rule: s.rule.Name, Fault: s.rule.kind.Name, Server: f.control.server, Method: s.call.method, Tool: s.call.tool,
				ID: s.call.id, Text: "progress was reported"}})
			s.next = now.Add(s.every)
		}
		wakeBy(s.next)
	}
	return events, wake
}

func (f *Flow) isIdle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series = slices.DeleteFunc(f.series, func(s *progressSeries) bool { return !f.inForce(s.rule) })
	return len(f.series) == 0 && len(f.clockStates) == 0
}

func (f *Flow) advanceRule(r *rule, c *clockEffect, b *clockState, now time.Time, events *[]Event) {
	n, active := r.currentWindow(now)
	r.mu.Lock()
	exhausted := r.maxHits > 0 && r.done >= r.maxHits
	r.mu.Unlock()
	switch {
	case active && !exhausted && (!b.active || b.window != n+1):
		if r.kind.Instant && !r.claimInstant(f.control.server, n) {
			b.window, b.active = n+1, true
			return
		}
		if b.active {
			f.leaveWindow(r, b, events)
		}
		b.window, b.active, b.next, b.count = n+1, true, now, 0
		if c.begin != nil {
			c.begin(&clockContext{f, r, 0, events})
		}
		if c.period != nil && r.kind.Name == crashLoop {
			b.next = now.Add(c.period(r.values))
		}
	case !active && b.active:
		f.leaveWindow(r, b, events)
	}
	if !b.active || c.period == nil || exhausted {
		return
	}
	// Beats that were missed are made up for, but a program that was stopped is not flooded.
	for missed := 0; !now.Before(b.next); missed++ {
		if missed == 1000 {
			b.next = now
		}
		c.onPeriod(&clockContext{f, r, b.count, events})
		b.count++
		b.next = b.next.Add(max(c.period(r.values), time.Millisecond))
	}
}

func (f *Flow) leaveWindow(r *rule, b *clockState, events *[]Event) {
	b.active = false
	if end := r.kind.effect.clock.end; end != nil {
		end(&clockContext{f, r, b.count, events})
	}
}

// claimInstant reports whether an instant has not happened yet to this server in the n-th window, and notes that it has.
func (r *rule) claimInstant(server string, n int) bool {
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

// FaultActive reports whether a fault that is a state, and no deed, is in force now, with its parameters.
func (f *Flow) FaultActive(name string) bool { _, active := f.activeRule(name); return active }

func (f *Flow) activeRule(name string) (*rule, bool) {
	for _, r := range f.control.currentRules() {
		if r.kind.Name != name || !matchesAny(r.servers, f.control.server) {
			continue
		}
		if _, active := r.currentWindow(time.Now()); active {
			return r, true
		}
	}
	return nil, false
}

// Active reports whether a rule's time is now. One that was removed has none.
func (f *Flow) Active(rule string) bool {
	for _, r := range f.control.currentRules() {
		if r.Name == rule {
			_, active := r.currentWindow(time.Now())
			return active
		}
	}
	return false
}

// RecordHit tells of a fault that somebody else has done: one that is a state.
func (f *Flow) RecordHit(name, text string) {
	if r, active := f.activeRule(name); active {
		r.mu.Lock()
		r.done++
		r.mu.Unlock()
		f.control.reportHit(Hit{Rule: r.Name, Fault: name, Server: f.control.server, Text: text})
	}
}

// FaultParam is a parameter of a fault that is in force, as text.
func (f *Flow) FaultParam(name, param string) string {
	r, active := f.activeRule(name)
	if !active {
		return ""
	}
	return fmt.Sprint(r.values[param])
}

func newProgress(token json.RawMessage, n int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, n)
}
