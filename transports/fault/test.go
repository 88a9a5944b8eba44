package fault

// TB is what [Test] needs of a *testing.T, so that a program with faults does not hold package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Test returns a control with rules for one test, which is to be given to [Wrap]:
//
//	transport = fault.Wrap(transport, fault.Test(t, fault.Drop(fault.On("tools/call"), fault.Nth(3), fault.Times(1))))
//
// A rule that cannot be used fails the test at once. A rule that never did anything fails it at its end, because such a test has
// shown nothing: also one that was added later, and one that was removed. The seed is 1.
func Test(t TB, rules ...Rule) *Control {
	t.Helper()
	return TestAt(t, Program, rules...)
}

// TestAt is [Test] for another location, such as a proxy in front of a server.
func TestAt(t TB, at Location, rules ...Rule) *Control {
	t.Helper()
	c := newControl(1, at)
	c.keepIdle = true
	if err := c.Set(rules); err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		for _, r := range c.idleRules() {
			t.Errorf("the rule %q never did anything: %s", r.textWithoutName(), r.whyIdle())
		}
	})
	return c
}

// idleRules returns the rules that never did anything, those that were removed first.
func (c *Control) idleRules() (idle []*rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range [][]*rule{c.removed, c.currentRules()} {
		for _, r := range list {
			if r.effects.Load() == 0 {
				idle = append(idle, r)
			}
		}
	}
	return idle
}

// whyIdle says how far a rule came that never did anything.
func (r *rule) whyIdle() string {
	r.mu.Lock()
	matched, done := r.matched, r.done
	r.mu.Unlock()
	switch {
	case matched == 0 && r.kind.effect.in == nil && r.kind.effect.out == nil:
		return "its time did not come, or no connection was open then"
	case matched == 0:
		if r.At > 0 || r.For > 0 {
			return "no message like those that it is about came in its time, which After and For bound; or the control was not given to Wrap"
		}
		return "no message was like those that it is about, or the control was not given to Wrap"
	case done == 0:
		return "nth and chance left out every message that it is about"
	default:
		return "it found nothing to do in the messages that it is about"
	}
}
