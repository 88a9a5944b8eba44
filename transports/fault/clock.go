package fault

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// This file holds the faults that begin, end or repeat by the clock and not by a message: instants, storms, noise.

// A clockState is the progress of one rule in one flow. Flow.mu guards it.
type clockState struct {
	window int       // the last window that has begun, from 1; 0 before the first
	active bool      // the rule is inside a window
	next   time.Time // when onPeriod is due next, inside a window
	count  int       // calls of onPeriod in this window
}

// A progressSeries sends progress notifications for one request, at equal intervals.
type progressSeries struct {
	rule           *rule
	call           *call
	every          time.Duration
	next           time.Time // when the next notification is due
	n              int       // the progress value of the last one
	untilCancelled bool      // the series goes on after the answer, until the client cancels the request
}

// A clockEffect is the part of a fault that acts by the time.
type clockEffect struct {
	// begin and end run when a window of the rule begins and ends, nil for none; an instant only has begin.
	begin, end func(*clockContext)
	// period returns the time between two calls of onPeriod inside a window; nil if there are none.
	period   func(Values) time.Duration
	onPeriod func(*clockContext)
}

// A clockContext is the argument of the functions of a clockEffect: they add events to it. It is valid during the
// call only.
type clockContext struct {
	f      *Flow
	r      *rule
	n      int // how many periods there were before in this window
	events *[]Event
}

// emitEvent adds an event, counts it as done by the rule and reports the Hit. Flow.mu is held.
func (m *clockContext) emitEvent(e Event, text string) {
	// An event of the clock is about no message, so Method, Tool and ID stay empty.
	e.Hit = Hit{Rule: m.r.Name, Fault: m.r.kind.Name, Server: m.f.control.server, Text: text}
	*m.events = append(*m.events, e)
	m.r.mu.Lock()
	m.r.done++
	m.r.mu.Unlock()
	m.r.effects.Add(1)
	m.f.control.reportHit(e.Hit)
}

