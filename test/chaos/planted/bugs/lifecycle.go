package bugs

// lifecycleBugs are in the state machine of a server. It is a pure function of state and event, so a slip in one of its
// branches shows as a forbidden edge (I8), stale tools (I1, I14) or a wrong pause (I7).
var lifecycleBugs = inPackage("actors/lifecycle",
	// A change during a list marks the server dirty, and a failed list is requested again after a pause. Otherwise the catalog
	// stays stale until the connection ends.
	Bug{
		Name: "change-forgotten-while-listing", In: "machine.handleToolsChanged", Old: "m.Dirty = true", New: "m.Dirty = m.Dirty || !m.Listing",
		Finds: []string{"I14"}, Why: "a tool that came during a list is never seen",
	},
	Bug{
		Name: "failed-list-forgotten", In: "machine.handleListFailed", Old: "m.emitEffect(Coalesce{Epoch: m.Epoch, Failures: m.ListFailures})",
		Finds: []string{"I14"}, Why: "one failed list and the tools are stale for ever",
	},
	// A disabled server withdraws its tools before its connection is gone, and takes back its request for a start.
	Bug{
		Name: "disabled-still-offered", In: "machine.disableServer", Old: "m.withdrawTools()",
		Finds: []string{"I1"}, Why: "the model is offered the tools of a server that was switched off",
	},
	Bug{
		Name: "disabled-revives", In: "machine.disableServer", Old: "m.cancelStart()",
		Finds: []string{"I8"}, Why: "a start that was asked for brings a disabled server back",
	},
	// Failed credentials stop the retries, because only a person can mend them.
	Bug{
		Name: "needs-auth-retried", In: "machine.handleClosed",
		Old:   "case m.Phase == messages.Pending && m.Step == messages.Closing: m.requestStart(m.DueUrgency, true)",
		New:   "case m.Phase == messages.Pending && m.Step == messages.Closing:\nm.requestStart(m.DueUrgency, true)\ncase m.Phase == messages.NeedsAuth && !m.Removing:\nm.requestStart(Normal, false)",
		Finds: []string{"I8", "I7"}, Why: "a revoked token is tried in a loop",
	},
	Bug{
		Name: "needs-auth-unsaid", In: "machine.becomeFailed",
		Old:   "if c.Class == messages.ClassUnauthorized { m.Phase = messages.NeedsAuth }",
		Finds: []string{"I8"}, Why: "nobody is told that a sign-in is missing",
	},
	Bug{
		Name: "remove-leaves-tools", In: "machine.removeServer", Old: "m.withdrawTools()",
		Finds: []string{"I1", "I14"}, Why: "the tools of a removed server are offered until its process is gone",
	},
	// A disabled server may keep its connection warm for a while, but never opens one.
	Bug{
		Name: "disabled-connects", In: "machine.disableServer", Old: "cold || m.Conn == Opening", New: "cold",
		Finds: []string{"I8", "I1"}, Why: "a server that is disabled while it connects is connected nevertheless",
	},
	Bug{
		Name: "warm-death-revives", In: "machine.handleLost", Old: "case messages.Disabled: m.shutConnection(false)",
		New:   "case messages.Disabled:\nm.shutConnection(false)\nm.Cause = &c\nm.becomePending(messages.Restarting)",
		Finds: []string{"I8"}, Why: "a disabled server that dies is started again",
	},
	// The gate learns that a server has answered only when it has; a grant that comes after a disable is given back.
	Bug{
		Name: "slot-freed-at-dial", In: "machine.handleEvent", Old: "m.emitEffect(Greet{e.Epoch})", New: "m.emitEffect(Greet{e.Epoch})\nm.emitEffect(Answer{e.Epoch})",
		Finds: []string{"I6"}, Why: "the gate does not know how many servers are still starting",
	},
	Bug{
		Name: "grant-after-disable", In: "machine.handleGranted", Old: "!m.StartRequested || epoch <= m.Epoch", New: "epoch <= m.Epoch",
		Finds: []string{"I8"}, Why: "a start that was on its way brings a disabled server back",
	},
	// A warm server may have changed its tools unseen.
	Bug{
		Name: "warm-change-forgotten", In: "machine.enableServer", Old: "m.Dirty || m.Listing", New: "m.Listing",
		Finds: []string{"I14"}, Why: "what changed while a server was disabled is missing when it is enabled",
	},
	// A class without a retry ends the wait; a request for a start here would turn it into a loop.
	Bug{
		Name: "config-retried", In: "machine.handleScheduled", Old: "m.StartRequested, m.NextAt = false, time.Time{}",
		New:   "m.requestStart(Normal, false)\nreturn",
		Finds: []string{"I7", "I8"}, Why: "a program that does not exist is started for ever",
	},
	// Events carry the epoch of their connection. An event of an older epoch must change nothing.
	Bug{
		Name: "old-attempt-fails-new", In: "machine.isOpening", Old: "m.Conn == Opening && m.Epoch == epoch", New: "m.Conn == Opening && epoch > 0",
		Finds: []string{"I8", "I7", "I11"}, Why: "the late failure of an attempt that was given up ends the one that took its place",
	},
	Bug{
		Name: "old-connection-ends-new", In: "machine.isOpen", Old: "m.Conn == Open && m.Epoch == epoch", New: "m.Conn == Open && epoch > 0",
		Finds: []string{"I8", "I2"}, Why: "the death of a connection that was replaced takes down the one that works",
	},
	Bug{
		Name: "release-of-another", In: "machine.handleClosed", Old: "epoch != m.Epoch || m.Conn == None", New: "m.Conn == None",
		Finds: []string{"I6", "I8"}, Why: "a connection that lives is taken for released when an older one is",
	},
	// A server with a new spec is a new server: its tools, its cause and its history of connections belong to the old one.
	Bug{
		Name: "new-spec-has-old-tools", In: "machine.replaceSpec", Old: "m.withdrawTools()",
		Finds: []string{"I1", "I14"}, Why: "the tools of the old configuration are offered until the new server answers, if it ever does",
	},
	Bug{
		Name: "new-spec-known-before", In: "machine.replaceSpec", Old: "m.Cause, m.EverConnected = nil, false", New: "m.Cause = nil",
		Finds: []string{"I14", "I11"}, Why: "a lazy server with another configuration rests without tools, so that nothing ever wakes it",
	},
	// These ends give admitted calls the drain time; the argument of shutConnection says so.
	Bug{
		Name: "new-spec-cuts-calls", In: "machine.replaceSpec", Old: "m.shutConnection(true)", New: "m.shutConnection(false)",
		Finds: []string{"I17", "I2"}, Why: "calls that run are cut off when the configuration changes, and nobody knows whether they ran",
	},
	Bug{
		Name: "reconnect-cuts-calls", In: "machine.reconnectServer", Old: "m.shutConnection(true)", New: "m.shutConnection(false)",
		Finds: []string{"I17", "I2"}, Why: "calls that run are cut off by a reconnect, and nobody knows whether they ran",
	},
	Bug{
		Name: "remove-cuts-calls", In: "machine.removeServer", Old: "m.shutConnection(true)", New: "m.shutConnection(false)",
		Finds: []string{"I17", "I2"}, Why: "calls that run are cut off by a removal, and nobody knows whether they ran",
	},
	Bug{
		Name: "idle-cuts-calls", In: "machine.handleEvent", Old: "m.shutConnection(true)", New: "m.shutConnection(false)",
		Finds: []string{"I2"}, Why: "a call that came in the moment in which its server was let go is cut off",
	},
	// A refresh during a list waits for a further list, because the running one may be older than the request.
	Bug{
		Name: "refresh-during-list", In: "machine.refreshTools", Old: "m.RelistAfter = true",
		Finds: []string{"I14"}, Why: "who asks for a refresh gets a list that is older than the wish",
	},
	Bug{
		Name: "refresh-answered-early", In: "Step", Old: "m.Settled() && !m.Refreshing", New: "m.Settled()",
		Finds: []string{"I16", "I14"}, Why: "refresh returns before there is a new list",
	},
	// A successful list clears the failures and leaves only what changed meanwhile.
	Bug{
		Name: "list-failures-stay", In: "machine.handleListed", Old: "m.Listing, m.Refreshing, m.ListFailures = false, m.Refreshing && m.RelistAfter, 0",
		New:   "m.Listing, m.Refreshing = false, m.Refreshing && m.RelistAfter",
		Finds: []string{"I14"}, Why: "after one list that failed no change is ever listed again",
	},
	Bug{
		Name: "change-during-relist", In: "machine.handleListed", Old: "m.Dirty", New: "m.Dirty && m.Refreshing",
		Finds: []string{"I14"}, Why: "a change that comes while the change before is listed is never seen",
	},
	Bug{
		Name: "change-during-first-list", In: "machine.becomeConnected", Old: "m.Dirty", New: "m.Dirty && m.ListFailures > 0",
		Finds: []string{"I14"}, Why: "a tool that a server adds while it starts is never seen",
	},
	// One list at a time runs on a connection.
	Bug{
		Name: "two-lists-at-once", In: "machine.handleEvent", Old: "m.Phase == messages.Connected && m.isOpen(e.Epoch) && m.Dirty && !m.Listing",
		New:   "m.Phase == messages.Connected && m.isOpen(e.Epoch) && m.Dirty",
		Finds: []string{"I9", "I14"}, Why: "a server is listed again while it is being listed, and the older list may come last",
	},
	// The phase and the tools change together: what is published in one step has to agree.
	Bug{
		Name: "lost-stays-live", In: "machine.handleLost", Old: "m.loseTools()",
		Finds: []string{"I1"}, Why: "tools are offered as live while their server is being restarted",
	},
	Bug{
		Name: "old-failure-shown", In: "machine.becomeConnected", Old: "m.Phase, m.Step, m.Cause = messages.Connected, \"\", nil",
		New:   "m.Phase, m.Step = messages.Connected, \"\"",
		Finds: []string{"I8"}, Why: "a server that works shows the error of its last failure",
	},
	// A decision of the retry policy counts only for the attempt that it was made about.
	Bug{
		Name: "old-decision-counts", In: "machine.handleScheduled", Old: "e.Epoch != m.Epoch || !m.StartRequested || m.Step == messages.Queued", New: "!m.StartRequested",
		Finds: []string{"I8", "I7"}, Why: "a server that was asked for just now shows, and waits for, the time of its last failure",
	},
	// A revision number goes up with each change of what is offered, or the registry takes the change for an old one.
	Bug{
		Name: "refused-tools-stay", In: "machine.handleUnauthorized", Old: "m.withdrawTools()",
		Finds: []string{"I1"}, Why: "the tools of a server whose token was revoked stay on offer, and every call of them fails",
	},
	Bug{
		Name: "rest-has-no-number", In: "machine.becomeIdle", Old: "m.Rev++",
		Finds: []string{"I1", "I14"}, Why: "the tools of a server that rests are offered as live, and calls of them fail instead of waking it",
	},
	Bug{
		Name: "withdrawal-has-no-number", In: "machine.withdrawTools", Old: "m.Rev++",
		Finds: []string{"I1"}, Why: "the registry takes a withdrawal for old news: the tools of a disabled server stay",
	},
	// The supervisor orders starts by urgency and needs to know whether the connection was ever up.
	Bug{
		Name: "person-waits-behind", In: "machine.requestStart", Old: "m.DueUrgency = u",
		Finds: []string{"I11", "I15"}, Why: "the server that a person reconnects waits behind all that retry by themselves",
	},
	Bug{
		Name: "was-up-forgotten", In: "machine.handleClosed", Old: "Up: m.WasUp", New: "Up: m.Phase == messages.Connected",
		Finds: []string{"I7"}, Why: "the loss of a connection counts as an attempt that never connected",
	},
	Bug{
		Name: "gone-before-released", In: "machine.handleRemoving", Old: "e.Epoch == m.Epoch && m.Conn != None", New: "m.Conn != None",
		Finds: []string{"I6"}, Why: "a name is given to a new process while the old one still runs",
	},
)
