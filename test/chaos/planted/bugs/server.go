package bugs

// serverBugs are in the actor of a server, its attempts, the registry, and what they publish.
var serverBugs = inPackage("actors",
	// The registry withdraws the tools of a lost server after a time.
	Bug{
		Name: "lost-for-ever", In: "Registry.armWithdrawal", Old: "root.Send(self, withdrawDue{})", New: "_, _ = root, self",
		Finds: []string{"I1"}, Why: "the tools of a dead server stay in the catalog",
	},
	Bug{
		Name: "parked-said-as-given-up", In: "View.Reason", Old: "s.Retry == messages.RetryParked", New: "s.Retry == messages.RetryNever",
		Finds: []string{"I20"}, Why: "a person reads that a parked server is tried again soon, and of one that is not retried when it is probed",
	},
	Bug{
		Name: "time-out-unexplained", In: "attempt.explainTimeout", Old: `!errors.Is(context.Cause(bound), context.DeadlineExceeded)`, New: "step != \"dial\"",
		Finds: []string{"I22"}, Why: "a person reads that a context ended, and not which answer did not come",
	},
	// A burst of change notifications leads to one list: after a quiet time, but not later than a bound after the first of
	// them, and with growing pauses after failures.
	Bug{
		Name: "storm-uncoalesced", In: "Server.scheduleRelist", Old: "min(quiet, s.dirtySince.Add(most).Sub(now))", New: "quiet * 0",
		Finds: []string{"I9"}, Why: "a server that notifies in a loop is listed in a loop",
	},
	Bug{
		Name: "storm-starves", In: "Server.scheduleRelist", Old: "min(quiet, s.dirtySince.Add(most).Sub(now))", New: "quiet",
		Finds: []string{"I14"}, Why: "a server that never stops notifying is never listed",
	},
	Bug{
		Name: "list-retried-without-growth", In: "Server.scheduleRelist", Old: "time.Second << min(e.Failures-1, 6)", New: "time.Second",
		Finds: []string{"I9"}, Why: "a server that cannot list is asked every second for ever",
	},
	// A silent connection is probed. Several unanswered probes in a row mean that the peer is gone; each probe schedules the
	// next one.
	Bug{
		Name: "half-open-unnoticed", In: "Server.handleProbeDone", Old: "s.strikes >= s.cfg.Timing.ProbeStrikes",
		New:   "s.strikes >= s.cfg.Timing.ProbeStrikes+1000",
		Finds: []string{"I8", "I11"}, Why: "status is green while the peer is gone",
	},
	Bug{
		Name: "probed-once", In: "Server.handleProbeDone", Old: "s.armProbe()",
		Finds: []string{"I8", "I11"}, Why: "a peer that vanishes after its first sign of life is green for ever",
	},
	Bug{
		Name: "question-never-over", In: "Server.handleProbeDone", Old: "s.probing = false",
		Finds: []string{"I8", "I11"}, Why: "a peer that has answered one question is never asked again, and is green when it is gone",
	},
	Bug{
		Name: "question-of-the-last-connection", In: "Server.startAttempt",
		Old:   "s.strikes, s.probing, s.dirtySince, s.futileLists, s.shownHash, s.lastProbeAnswer = 0, false, time.Time{}, 0, [32]byte{}, time.Time{}",
		New:   "s.strikes, s.dirtySince, s.futileLists, s.shownHash, s.lastProbeAnswer = 0, time.Time{}, 0, [32]byte{}, time.Time{}",
		Finds: []string{"I8", "I11"}, Why: "a connection that was lost during a question leaves the next one without any",
	},
	Bug{
		Name: "strikes-add-up", In: "Server.handleProbeDone", Old: "default: s.strikes, s.lastProbeAnswer = 0, time.Now()", New: "default:\ns.lastProbeAnswer = time.Now()",
		Finds: []string{"I8"}, Why: "a server that is slow to answer three times in its life is given up as dead",
	},
	Bug{
		Name: "probe-counts-from-now", In: "Server.armProbe", Old: "max(every-s.silentFor(), 0)", New: "every",
		Finds: []string{"I8"}, Why: "a peer that vanished is noticed later than promised",
	},
	Bug{
		Name: "silence-asked-on", In: "Server.handleProbeDone", Old: "s.probeNow(m.epoch)",
		Finds: []string{"I8", "I11"}, Why: "after one question without an answer nobody asks again",
	},
	// A lazy server is let go only when no call is in flight or waiting, and the timer is set again otherwise.
	Bug{
		Name: "idle-ends-calls", In: "Server.idleDue", Old: "s.att.inFlight() > 0 || s.cfg.Cell.callQueue.waitingCalls() > 0 || s.cfg.Cell.Subscriptions.Any()",
		New:   "s.cfg.Cell.Subscriptions.Any()",
		Finds: []string{"I8", "I2"}, Why: "a long call of a lazy server is cut off by its idle timeout",
	},
	Bug{
		Name: "idle-twice-as-long", In: "Server.idleDue", Old: "max(limit-quiet, limit/10)", New: "limit",
		Finds: []string{"I8"}, Why: "a lazy server holds its process up to twice as long as it should",
	},
	Bug{
		Name: "idle-never-again", In: "Server.idleDue",
		Old:   "s.armIdle(epoch, max(limit-quiet, limit/10))\nreturn",
		New:   "return",
		Finds: []string{"I8"}, Why: "a lazy server that is in use when its time comes is never let go",
	},
	// The gate of a connection closes before the registry hears of the withdrawal, so that no call slips in between.
	Bug{
		Name: "gate-open-after-disable", In: "Server.hideTools", Old: "if s.att != nil { s.att.closeGate() }",
		Finds: []string{"I3", "I1"}, Why: "whoever still holds the old list calls the tools of a server that was switched off",
	},
	Bug{
		Name: "gate-closed-later", In: "Server.hideTools", Old: "if s.att != nil { s.att.closeGate() }\ns.sendToRegistry(c, nil)",
		New:   "s.sendToRegistry(c, nil)\nif s.att != nil { s.att.closeGate() }",
		Finds: []string{"I3", "I1"}, Why: "a call is admitted in the moment in which its server is switched off",
	},
	// The published phase follows the catalog, so that a caller who saw the phase finds the tools.
	Bug{
		Name: "connected-before-offered", In: "Server.publishView", Old: "now.Phase == messages.Connected && s.registering",
		New:   "now.Phase == messages.Connected && s.registering && s.lastSeenState != nil",
		Finds: []string{"I14", "I1"}, Why: "who waits for a server to be connected does not find its tools",
	},
	Bug{
		Name: "phase-untold", In: "Server.publishChange", Old: "now.Phase == before.Phase && now.Step == before.Step",
		New:   "(now.Phase == before.Phase || now.Phase == messages.NeedsAuth) && now.Step == before.Step",
		Finds: []string{"I8", "I1"}, Why: "watchers believe that a server is well which wants credentials",
	},
	// Timers and flags belong to one burst or one connection, and have to be reset with it.
	Bug{
		Name: "second-change-unheard", In: "Server.Receive", Old: "s.changeNoted.Store(false)",
		Finds: []string{"I14"}, Why: "of the changes of a connection's tools only the first is seen",
	},
	Bug{
		Name: "old-relist-counts", In: "Server.Receive", Old: "m.round == s.relistRound", New: "m.round > 0",
		Finds: []string{"I9"}, Why: "a timer that was replaced in the moment in which it rang lists the tools before the server is quiet",
	},
	Bug{
		Name: "burst-never-over", In: "Server.Receive", Old: "s.dirtySince = time.Time{}",
		Finds: []string{"I9"}, Why: "a second after its first change a server is listed at each of its notifications",
	},
	Bug{
		Name: "probe-timer-left", In: "Server.stopTimers", Old: "[]*time.Timer{s.relist, s.idle, s.probe}", New: "[]*time.Timer{s.relist, s.idle}",
		Finds: []string{"I12"}, Why: "each connection that ends leaves a timer behind for a while",
	},
	Bug{
		Name: "vain-lists-go-on", In: "Server.updateTools", Old: "s.futileLists = min(s.futileLists+1, 16)",
		Finds: []string{"I9"}, Why: "a server that announces a change whenever it is listed is listed twenty times a second for ever",
	},
	// An adjusted spec applies to the catalog, the bounds and the calls of the present connection.
	Bug{
		Name: "screened-list-shown", In: "Server.adjustSpec", Old: "s.shownHash = [32]byte{}",
		Finds: []string{"I14"}, Why: "calls go on under the bounds of the configuration before",
	},
	Bug{
		Name: "new-bounds-unheeded", In: "Server.adjustSpec", Old: "s.spec = spec",
		Finds: []string{"I2", "I16"}, Why: "another callTimeout, or another list of allowed tools, has no effect",
	},
	// The actor waits for new credentials once per failure, and forgets the wait afterwards.
	Bug{
		Name: "credentials-awaited-once", In: "Server.awaitCredentials", Old: "s.cancelAwait()\ns.cancelAwait = nil", New: "s.cancelAwait()",
		Finds: []string{"I11"}, Why: "the second time that a server's token runs out nobody notices the new one",
	},
	// Every text that leaves the manager passes the redactor, and text from a server is escaped as well.
	Bug{
		Name: "secret-in-cause", In: "Server.causeOf", Old: "c.Text = s.cfg.Cell.redactFor(s.spec, c.Text)",
		Finds: []string{"I10"}, Why: "the reason of a failure shows the token that the server repeated",
	},
	Bug{
		Name: "secret-in-status", In: "View.Status", Old: "v.Spec.Redacted()", New: "*v.Spec",
		Finds: []string{"I10"}, Why: "the status that is pasted into a bug report holds the headers with their tokens",
	},
	Bug{
		Name: "stderr-unescaped", In: "View.Status", Old: "messages.Printable(conn.StderrTail)", New: "conn.StderrTail",
		Finds: []string{"I10"}, Why: "what a server writes to stderr takes over the terminal of whoever asks for its status",
	},
	// The cause of a failure carries the server's Retry-After to the policy.
	Bug{
		Name: "retry-after-dropped", In: "causeOf", Old: "c.RetryAfter, c.Challenge = e.RetryAfter, e.Challenge", New: "c.Challenge = e.Challenge",
		Finds: []string{"I7"}, Why: "a server that asks for time is stormed",
	},
	// An attempt ends in an order: drain the calls, close the session, wait for the steps that still run, then report the
	// release. The next attempt of the server starts only after it.
	Bug{
		Name: "attempt-leaks", In: "attempt.closeSession", Old: "<-sess.Released()", New: "go func() { select {} }()\n<-sess.Released()",
		Finds: []string{"I12"}, Why: "each reconnect costs a goroutine",
	},
	Bug{
		Name: "successor-does-not-wait", In: "attempt.shutDown",
		Old:   "if sess := a.currentSession(); sess != nil { a.closeSession(sess) }\na.runningSteps.Wait()",
		New:   "if sess := a.currentSession(); sess != nil {\ngo a.closeSession(sess)\nreturn\n}\na.runningSteps.Wait()",
		Finds: []string{"I6"}, Why: "two processes of one server work on one database",
	},
	Bug{
		Name: "late-dial-left", In: "attempt.shutDown",
		Old: "a.runningSteps.Wait()\nif sess := a.currentSession(); sess != nil { a.closeSession(sess); conn = sess.Conn() }",
		New: "a.runningSteps.Wait()\nif sess := a.currentSession(); sess != nil { conn = sess.Conn() }", Finds: []string{"I12", "I6"},
		Why: "a connection that came to be in the moment in which its attempt was ended is never closed",
	},
	Bug{
		Name: "release-untold", In: "attempt.shutDown", Old: "a.released(a.epoch)", New: "if drain <= 0 { a.released(a.epoch) }",
		Finds: []string{"I11", "I7", "I13", "I12"}, Why: "a server that is reconnected by hand never comes back",
	},
	Bug{
		Name: "nothing-drains", In: "attempt.shutDown", Old: "drain > 0", New: "drain < 0",
		Finds: []string{"I17", "I2"}, Why: "calls that run are cut off by whatever an owner does, and nobody knows whether they ran",
	},
	Bug{
		Name: "drain-cut", In: "Server.performEffect", Old: "drain = s.drainTime", New: "drain = s.drainTime / 10",
		Finds: []string{"I17"}, Why: "calls that run are cut off after half a second, and nobody knows whether they ran",
	},
	Bug{
		Name: "drain-always-waits", In: "attempt.drainGates", Old: "<-gate.Drained()", New: "<-func(*session.Gate) chan bool { return nil }(gate)",
		Finds: []string{"I17"}, Why: "whatever an owner does to a server takes five seconds, whether it is in use or not",
	},
	Bug{
		Name: "drain-for-ever", In: "attempt.drainGates", Old: "time.NewTimer(most)", New: "time.NewTimer(100 * most)",
		Finds: []string{"I17"}, Why: "one call that hangs keeps a server from being reconnected for minutes",
	},
	// The connect timeout covers the first list only and ends with it; later lists have a timeout of their own.
	Bug{
		Name: "relist-under-the-first-bound", In: "attempt.startListing", Old: "context.WithTimeout(context.Background(), timeout)",
		New:   "context.WithTimeout(ctx, timeout)",
		Finds: []string{"I14"}, Why: "no list after the first one ever succeeds",
	},
	Bug{
		Name: "bound-goes-on", In: "Server.performEffect", Old: "s.att.endBound()",
		Finds: []string{"I12"}, Why: "each server that is connected holds the timer of its beginning, which goes on looking",
	},
	// A publication stores the new value before it wakes the waiting readers.
	Bug{
		Name: "waiter-sleeps-on", In: "Cell.Publish",
		Old:   "c.announced.Store(v)\nc.mu.Lock()\nif c.changed != nil { close(c.changed); c.changed = nil }\nc.mu.Unlock()",
		New:   "c.mu.Lock()\nif c.changed != nil { close(c.changed); c.changed = nil }\nc.mu.Unlock()\nc.announced.Store(v)",
		Finds: []string{"I16", "I2"}, Why: "who waits for a server misses the moment in which it is ready, and waits on",
	},
	// A watcher gets events by number, a gap for those that it was too slow for, and a wake-up where it waits.
	Bug{
		Name: "gap-untold", In: "Watcher.skipLost", Old: "lost, w.next = first-w.next, first", New: "w.next = first",
		Finds: []string{"I2"}, Why: "a watcher that was too slow is not told that it missed something",
	},
	Bug{
		Name: "watcher-not-woken", In: "Hub.Publish", Old: "h.wakeWatchers()",
		Finds: []string{"I8"}, Why: "a watcher hears of a change when the next call is made",
	},
	Bug{
		Name: "late-once", In: "Hub.wakeLate", Old: "h.armed = false",
		Finds: []string{"I2"}, Why: "a watcher hears of the first calls and of no later ones, until something else happens",
	},
	Bug{
		Name: "last-events-lost", In: "Hub.dropWatcher", Old: "w.closed, w.last = true, h.seq", New: "w.closed, w.last = true, h.seq-1",
		Finds: []string{"I2"}, Why: "the last event before the end, which says how it ended, never comes",
	},
	// Changes of resources and prompts are joined by a timer, and the agreement with the server decides which updates are
	// expected.
	Bug{
		Name: "news-told-once", In: "coalescer.addChange", Old: "p.timerRuns = false",
		Finds: []string{"I14"}, Why: "that resources or prompts have changed is told once or twice and never again",
	},
	Bug{
		Name: "watched-once", In: "Subscriptions.noteAnswer", Old: "s.agreed = s.agreed || agreed", New: "s.agreed = agreed",
		Finds: []string{"I14", "I20"}, Why: "a resource that is watched is silent after the second question about it failed",
	},
)
