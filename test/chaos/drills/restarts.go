package drills

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
)

// restartModel counts the failures of a server by the rules of package restart, which are written anew here so that another rule there is
// noticed.
type restartModel struct {
	policy              restart.Policy
	attempts, exhausted int
	connectedOnce       bool
	parked              bool
}

// outage is how an attempt to connect ends, or the connection that it opened: that lasts for lived (0: the attempt fails), and class and
// retryAfter are what the failed attempt ends with.
type outage struct {
	lived, retryAfter time.Duration
	class             messages.Class
}

func (o outage) String() string {
	switch {
	case o.lived > 0:
		return fmt.Sprintf("a connection that ends after %s", o.lived)
	case o.retryAfter > 0:
		return fmt.Sprintf("an attempt that fails (%s, retry after %s)", o.class, o.retryAfter)
	}
	return fmt.Sprintf("an attempt that fails (%s)", o.class)
}

// countOutage counts an outage, and returns between which delays the next attempt follows; ok is false if none follows by itself.
func (r *restartModel) countOutage(o outage) (least, most time.Duration, ok bool) {
	p, stable := r.policy, o.lived >= r.policy.Stable
	if o.lived > 0 {
		r.connectedOnce, r.parked, r.exhausted = true, false, 0
	}
	if stable {
		r.attempts = 0
	}
	switch {
	case o.lived == 0 && (o.class == messages.ClassConfig || o.class == messages.ClassMissing && !r.connectedOnce):
		r.parked = false
		return 0, 0, false
	case o.lived == 0 && o.class == messages.ClassExhausted:
		r.exhausted++
	case !stable:
		r.attempts, r.exhausted = r.attempts+1, 0
		r.parked = r.attempts >= p.NetworkPark
	}
	switch {
	case r.parked:
		least, most = time.Duration(float64(p.Probe)*(1-p.ProbeJitter)), time.Duration(float64(p.Probe)*(1+p.ProbeJitter))
		if o.retryAfter > least {
			least = min(o.retryAfter, most)
			most = max(most, o.retryAfter+r.longestExtra(o.retryAfter))
		}
	case o.retryAfter > 0:
		least, most = max(o.retryAfter, p.Floor), max(o.retryAfter+r.longestExtra(o.retryAfter), p.Floor)
	case o.lived == 0 && o.class == messages.ClassExhausted:
		least, most = p.Floor, r.longestDelay(r.exhausted)
	case stable:
		most = p.Quick
	default:
		least, most = p.Floor, r.longestDelay(r.attempts)
	}
	return least, max(least, most), true
}

// longestExtra returns the most that is added to a wait that a server asked for.
func (r *restartModel) longestExtra(wait time.Duration) time.Duration {
	return min(time.Duration(float64(wait)*r.policy.RetryAfterJitter), r.policy.Cap)
}

// longestDelay returns the longest delay after so many failures.
func (r *restartModel) longestDelay(failures int) time.Duration {
	d := float64(r.policy.NetworkBase)
	for range failures - 1 {
		d = min(d*r.policy.Factor, float64(r.policy.Cap))
	}
	return time.Duration(d)
}

// drawPolicy draws when servers are tried again.
func (s *stage) drawPolicy() restart.Policy {
	p := restart.DefaultPolicy()
	if s.isOneIn(3) {
		return p
	}
	p.NetworkBase, p.Factor = s.drawSpan(300*time.Millisecond, 3*time.Second), 1+2*s.rng.Float64()
	p.Cap, p.Floor = s.drawSpan(10*time.Second, 2*time.Minute), s.drawSpan(wokenStep+1, 250*time.Millisecond)
	p.Stable, p.Quick = s.drawSpan(5*time.Second, 2*time.Minute), s.drawSpan(0, time.Second)
	p.StdioPark, p.NetworkPark = 1, 2+s.rng.IntN(6)
	p.Probe, p.ProbeJitter = s.drawSpan(time.Minute, 10*time.Minute), s.rng.Float64()/2
	p.RetryAfterJitter, p.WakeSpread = s.rng.Float64(), s.drawSpan(0, 10*time.Second)
	return p
}

func (s *stage) drawOutage(p restart.Policy) outage {
	switch s.rng.IntN(6) {
	case 0:
		return outage{lived: s.drawSpan(time.Millisecond, p.Stable-time.Millisecond)}
	case 1:
		return outage{lived: s.drawSpan(p.Stable, 2*p.Stable)}
	case 2:
		return outage{class: messages.ClassThrottled, retryAfter: s.drawSpan(time.Millisecond, 20*time.Minute)}
	default:
		return outage{class: pickOne(s, messages.ClassNetwork, messages.ClassNetwork, messages.ClassTimeout, messages.ClassRejected, messages.ClassExhausted,
			messages.ClassExhausted, messages.ClassMissing)}
	}
}

