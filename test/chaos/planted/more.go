package planted

// more are bugs that somebody would write who has read the code and wants them not to be found.
var more = []Bug{
	{
		Name: "stale-expiry", File: "actors/catalog/apply.go",
		Old:   "old.state == Lost && old.lost.epoch == at.epoch && !old.lost.after(at)",
		New:   "old.state == Lost",
		Finds: []string{"I1"}, Why: "the timer of an earlier loss takes the tools of a later one away",
	},
	{
		Name: "expiry-takes-all", File: "actors/catalog/apply.go",
		Old:   "old.state == Lost && old.lost.epoch == at.epoch && !old.lost.after(at)",
		New:   "old.state != Cached",
		Finds: []string{"I14", "I1"}, Why: "a server that came back loses its tools a few seconds later",
	},
	{
		Name: "cached-seems-live", File: "actors/catalog/apply.go",
		Old:   "return e.build(c, Cached)",
		New:   "return e.build(c, Live)",
		Finds: []string{"I1"}, Why: "the tools of a server that rests are offered as live",
	},
	{
		Name: "disabled-connects", File: "actors/lifecycle/step.go",
		Old:   "if cold || m.Conn == Opening {",
		New:   "if cold {",
		Finds: []string{"I8", "I1"}, Why: "a server that is disabled while it connects is connected nevertheless",
	},
	{
		Name: "warm-death-revives", File: "actors/lifecycle/step.go",
		Old:   "case messages.Disabled: // \"a death while warm schedules nothing\"\n\t\tm.shut(false)",
		New:   "case messages.Disabled:\n\t\tm.shut(false)\n\t\tm.Cause = &c\n\t\tm.becomePending(messages.Restarting)",
		Finds: []string{"I8"}, Why: "a disabled server that dies is started again",
	},
	{
		Name: "slot-freed-at-dial", File: "actors/lifecycle/step.go",
		Old:   "\t\t\tm.do(Greet{e.Epoch})",
		New:   "\t\t\tm.do(Greet{e.Epoch})\n\t\t\tm.do(Answer{e.Epoch})",
		Finds: []string{"I6"}, Why: "the gate does not know how many servers are still starting",
	},
	{
		Name: "list-retried-without-growth", File: "actors/perform.go",
		Old:   "wait = time.Second << min(e.Failures-1, 6)",
		New:   "wait = time.Second",
		Finds: []string{"I9"}, Why: "a server that cannot list is asked every second for ever",
	},
	{
		Name: "phase-untold", File: "actors/perform.go",
		Old:   "if now.Phase == before.Phase && now.Step == before.Step &&",
		New:   "if (now.Phase == before.Phase || now.Phase == messages.NeedsAuth) && now.Step == before.Step &&",
		Finds: []string{"I8", "I1"}, Why: "watchers believe that a server is well which wants credentials",
	},
	{
		Name: "release-untold", File: "actors/attempt.go",
		Old:   "\t\t\t\ta.released(a.epoch)\n",
		New:   "\t\t\t\tif drain <= 0 {\n\t\t\t\t\ta.released(a.epoch)\n\t\t\t\t}\n",
		Finds: []string{"I11", "I7", "I13", "I12"}, Why: "a server that is reconnected by hand never comes back",
	},
	{
		Name: "probed-once", File: "actors/alive.go",
		Old:   "\t\ts.strikes, s.signed = 0, time.Now()\n\t}\n\ts.armProbe()\n",
		New:   "\t\ts.strikes, s.signed = 0, time.Now()\n\t}\n",
		Finds: []string{"I8", "I11"}, Why: "a peer that vanishes after its first sign of life is green for ever",
	},
	{
		Name: "idle-ends-calls", File: "actors/alive.go",
		Old:   "if s.att.inFlight() > 0 || s.cfg.Cell.turns.waiting() > 0 || quiet < limit {",
		New:   "if quiet < limit {",
		Finds: []string{"I8", "I2"}, Why: "a long call of a lazy server is cut off by its idle timeout",
	},
	{
		Name: "wait-ignored", File: "actors/call.go",
		Old:   "link, err := c.link(ctx, entry, 0, c.Wait)",
		New:   "link, err := c.link(ctx, entry, 0, 0)",
		Finds: []string{"I2"}, Why: "calls fail during a blip although they were allowed to wait",
	},
	{
		Name: "timeout-is-not-sent", File: "transports/session/flight.go",
		Old:   "e := contextError(ctx, \"before there was an answer\")\n\te.Outcome = messages.OutcomeUnknown",
		New:   "e := contextError(ctx, \"before there was an answer\")\n\te.Outcome = messages.OutcomeNotSent",
		Finds: []string{"I3"}, Why: "a call that ran is told as not sent, and the caller sends it again",
	},
	{
		Name: "cancel-is-success", File: "transports/session/flight.go",
		Old: "if a.kind == answerLate {\n\t\t\treturn answer{}, s.abandoned(",
		New: "if a.kind == answerLate {\n\t\t\ts.cancel(ctx, f.id, m.Method)\n\t\t\treturn answer{raw: []byte(`{\"content\":[]}`)}, nil\n\t\t}\n" +
			"\t\tif a.kind == answerLate {\n\t\t\treturn answer{}, s.abandoned(",
		Finds: []string{"I3", "I2"}, Why: "a call that was given up is told as done",
	},
	{
		Name: "last-page-only", File: "transports/session/list.go",
		Old:   "} else if l.emptyCursorMeansEnd(entries, next) {",
		New:   "} else if l.entries = nil; l.emptyCursorMeansEnd(entries, next) {",
		Finds: []string{"I14"}, Why: "of the tools only those on the last page exist",
	},
	{
		Name: "retry-after-clipped", File: "supervisor/restart/policy.go",
		Old:   "wish = min(wish, longest)",
		New:   "wish = min(wish, 2*time.Second)",
		Finds: []string{"I7"}, Why: "a server that asks for a minute is tried after two seconds",
	},
	{
		Name: "stable-too-soon", File: "supervisor/restart/policy.go",
		Old:   "stable := d.Connected >= p.Stable",
		New:   "stable := d.Connected >= p.Stable/4",
		Finds: []string{"I7"}, Why: "a server that dies every quarter of a minute is never parked",
	},
	{
		Name: "never-steady", File: "supervisor/restart/policy.go",
		Old:   "stable := d.Connected >= p.Stable",
		New:   "stable := d.Connected >= 100*p.Stable",
		Finds: []string{"I7"}, Why: "a server that was well for an hour waits as if it had never been",
	},
	{
		Name: "cap-ignored", File: "supervisor/restart/policy.go",
		Old:   "MaxInterval: p.Cap,",
		New:   "MaxInterval: 20 * p.Cap,",
		Finds: []string{"I7", "I11"}, Why: "a server that comes back is not looked for",
	},
	{
		Name: "slot-leaks", File: "supervisor/supervisor.go",
		Old:   "\tr.live = 0\n\ts.gate.Closed(now, r.name)\n\tif r.pid == nil {",
		New:   "\tr.live = 0\n\tif r.up || r.pid == nil {\n\t\ts.gate.Closed(now, r.name)\n\t}\n\tif r.pid == nil {",
		Finds: []string{"I11", "I7"}, Why: "a server that failed once is never started again",
	},
	{
		Name: "unanswered-leaks", File: "supervisor/restart/displace.go",
		Old:   "\tp.release(g)\n\tif g.apart {\n\t\tp.installing--\n\t} else {",
		New:   "\theld := g.holding\n\tp.release(g)\n\tif g.apart {\n\t\tp.installing--\n\t} else if held {",
		Finds: []string{"I11", "I7"}, Why: "after some failures no process is started any more",
	},
	{
		Name: "reconnect-keeps-the-count", File: "supervisor/supervisor.go",
		Old:   "if e.Fresh && !r.successor {",
		New:   "if e.Fresh && r.successor {",
		Finds: []string{"I7"}, Why: "a server that a person mended is parked at its first failure",
	},
}

func init() { Bugs = append(Bugs, more...) }
