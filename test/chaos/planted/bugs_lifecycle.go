package planted

var lifecycleBugs = in("actors/lifecycle",
	Bug{
		Name: "change-forgotten-while-listing", In: "machine.toolsChanged", Old: "m.Dirty = true", New: "m.Dirty = m.Dirty || !m.Listing",
		Finds: []string{"I14"}, Why: "a tool that came during a list is never seen",
	},
	Bug{
		Name: "failed-list-forgotten", In: "machine.listFailed", Old: "m.do(Coalesce{Epoch: m.Epoch, Failures: m.ListFailures})",
		Finds: []string{"I14"}, Why: "one failed list and the tools are stale for ever",
	},
	Bug{
		Name: "disabled-still-offered", In: "machine.disable", Old: "m.withdraw()",
		Finds: []string{"I1"}, Why: "the model is offered the tools of a server that was switched off",
	},
	Bug{
		Name: "disabled-revives", In: "machine.disable", Old: "m.unask()",
		Finds: []string{"I8"}, Why: "a start that was asked for brings a disabled server back",
	},
	Bug{
		Name: "needs-auth-retried", In: "machine.closed",
		Old: "case m.Phase == messages.Pending && m.Step == messages.Closing: m.ask(m.Due, true)",
		New: "case m.Phase == messages.Pending && m.Step == messages.Closing:\nm.ask(m.Due, true)\n" +
			"case m.Phase == messages.NeedsAuth && !m.Removing:\nm.ask(Normal, false)",
		Finds: []string{"I8", "I7"}, Why: "a revoked token is tried in a loop",
	},
	Bug{
		Name: "needs-auth-unsaid", In: "machine.becomeFailed",
		Old:   "if c.Class == messages.ClassUnauthorized { m.Phase = messages.NeedsAuth }",
		Finds: []string{"I8"}, Why: "nobody is told that a sign-in is missing",
	},
	Bug{
		Name: "remove-leaves-tools", In: "machine.remove", Old: "m.withdraw()",
		Finds: []string{"I1", "I14"}, Why: "the tools of a removed server are offered until its process is gone",
	},
	Bug{
		Name: "disabled-connects", In: "machine.disable", Old: "cold || m.Conn == Opening", New: "cold",
		Finds: []string{"I8", "I1"}, Why: "a server that is disabled while it connects is connected nevertheless",
	},
	Bug{
		Name: "warm-death-revives", In: "machine.lost", Old: "case messages.Disabled: m.shut(false)",
		New:   "case messages.Disabled:\nm.shut(false)\nm.Cause = &c\nm.becomePending(messages.Restarting)",
		Finds: []string{"I8"}, Why: "a disabled server that dies is started again",
	},
	Bug{
		Name: "slot-freed-at-dial", In: "machine.alive", Old: "m.do(Greet{e.Epoch})", New: "m.do(Greet{e.Epoch})\nm.do(Answer{e.Epoch})",
		Finds: []string{"I6"}, Why: "the gate does not know how many servers are still starting",
	},
	Bug{
		Name: "grant-after-disable", In: "machine.granted", Old: "!m.Asked || epoch <= m.Epoch", New: "epoch <= m.Epoch",
		Finds: []string{"I8"}, Why: "a start that was on its way brings a disabled server back",
	},
	Bug{
		Name: "warm-change-forgotten", In: "machine.enable", Old: "m.Dirty || m.Listing", New: "m.Listing",
		Finds: []string{"I14"}, Why: "what changed while a server was disabled is missing when it is enabled",
	},
	Bug{
		Name: "config-retried", In: "machine.scheduled", Old: "m.Asked, m.NextAt = false, time.Time{}",
		New:   "m.ask(Normal, false)\nreturn",
		Finds: []string{"I7", "I8"}, Why: "a program that does not exist is started for ever",
	},
	Bug{
		Name: "old-attempt-fails-new", In: "machine.opening", Old: "m.Conn == Opening && m.Epoch == epoch", New: "m.Conn == Opening && epoch > 0",
		Finds: []string{"I8", "I7", "I11"}, Why: "the late failure of an attempt that was given up ends the one that took its place",
	},
	Bug{
		Name: "old-connection-ends-new", In: "machine.open", Old: "m.Conn == Open && m.Epoch == epoch", New: "m.Conn == Open && epoch > 0",
		Finds: []string{"I8", "I2"}, Why: "the death of a connection that was replaced takes down the one that works",
	},
	Bug{
		Name: "release-of-another", In: "machine.closed", Old: "epoch != m.Epoch || m.Conn == None", New: "m.Conn == None",
		Finds: []string{"I6", "I8"}, Why: "a connection that lives is taken for released when an older one is",
	},
	Bug{
		Name: "new-spec-has-old-tools", In: "machine.respec", Old: "m.withdraw()",
		Finds: []string{"I1", "I14"}, Why: "the tools of the old configuration are offered until the new server answers, if it ever does",
	},
	Bug{
		Name: "new-spec-known-before", In: "machine.respec", Old: "m.Cause, m.Ever = nil, false", New: "m.Cause = nil",
		Finds: []string{"I14", "I11"}, Why: "a lazy server with another configuration rests without tools, so that nothing ever wakes it",
	},
	Bug{
		Name: "new-spec-cuts-calls", In: "machine.respec", Old: "m.shut(true)", New: "m.shut(false)",
		Finds: []string{"I17", "I2"}, Why: "calls that run are cut off when the configuration changes, and nobody knows whether they ran",
	},
	Bug{
		Name: "reconnect-cuts-calls", In: "machine.reconnect", Old: "m.shut(true)", New: "m.shut(false)",
		Finds: []string{"I17", "I2"}, Why: "calls that run are cut off by a reconnect, and nobody knows whether they ran",
	},
	Bug{
		Name: "remove-cuts-calls", In: "machine.remove", Old: "m.shut(true)", New: "m.shut(false)",
		Finds: []string{"I17", "I2"}, Why: "calls that run are cut off by a removal, and nobody knows whether they ran",
	},
	Bug{
		Name: "idle-cuts-calls", In: "machine.alive", Old: "m.shut(true)", New: "m.shut(false)",
		Finds: []string{"I2"}, Why: "a call that came in the moment in which its server was let go is cut off",
	},
	Bug{
		Name: "refresh-during-list", In: "machine.refresh", Old: "m.Again = true",
		Finds: []string{"I14"}, Why: "who asks for a refresh gets a list that is older than the wish",
	},
	Bug{
		Name: "refresh-answered-early", In: "Step", Old: "m.Settled() && !m.Refreshing", New: "m.Settled()",
		Finds: []string{"I16", "I14"}, Why: "refresh returns before there is a new list",
	},
	Bug{
		Name: "list-failures-stay", In: "machine.listed", Old: "m.Listing, m.Refreshing, m.ListFailures = false, m.Refreshing && m.Again, 0",
		New:   "m.Listing, m.Refreshing = false, m.Refreshing && m.Again",
		Finds: []string{"I14"}, Why: "after one list that failed no change is ever listed again",
	},
	Bug{
		Name: "change-during-relist", In: "machine.listed", Old: "m.Dirty", New: "m.Dirty && m.Refreshing",
		Finds: []string{"I14"}, Why: "a change that comes while the change before is listed is never seen",
	},
	Bug{
		Name: "change-during-first-list", In: "machine.becomeConnected", Old: "m.Dirty", New: "m.Dirty && m.ListFailures > 0",
		Finds: []string{"I14"}, Why: "a tool that a server adds while it starts is never seen",
	},
	Bug{
		Name: "two-lists-at-once", In: "machine.alive", Old: "m.Phase == messages.Connected && m.open(e.Epoch) && m.Dirty && !m.Listing",
		New:   "m.Phase == messages.Connected && m.open(e.Epoch) && m.Dirty",
		Finds: []string{"I9", "I14"}, Why: "a server is listed again while it is being listed, and the older list may come last",
	},
	Bug{
		Name: "lost-stays-live", In: "machine.lost", Old: "m.lose()",
		Finds: []string{"I1"}, Why: "tools are offered as live while their server is being restarted",
	},
	Bug{
		Name: "old-failure-shown", In: "machine.becomeConnected", Old: "m.Phase, m.Step, m.Cause = messages.Connected, \"\", nil",
		New:   "m.Phase, m.Step = messages.Connected, \"\"",
		Finds: []string{"I8"}, Why: "a server that works shows the error of its last failure",
	},
	Bug{
		Name: "old-decision-counts", In: "machine.scheduled", Old: "e.Epoch != m.Epoch || !m.Asked || m.Step == messages.Queued", New: "!m.Asked",
		Finds: []string{"I8", "I7"}, Why: "a server that was asked for just now shows, and waits for, the time of its last failure",
	},
	Bug{
		Name: "refused-tools-stay", In: "machine.unauthorized", Old: "m.withdraw()",
		Finds: []string{"I1"}, Why: "the tools of a server whose token was revoked stay on offer, and every call of them fails",
	},
	Bug{
		Name: "rest-has-no-number", In: "machine.rest", Old: "m.Rev++",
		Finds: []string{"I1", "I14"}, Why: "the tools of a server that rests are offered as live, and calls of them fail instead of waking it",
	},
	Bug{
		Name: "withdrawal-has-no-number", In: "machine.withdraw", Old: "m.Rev++",
		Finds: []string{"I1"}, Why: "the registry takes a withdrawal for old news: the tools of a disabled server stay",
	},
	Bug{
		Name: "person-waits-behind", In: "machine.ask", Old: "m.Due = u",
		Finds: []string{"I11", "I15"}, Why: "the server that a person reconnects waits behind all that retry by themselves",
	},
	Bug{
		Name: "was-up-forgotten", In: "machine.closed", Old: "Up: m.WasUp", New: "Up: m.Phase == messages.Connected",
		Finds: []string{"I7"}, Why: "the loss of a connection counts as an attempt that never connected",
	},
	Bug{
		Name: "gone-before-released", In: "machine.removing", Old: "e.Epoch == m.Epoch && m.Conn != None", New: "m.Conn != None",
		Finds: []string{"I6"}, Why: "a name is given to a new process while the old one still runs",
	},
)
