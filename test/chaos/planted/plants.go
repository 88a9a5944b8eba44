// Package planted proves that the harness can find bugs: it plants one into the core, hunts it with the simulation, and sees
// whether it is found, by the invariant that should find it, and how small the scenario is that shows it.
//
// A bug is one replaced passage of one file, given to the compiler as an overlay: nothing in the source tree changes. See
//
//	make planted            # every one of them
//	make planted ONLY=park  # those whose name contains the word
//
// The table is also a list of what the harness is known to see. It says nothing of bugs that are not in it.
package planted

// Bug is a defect that somebody might write.
type Bug struct {
	// Name is a few words with hyphens.
	Name string
	// File is relative to the module. Old stands in it exactly once and is replaced by New.
	File, Old, New string
	// Finds are the invariants of which at least one must be violated: the number that explains the defect first.
	Finds []string
	// Why says what a user would suffer.
	Why string
}

// Bugs are all of them.
var Bugs = []Bug{
	{
		Name: "no-floor", File: "supervisor/restart/policy.go",
		Old:   "delay = draw(rnd, p.Floor, p.Interval(d.Kind, r.Attempts))",
		New:   "delay = draw(rnd, 0, p.Interval(d.Kind, r.Attempts)/8)",
		Finds: []string{"I7"}, Why: "a server that dies at once is started again in the same millisecond",
	},
	{
		Name: "no-growth", File: "supervisor/restart/policy.go",
		Old:   "delay = draw(rnd, p.Floor, p.Interval(d.Kind, r.Attempts))",
		New:   "delay = draw(rnd, p.Floor, p.Interval(d.Kind, 1))",
		Finds: []string{"I7"}, Why: "a dead server is tried at the pace of the first failure for ever",
	},
	{
		Name: "no-jitter", File: "supervisor/restart/policy.go",
		Old:   "return low + scale(high-low, rnd())",
		New:   "return low + scale(high-low, 0.9+0*rnd())",
		Finds: []string{"I7"}, Why: "a thousand servers that die together come back together",
	},
	{
		Name: "reset-on-connect", File: "supervisor/restart/policy.go",
		Old:   "r.EverConnected, r.Parked, r.Exhausted, r.Displaced = true, false, 0, false",
		New:   "r.EverConnected, r.Parked, r.Exhausted, r.Displaced, r.Attempts = true, false, 0, false, 0",
		Finds: []string{"I7"}, Why: "connect-then-drop loops at the first delay for ever",
	},
	{
		Name: "never-parks", File: "supervisor/restart/policy.go",
		Old:   "r.Parked = r.Attempts >= p.parkAfter(d.Kind)",
		New:   "r.Parked = false",
		Finds: []string{"I7"}, Why: "a dead server costs a process start a minute for ever",
	},
	{
		Name: "parked-for-ever", File: "supervisor/restart/policy.go",
		Old:   "return r, Decision{messages.RetryParked, now.Add(delay)}",
		New:   "return r, Decision{messages.RetryParked, now.Add(100 * delay)}",
		Finds: []string{"I13", "I11", "I7"}, Why: "a server that was parked is given up for good",
	},
	{
		Name: "retry-after-ignored", File: "supervisor/restart/policy.go",
		Old:   "case d.RetryAfter > 0:\n\t\tdelay = max(p.after(d.RetryAfter, rnd), p.Floor)",
		New:   "case d.RetryAfter > 0:\n\t\tdelay = draw(rnd, p.Floor, p.Interval(d.Kind, r.Attempts))",
		Finds: []string{"I7"}, Why: "a server that asks for time is stormed",
	},
	{
		Name: "gate-wide-open", File: "supervisor/restart/pool.go",
		Old:   "if p.held >= p.limit || p.stuffed() {",
		New:   "if p.stuffed() {",
		Finds: []string{"I6"}, Why: "sixty node processes start at once and all miss their timeouts",
	},
	{
		Name: "gate-never-frees", File: "supervisor/restart/pool.go",
		Old:   "for p.firstHold() != nil && !p.holds[0].expires.After(now) {",
		New:   "for false && p.firstHold() != nil && !p.holds[0].expires.After(now) {",
		Finds: []string{"I11", "I7", "I9"}, Why: "a few silent servers keep all others from starting",
	},
	{
		Name: "write-replayed", File: "actors/call.go",
		Old:   "return link.Spec.Trusted && a != nil && (a.ReadOnly != nil && *a.ReadOnly || a.Idempotent != nil && *a.Idempotent)",
		New:   "return link.Spec.Trusted && (a == nil || a.Title == \"\")",
		Finds: []string{"I3"}, Why: "a payment is made twice",
	},
	{
		Name: "untrusted-replayed", File: "actors/call.go",
		Old:   "return link.Spec.Trusted && a != nil &&",
		New:   "return a != nil &&",
		Finds: []string{"I3"}, Why: "a server's own claim is enough to have its tools run twice",
	},
	{
		Name: "no-deadline", File: "actors/call.go",
		Old:   "if p := patient(ctx, link.Spec); p != nil {",
		New:   "if p := session.Patient(ctx, 0, 0); p != nil {",
		Finds: []string{"I2"}, Why: "a call to a tool that hangs never ends",
	},
	{
		Name: "silent-cancel", File: "transports/session/flight.go",
		Old:   "\ts.cancel(ctx, id, method)\n\te := contextError",
		New:   "\te := contextError",
		Finds: []string{"I4"}, Why: "the server works on for a caller who has gone",
	},
	{
		Name: "late-answer-to-another", File: "transports/session/alarm.go",
		Old:   "delete(s.pending, id)\n",
		New:   "_, f.watched = id, false\n",
		Finds: []string{"I3", "I2"}, Why: "a caller gets what another one asked for",
	},
	{
		Name: "change-forgotten-while-listing", File: "actors/lifecycle/step.go",
		Old:   "\tm.Dirty = true\n\t// After a re-list",
		New:   "\tm.Dirty = m.Dirty || !m.Listing\n\t// After a re-list",
		Finds: []string{"I14"}, Why: "a tool that came during a list is never seen",
	},
	{
		Name: "failed-list-forgotten", File: "actors/lifecycle/step.go",
		Old:   "\t\tm.do(Coalesce{Epoch: m.Epoch, Failures: m.ListFailures})\n",
		New:   "",
		Finds: []string{"I14"}, Why: "one failed list and the tools are stale for ever",
	},
	{
		Name: "disabled-still-offered", File: "actors/lifecycle/step.go",
		Old:   "\tm.unask()\n\tm.withdraw()\n\tm.Refreshing, m.Again = false, false",
		New:   "\tm.unask()\n\tm.Refreshing, m.Again = false, false",
		Finds: []string{"I1"}, Why: "the model is offered the tools of a server that was switched off",
	},
	{
		Name: "disabled-revives", File: "actors/lifecycle/step.go",
		Old:   "\tm.Wanted = false\n\tm.unask()\n\tm.withdraw()\n\tm.Refreshing",
		New:   "\tm.Wanted = false\n\tm.withdraw()\n\tm.Refreshing",
		Finds: []string{"I8"}, Why: "a start that was asked for brings a disabled server back",
	},
	{
		Name: "needs-auth-retried", File: "actors/lifecycle/step.go",
		Old:   "\t\tm.ask(m.Due, true)\n\tcase",
		New:   "\t\tm.ask(m.Due, true)\n\tcase m.Phase == messages.NeedsAuth && !m.Removing:\n\t\tm.ask(Normal, false)\n\tcase",
		Finds: []string{"I8", "I7"}, Why: "a revoked token is tried in a loop",
	},
	{
		Name: "needs-auth-unsaid", File: "actors/lifecycle/step.go",
		Old:   "\tif c.Class == messages.ClassUnauthorized {\n\t\tm.Phase = messages.NeedsAuth\n\t}",
		New:   "",
		Finds: []string{"I8"}, Why: "nobody is told that a sign-in is missing",
	},
	{
		Name: "lost-for-ever", File: "actors/registry.go",
		Old:   "time.AfterFunc(r.cfg.WithdrawAfter, func() { root.Send(self, gone) })",
		New:   "_, _, _ = root, self, gone",
		Finds: []string{"I1"}, Why: "the tools of a dead server stay in the catalog",
	},
	{
		Name: "lost-seems-live", File: "actors/catalog/apply.go",
		Old:   "Tool: e.Tool, State: Lost, Epoch: e.Epoch})",
		New:   "Tool: e.Tool, State: Live, Epoch: e.Epoch})",
		Finds: []string{"I1"}, Why: "tools are offered as live without a connection",
	},
	{
		Name: "generation-stands", File: "actors/catalog/apply.go",
		Old:   "\tnext.generation++\n",
		New:   "\tif len(changed) > 1 {\n\t\tnext.generation++\n\t}\n",
		Finds: []string{"I5"}, Why: "whoever compares generations misses a change",
	},
	{
		Name: "first-page-only", File: "transports/session/list.go",
		Old:   "\t\tif next == nil {\n\t\t\treturn nil\n\t\t}",
		New:   "\t\tif next == nil || true {\n\t\t\treturn nil\n\t\t}",
		Finds: []string{"I14"}, Why: "tools beyond the first page do not exist",
	},
	{
		Name: "storm-uncoalesced", File: "actors/perform.go",
		Old:   "wait := min(quiet, s.dirtySince.Add(most).Sub(now))",
		New:   "wait := quiet * 0",
		Finds: []string{"I9"}, Why: "a server that notifies in a loop is listed in a loop",
	},
	{
		Name: "storm-starves", File: "actors/perform.go",
		Old:   "wait := min(quiet, s.dirtySince.Add(most).Sub(now))",
		New:   "wait := quiet",
		Finds: []string{"I14"}, Why: "a server that never stops notifying is never listed",
	},
	{
		Name: "secret-told", File: "messages/secrets.go",
		Old:   "text = strings.ReplaceAll(text, secret, redaction)",
		New:   "_ = strings.ReplaceAll(text, secret, redaction)",
		Finds: []string{"I10"}, Why: "the token of a server stands in the status that is shared in a bug report",
	},
	{
		Name: "half-open-unnoticed", File: "actors/alive.go",
		Old:   "if s.strikes >= s.cfg.Timing.ProbeStrikes {",
		New:   "if s.strikes >= s.cfg.Timing.ProbeStrikes+1000 {",
		Finds: []string{"I8", "I11"}, Why: "status is green while the peer is gone",
	},
	{
		Name: "attempt-leaks", File: "actors/attempt.go",
		Old:   "\t<-sess.Released()\n",
		New:   "\tgo func() { select {} }()\n\t<-sess.Released()\n",
		Finds: []string{"I12"}, Why: "each reconnect costs a goroutine",
	},
	{
		Name: "successor-does-not-wait", File: "actors/attempt.go",
		Old:   "\t\t\tif sess := a.session(); sess != nil {\n\t\t\t\ta.closeSession(sess)\n\t\t\t}\n\t\t\ta.busy.Wait()",
		New:   "\t\t\tif sess := a.session(); sess != nil {\n\t\t\t\tgo a.closeSession(sess)\n\t\t\t\treturn\n\t\t\t}\n\t\t\ta.busy.Wait()",
		Finds: []string{"I6"}, Why: "two processes of one server work on one database",
	},
	{
		Name: "remove-leaves-tools", File: "actors/lifecycle/step.go",
		Old:   "\tm.Removing, m.Wanted = true, false\n\tm.unask()\n\tm.withdraw()",
		New:   "\tm.Removing, m.Wanted = true, false\n\tm.unask()",
		Finds: []string{"I1", "I14"}, Why: "the tools of a removed server are offered until its process is gone",
	},
}
