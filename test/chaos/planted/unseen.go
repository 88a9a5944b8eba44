package planted

// Unseen are bugs that 150 random days did not find. They are here so that the table of what is seen does not look like all
// there is. Some need a coincidence that days seldom have (a grant and a disable in one instant, a repetition that is refused
// before it is sent, a lost session that nobody uses again); some stay below what the checks tolerate (old tools for 50 ms after
// enable, more that a command or a wake allows than must be); one makes the run itself endless, which only the watchdog sees.
var Unseen = []Bug{
	{
		Name: "grant-after-disable", File: "actors/lifecycle/step.go",
		Old:   "if !m.Asked || epoch <= m.Epoch {",
		New:   "if epoch <= m.Epoch {",
		Finds: []string{"I8"}, Why: "a start that was on its way brings a disabled server back",
	},
	{
		Name: "first-try-forgotten", File: "actors/call.go",
		Old:   "\t\tagain = stillUnknown(again)\n",
		New:   "\t\t_ = stillUnknown\n",
		Finds: []string{"I3"}, Why: "a call that ran is told as not sent, and the caller sends it again",
	},
	{
		Name: "wake-unheard", File: "supervisor/supervisor.go",
		Old:   "at.Before(st.NextAt) {",
		New:   "at.Before(st.NextAt) && false {",
		Finds: []string{"I7", "I13", "I11"}, Why: "after a sleep nothing comes back before its old timer",
	},
	{
		Name: "wake-ignores-retry-after", File: "supervisor/supervisor.go",
		Old:   "if !st.Asked || st.NextAt.IsZero() || st.Cause != nil && st.Cause.RetryAfter > 0 {",
		New:   "if !st.Asked || st.NextAt.IsZero() {",
		Finds: []string{"I7"}, Why: "a server that asked for time is tried when a laptop is opened",
	},
	{
		Name: "warm-change-forgotten", File: "actors/lifecycle/step.go",
		Old:   "case m.Conn == Open && (m.Dirty || m.Listing):",
		New:   "case m.Conn == Open && m.Listing:",
		Finds: []string{"I14"}, Why: "what changed while a server was disabled is missing when it is enabled",
	},
	{
		Name: "unanswered-unbounded", File: "supervisor/restart/pool.go",
		Old:   "func (p *pool) stuffed() bool { return p.maxUnanswered > 0 && p.unanswered >= p.maxUnanswered }",
		New:   "func (p *pool) stuffed() bool { return p.maxUnanswered < 0 }",
		Finds: []string{"I6"}, Why: "processes that never answer pile up",
	},
	{
		Name: "old-wait-kept", File: "supervisor/restart/gate.go",
		Old:   "if r.NotBefore.After(now) {\n\t\tw.since = r.NotBefore",
		New:   "if old := g.waiting[r.Server]; old != nil && old.since.After(now) {\n\t\tw.since = old.since\n\t} else if r.NotBefore.After(now) {\n\t\tw.since = r.NotBefore",
		Finds: []string{"I7", "I8", "I11"}, Why: "reconnect and a new configuration wait for the timer of the old one",
	},
	{
		Name: "config-retried", File: "actors/lifecycle/step.go",
		Old:   "if e.Retry == messages.RetryNever {\n\t\tm.Asked, m.NextAt = false, time.Time{}\n\t}",
		New:   "if e.Retry == messages.RetryNever {\n\t\tm.ask(Normal, false)\n\t\treturn\n\t}",
		Finds: []string{"I7", "I8"}, Why: "a program that does not exist is started for ever",
	},
	{
		Name: "session-loss-unnoticed", File: "transports/session/flight.go",
		Old:   "\t\ts.fail(e)\n\t}\n\treturn e",
		New:   "\t\t_ = s\n\t}\n\treturn e",
		Finds: []string{"I3"}, Why: "all calls fail until the next look at a session that its server has forgotten",
	},
}