// Tick returns the events that are due now, in the order in which the caller must perform them, and the time of the
// next call: zero if only a change of the rules ([Control.Changed]) or a message can bring an event. The caller may
// call it earlier at any time.
func (f *Flow) Tick() (events []Event, wake time.Time) {
	if f.control.Passive() && f.isIdle() { // without rules, windows and series nothing can be due
		return nil, time.Time{}
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	// wake becomes the earliest of all times.
	wakeBy := func(t time.Time) {
		if !t.IsZero() && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	rules := f.control.currentRules()
	// A rule that was removed inside a window ends like one whose window ends, so that a stopped process goes on.
	for r, b := range f.clockStates {
		if b.active && !slices.Contains(rules, r) {
			f.leaveWindow(r, b, &events)
			delete(f.clockStates, r)
		}
	}
	for _, r := range rules {
		c := r.kind.effect.clock
		// Rules without a clock, instants that wait for a message, and rules for other servers are none of Tick's
		// business.
		if c == nil || r.needsMessage || !matchesAny(r.servers, f.control.server) {
			continue
		}
		b := f.clockStates[r]
		if b == nil {
			b = &clockState{}
			f.clockStates[r] = b
		}
		// advanceRule runs before the times are read, because it moves them.
		f.advanceRule(r, c, b, now, &events)
		wakeBy(r.nextWindowChange(now))
		if b.active && c.period != nil {
			wakeBy(b.next)
		}
	}
	// Missed notifications of a series are not made up for: the client only needs to see that the work goes on.
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

// isIdle reports whether no series and no window is left, after the series of removed rules were dropped.
func (f *Flow) isIdle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Removing a rule ends its series at once.
	f.series = slices.DeleteFunc(f.series, func(s *progressSeries) bool { return !f.inForce(s.rule) })
	return len(f.series) == 0 && len(f.clockStates) == 0
}

// advanceRule brings one rule to the time now: it begins and ends windows, and runs the periods that are due. Flow.mu
// is held.
func (f *Flow) advanceRule(r *rule, c *clockEffect, b *clockState, now time.Time, events *[]Event) {
	// The window follows from the time alone, so a late call of Tick skips windows instead of running them all.
	n, active := r.currentWindow(now)
	r.mu.Lock()
	exhausted := r.maxHits > 0 && r.done >= r.maxHits // Times is used up
	r.mu.Unlock()
	switch {
	case active && !exhausted && (!b.active || b.window != n+1):
		// An instant happens once per server and window: a second connection of the same server only marks the window
		// as begun.
		if r.kind.Instant.Has(rules) && !r.claimInstant(f.control.server, n) {
			b.window, b.active = n+1, true
			return
		}
		// The last window passed unseen, or windows follow each other without a gap.
		if b.active {
			f.leaveWindow(r, b, events)
		}
		b.window, b.active, b.next, b.count = n+1, true, now, 0
		if c.begin != nil {
			c.begin(&clockContext{f, r, 0, events})
		}
		// crash-loop counts from the start of the server; every other fault begins with its first period.
		if c.period != nil && r.kind.Name == crashLoop {
			b.next = now.Add(c.period(r.values))
		}
	case !active && b.active:
		f.leaveWindow(r, b, events)
	}
	if !b.active || c.period == nil || exhausted {
		return
	}
	// Missed periods are made up for, so that rates are right; beyond 1,000 the rest is dropped, so that a program
	// that was suspended is not flooded when it goes on.
	for missed := 0; !now.Before(b.next); missed++ {
		if missed == 1000 {
			b.next = now
		}
		c.onPeriod(&clockContext{f, r, b.count, events})
		b.count++
		// The next period counts from the last one and not from now, or the rate would drift with each delay of the
		// caller.
		b.next = b.next.Add(max(c.period(r.values), time.Millisecond))
	}
}

// leaveWindow ends a window of a rule. Flow.mu is held.
func (f *Flow) leaveWindow(r *rule, b *clockState, events *[]Event) {
	b.active = false
	if end := r.kind.effect.clock.end; end != nil {
		end(&clockContext{f, r, b.count, events})
	}
}

// claimInstant reports whether an instant has not happened yet to this server in the n-th window, and marks it as
// happened.
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

// FaultActive reports whether a fault is in force now. It serves the faults that are a state and not an event
// (ignore-term, stale-session-400), which the proxy itself performs.
func (f *Flow) FaultActive(name string) bool { _, active := f.activeRule(name); return active }

// activeRule returns the first rule of a fault that is in force now for this server.
func (f *Flow) activeRule(name string) (*rule, bool) {
	for _, r := range f.control.currentRules() {
		// Other limits of the rule (on, tool) name messages, which a state has not.
		if r.kind.Name != name || !matchesAny(r.servers, f.control.server) {
			continue
		}
		if _, active := r.currentWindow(time.Now()); active {
			return r, true
		}
	}
	return nil, false
}

// Active reports whether a rule, by its name, is in force now; false for a rule that was removed.
func (f *Flow) Active(rule string) bool {
	for _, r := range f.control.currentRules() {
		if r.Name == rule {
			_, active := r.currentWindow(time.Now())
			return active
		}
	}
	return false
}

// RecordHit counts and reports a fault that the caller performed itself, after FaultActive.
func (f *Flow) RecordHit(name, text string) {
	if r, active := f.activeRule(name); active {
		r.mu.Lock()
		r.done++
		r.mu.Unlock()
		r.effects.Add(1)
		f.control.reportHit(Hit{Rule: r.Name, Fault: name, Server: f.control.server, Text: text})
	}
}

// FaultParam returns a parameter of a fault that is in force, as text; empty if the fault is not in force.
func (f *Flow) FaultParam(name, param string) string {
	r, active := f.activeRule(name)
	if !active {
		return ""
	}
	return fmt.Sprint(r.values[param])
}

// newProgress returns a progress notification; token is the request's token as it stood in the JSON.
func newProgress(token json.RawMessage, n int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, n)
}