// refusal is the error with which the attempt fails, nil if it does not.
func (o outage) refusal() error {
	if o.lived > 0 {
		return nil
	}
	return &transports.Error{Class: o.class, Text: "it lets nobody in", RetryAfter: o.retryAfter}
}

// wokenStep is how often the drill looks whether a server has been tried after the machine has woken: more often than the server may be.
const wokenStep = 20 * time.Millisecond

// playRestarts lets the attempts to connect one server, and its connections, end in all ways, and knows of each end when the next attempt follows.
func playRestarts(s *stage) {
	flaky, model := newServer("flaky", "read"), &restartModel{policy: s.drawPolicy()}
	o := s.drawOutage(model.policy)
	flaky.refuseDials(o.refusal())
	m := s.startManager(supervisor.Config{Restart: model.policy}, flaky)
	if m == nil {
		return
	}
	s.runBeside(func() { _ = m.Connect(s.ctx, "flaky", flaky.spec) })
	s.settleAll()
	for range 8 + s.rng.IntN(8) {
		s.addStory("%s", o)
		if o.lived > 0 {
			s.letPass(o.lived)
			o.lived = time.Since(flaky.lastDial())
			flaky.endConns()
			s.settleAll()
		}
		next := s.drawOutage(model.policy)
		flaky.refuseDials(next.refusal())
		if !s.awaitAttempt(m, flaky, model, o) {
			return
		}
		o = next
	}
}

// awaitAttempt judges what is said of a server whose attempt or connection has just ended, and when the next attempt follows: by itself, because
// the machine has woken, or because a person wants it. It reports false when something was found.
func (s *stage) awaitAttempt(m *supervisor.Manager, flaky *server, model *restartModel, o outage) bool {
	least, most, byItself := model.countOutage(o)
	ended, dials, ok := flaky.lastDial().Add(o.lived), flaky.countDials(), true
	report := func(format string, args ...any) {
		ok = false
		s.reportFinding("I7", "flaky", format, args...)
	}
	st, err := m.ServerStatus("flaky")
	retry := messages.RetryAt
	switch {
	case !byItself:
		retry = messages.RetryNever
	case model.parked:
		retry = messages.RetryParked
	}
	phase := messages.Failed
	if o.lived > 0 && !model.parked { // a server that was connected restarts
		phase = messages.Pending
	}
	if err != nil || st.Status != phase || st.Retry != retry || st.Attempts != model.attempts {
		report("after %s it is %s, to be tried again %q, with %d failures, and must be %s, %q, with %d", o, st.Status, st.Retry, st.Attempts, phase, retry, model.attempts)
		return false
	}
	if byItself == (st.NextAttempt == nil) {
		report("after %s its next attempt is at %v, and it is to be tried again %q", o, st.NextAttempt, retry)
		return false
	}
	due := ended.Add(1 << 50)
	if byItself {
		if due = *st.NextAttempt; due.Before(ended.Add(least)) || due.After(ended.Add(most)) {
			report("after %s it is to be tried again after %s, and must be after %s to %s", o, due.Sub(ended), least, most)
			return false
		}
	}
	switch choice := s.rng.IntN(5); {
	case choice == 0 || !byItself:
		s.letPass(s.drawSpan(0, min(max(time.Until(due)-1, 0), time.Hour)))
		s.addStory("a person reconnects it")
		due = time.Now()
		s.runBeside(func() { _ = m.Reconnect(s.ctx, "flaky") })
		s.settleAll()
		model.attempts, model.exhausted, model.parked = 0, 0, false
	case choice == 1 && o.retryAfter == 0:
		s.letPass(s.drawSpan(0, max(time.Until(due)-1, 0)))
		s.addStory("the machine wakes")
		m.Woken()
		s.settleAll()
		latest := time.Now().Add(model.policy.WakeSpread)
		if due.Before(latest) {
			latest = due
		}
		for flaky.countDials() == dials && time.Now().Before(latest) {
			s.letPass(min(wokenStep, time.Until(latest)))
		}
		if flaky.countDials() == dials {
			report("the machine has woken, and it was not tried again by %s", latest)
			return false
		}
		due = flaky.lastDial()
	default:
		if choice == 1 { // a server that has said when to come back is not tried sooner
			s.letPass(s.drawSpan(0, max(time.Until(due)-1, 0)))
			s.addStory("the machine wakes")
			m.Woken()
		}
		s.letPass(time.Until(due) - 1)
		if flaky.countDials() != dials {
			report("it was tried again before the time that its status promised, %s after %s", due.Sub(ended), o)
		}
		s.letPass(1)
	}
	if n := flaky.countDials() - dials; n != 1 || !flaky.lastDial().Equal(due) {
		report("at %s, when it is due, it was tried %d times", due, n)
	}
	return ok
}
