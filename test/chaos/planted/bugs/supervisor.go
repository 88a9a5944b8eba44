package bugs

// supervisorBugs are in the supervisor actor as far as it grants starts and follows the ends of attempts.
var supervisorBugs = inPackage("supervisor/internal/core",
	// An attempt gives its place at the gate back when it is released, and only the attempt with the present epoch may do so.
	Bug{
		Name: "slot-leaks", In: "supervisor.handleReleased", Old: "r.liveEpoch = 0\ns.gate.Closed(now, r.name)",
		New:   "r.liveEpoch = 0\nif r.isUp || r.pid == nil { s.gate.Closed(now, r.name) }",
		Finds: []string{"I11", "I7"}, Why: "a server that failed once is never started again",
	},
	Bug{
		Name: "release-of-any-epoch", In: "supervisor.handleReleased", Old: "r == nil || r.liveEpoch != m.Epoch", New: "r == nil || r.liveEpoch == 0",
		Finds: []string{"I6"}, Why: "the late end of an old connection frees the place of the new one",
	},
	// A command of a person clears the failures of the policy.
	Bug{
		Name: "reconnect-keeps-the-count", In: "supervisor.handleFromServer", Old: "e.Fresh && !r.successor", New: "e.Fresh && r.successor",
		Finds: []string{"I7"}, Why: "a server that a person mended is parked at its first failure",
	},
	// After a sleep the supervisor moves the retries forward, except those that a server asked for, and probes the connections.
	// It sees a sleep by comparing two clocks at intervals.
	Bug{
		Name: "wake-unheard", In: "supervisor.handleWoken", Old: "at.Before(st.NextAt)", New: "at.Before(st.NextAt) && false",
		Finds: []string{"I7", "I13", "I11"}, Why: "after a sleep nothing comes back before its old timer",
	},
	Bug{
		Name: "wake-ignores-retry-after", In: "supervisor.handleWoken",
		Old:   "!st.StartRequested || st.NextAt.IsZero() || st.Cause != nil && st.Cause.RetryAfter > 0",
		New:   "!st.StartRequested || st.NextAt.IsZero()",
		Finds: []string{"I7"}, Why: "a server that asked for time is tried when a laptop is opened",
	},
	Bug{
		Name: "wake-asks-nobody", In: "supervisor.handleWoken", Old: "ctx.Send(r.pid, actors.ProbeNow{})",
		Finds: []string{"I8", "I11"}, Why: "a connection that died while a laptop slept is green until its next question",
	},
	Bug{
		Name: "one-look-at-the-clock", In: "supervisor.checkClocks", Old: "s.armClock()",
		Finds: []string{"I13", "I11"}, Why: "that the machine has slept is noticed in the first ten seconds only",
	},
	Bug{
		Name: "short-sleep-unnoticed", In: "supervisor.checkClocks", Old: "5 * time.Second", New: "5 * time.Minute",
		Finds: []string{"I11", "I13"}, Why: "after a nap of some minutes nothing comes back before its old timer",
	},
	// A server may take back its request at any time; its grant, its place and its queue entry then have to go.
	Bug{
		Name: "refused-grant-leaks", In: "supervisor.handleFromServer", Old: "s.handleReleased(ctx, actors.AttemptReleased{Name: r.name, Epoch: e.Epoch})",
		Finds: []string{"I11", "I16"}, Why: "a server that was disabled in the moment in which it was to start never starts again",
	},
	Bug{
		Name: "request-outlives-disable", In: "supervisor.handleFromServer", Old: "case lifecycle.Unask: s.gate.Cancel(r.name)",
		New:   "case lifecycle.Unask:",
		Finds: []string{"I6", "I7"}, Why: "servers that are disabled take places at the gate from those that are to start",
	},
	Bug{
		Name: "old-request-granted", In: "supervisor.handleFromServer", Old: "m.Attempt < r.liveEpoch", New: "m.Attempt < r.liveEpoch && r.isUp",
		Finds: []string{"I7"}, Why: "a server whose attempt fails is tried again at once, whatever the policy says",
	},
	// The policy needs the time at which a connection was established, and the result of each decision has to be kept.
	Bug{
		Name: "up-since-ever", In: "supervisor.handleFromServer", Old: "r.isUp, r.upSince = true, now", New: "r.isUp = true",
		Finds: []string{"I7"}, Why: "a server that drops each connection after a second is never backed off from, nor parked",
	},
	Bug{
		Name: "answer-untold", In: "supervisor.handleFromServer", Old: "s.gate.Answered(now, r.name)",
		Finds: []string{"I11", "I15"}, Why: "a server that is connected holds its place at the gate",
	},
	Bug{
		Name: "failure-not-kept", In: "supervisor.scheduleRetry", Old: "r.policy, r.isUp = policy, false", New: "r.isUp = false",
		Finds: []string{"I7"}, Why: "a dead server is tried at the pace of the first failure for ever",
	},
	Bug{
		Name: "last-connection-counts", In: "supervisor.scheduleRetry", Old: "r.policy, r.isUp = policy, false", New: "r.policy = policy",
		Finds: []string{"I7"}, Why: "an attempt that never connected counts as a connection that lasted since the last one",
	},
	Bug{
		Name: "parked-not-asked", In: "supervisor.scheduleRetry", Old: "decision.Retry != messages.RetryNever", New: "decision.Retry == messages.RetryAt",
		Finds: []string{"I13", "I11"}, Why: "a server that was parked is given up for good",
	},
	// The supervisor has one timer, for the earliest time at which the gate wants to be asked.
	Bug{
		Name: "later-wins", In: "supervisor.wakeAt", Old: "!at.Before(s.timerAt)", New: "at.Before(s.timerAt)",
		Finds: []string{"I11", "I7"}, Why: "a server waits for the timer of one that is to start later",
	},
	Bug{
		Name: "wake-at-kept", In: "supervisor.Receive", Old: "s.timerAt = time.Time{}",
		Finds: []string{"I11", "I7"}, Why: "after the first timer no server is started by time alone",
	},
	// A grant may come for a server that is gone, and a silent start may have to end for another server.
	Bug{
		Name: "grant-of-the-gone", In: "supervisor.grantStarts", Old: "s.gate.Closed(now, name)\ncontinue", New: "continue",
		Finds: []string{"I11"}, Why: "each server that is gone when its turn comes takes a place at the gate for ever",
	},
	Bug{
		Name: "nothing-displaced", In: "supervisor.grantStarts", Old: "r != nil && r.pid != nil && r.liveEpoch != 0", New: "r != nil && r.pid != nil && r.liveEpoch == 0",
		Finds: []string{"I11"}, Why: "a few dozen servers that never answer keep the good ones from starting",
	},
)

// serversBugs are in the supervisor's table of servers: which exist, which are wanted, and which commands wait.
var serversBugs = inPackage("supervisor/internal/core",
	// A command reaches the actor of the server before its answer goes out, and changes whether the server is wanted.
	Bug{
		Name: "wish-dropped", In: "supervisor.handleCommand", Old: "s.sendEvent(r, m.Event)", New: "if r.liveEpoch != 0 { s.sendEvent(r, m.Event) }",
		Finds: []string{"I16", "I8", "I11"}, Why: "a server that waits for its next attempt cannot be disabled or reconnected",
	},
	Bug{
		Name: "wish-answered-first", In: "supervisor.handleCommand", Old: "s.sendEvent(r, m.Event)",
		New:   "if _, off := m.Event.(lifecycle.Disable); off && r.liveEpoch == 0 { m.Reply(nil); return }\ns.sendEvent(r, m.Event)",
		Finds: []string{"I16", "I8"}, Why: "a server that is down cannot be disabled, and nobody is told so",
	},
	Bug{
		Name: "disable-not-kept", In: "supervisor.handleCommand", Old: "r.wanted = false", New: "_ = r.wanted",
		Finds: []string{"I16", "I8"}, Why: "a server that was disabled is enabled again by the next change of its configuration file",
	},
	Bug{
		Name: "enable-not-kept", In: "supervisor.handleCommand", Old: "case lifecycle.Enable: r.wanted = true", New: "case lifecycle.Enable:",
		Finds: []string{"I16"}, Why: "a server that was enabled refuses to be reconnected because it is disabled",
	},
	Bug{
		Name: "reconnect-of-the-disabled", In: "supervisor.handleCommand", Old: "!r.wanted", New: "r.runtime == nil && !r.wanted",
		Finds: []string{"I16"}, Why: "who reconnects a server that is disabled is told that it was done",
	},
	// A command to a server that is being removed waits until the removal is done, and then is carried out.
	Bug{
		Name: "waits-in-vain", In: "supervisor.handleCommand",
		Old:   "r.waitingCommands = append(r.waitingCommands, waitingCommand{func(ctx actor.Context) { s.handleCommand(ctx, m) }, refuse})\nreturn",
		New:   "return",
		Finds: []string{"I16", "I2"}, Why: "a command to a server that is being replaced hangs until its context ends",
	},
	Bug{
		Name: "add-during-removal-lost", In: "supervisor.handleAdd",
		Old:   "r.waitingCommands = append(r.waitingCommands, waitingCommand{run: func(ctx actor.Context) { s.handleAdd(ctx, m) }})\nreturn",
		New:   "if len(r.waitingCommands) == 0 { r.waitingCommands = append(r.waitingCommands, waitingCommand{run: func(ctx actor.Context) { s.handleAdd(ctx, m) }}) }\nreturn",
		Finds: []string{"I16", "I11"}, Why: "of two who add a server while it is being removed, one waits until its context ends",
	},
	Bug{
		Name: "add-does-not-retry", In: "supervisor.handleAdd",
		Old:   "v.State.Phase == messages.Failed || v.State.Phase == messages.NeedsAuth",
		New:   "v.State.Phase == messages.NeedsAuth",
		Finds: []string{"I16", "I7"}, Why: "who adds a server again that is parked waits for its next probe",
	},
	// A new spec either fits the present connection or replaces the server, with its failures and its address.
	Bug{
		Name: "new-spec-inherits-failures", In: "supervisor.applySpec", Old: "!keep", New: "keep",
		Finds: []string{"I7"}, Why: "a server whose command was corrected is parked at its first failure",
	},
	Bug{
		Name: "old-address-kept", In: "supervisor.applySpec", Old: "r.spec.SameConnection(*r.specInForce())",
		New:   "r.spec.Kind() == r.specInForce().Kind() && r.spec.SameConnection(*r.spec)",
		Finds: []string{"I14", "I16"}, Why: "a server whose address was changed goes on at the old one",
	},
	Bug{
		Name: "wanted-of-the-last-spec", In: "supervisor.applySpec", Old: "r.spec, r.wanted = r.specInForce(), wanted", New: "r.spec = r.specInForce()\n_ = wanted",
		Finds: []string{"I16", "I8"}, Why: "a server that was added again as disabled runs on",
	},
	// A removal ends in several places: the table, the catalog, the events, the memory share and the waiting callers. Each is a
	// line that can be forgotten.
	Bug{
		Name: "lists-of-the-removed", In: "supervisor.finishRemoval", Old: "if s.Removed != nil { s.Removed(r.name) }", New: "{}",
		Finds: []string{"I12"}, Why: "a program that adds and removes servers under new names fills its memory with their lists",
	},
	Bug{
		Name: "removed-still-listed", In: "supervisor.finishRemoval", Old: "s.shared.cells.Delete(r.name)",
		Finds: []string{"I16", "I12"}, Why: "a server that was removed is shown for ever",
	},
	Bug{
		Name: "removed-still-known", In: "supervisor.finishRemoval", Old: "s.sendToRegistry(catalog.Change{Kind: catalog.Forget, Server: r.name})",
		Finds: []string{"I12", "I14"}, Why: "each server that ever was costs memory for ever",
	},
	Bug{
		Name: "removal-untold", In: "supervisor.finishRemoval", Old: "s.shared.Hub.Publish(messages.Event{Kind: messages.EventRemoved, Server: r.name})",
		Finds: []string{"I8", "I16"}, Why: "a screen that follows events shows servers that are gone",
	},
	Bug{
		Name: "memory-of-the-removed", In: "supervisor.finishRemoval", Old: "r.cell.Share.Close()",
		Finds: []string{"I12", "I9"}, Why: "what removed servers held is never given back to the others",
	},
	Bug{
		Name: "waiters-of-the-removed", In: "supervisor.finishRemoval", Old: "r.cell.Publish(&v, nil)",
		Finds: []string{"I16", "I2"}, Why: "who waits for a server that is removed waits for ever",
	},
	Bug{
		Name: "again-forgotten", In: "supervisor.finishRemoval", Old: "w.run(ctx)", New: "_ = w",
		Finds: []string{"I16", "I11"}, Why: "a server that is removed and added again at once never comes, and the command hangs",
	},
	// A new set removes every server that is not in it, in whatever phase it is.
	Bug{
		Name: "set-keeps-the-rest", In: "supervisor.handleSetServers", Old: "res.Removed = append(res.Removed, name)\nr.runtime = nil\ns.dropSource(ctx, r, 0)",
		New:   "res.Removed = append(res.Removed, name)\nr.runtime = nil\nif r.liveEpoch != 0 { s.dropSource(ctx, r, 0) }",
		Finds: []string{"I16", "I8"}, Why: "a server that is not in the new set and is down just now stays, and comes back",
	},
	Bug{
		Name: "set-drops-the-returning", In: "supervisor.handleSetServers", Old: "!r.removing && r.runtime != nil", New: "!r.removing && r.configured == nil && r.liveEpoch != 0",
		Finds: []string{"I16"}, Why: "servers that are starting when the set is replaced stay although they are not in it",
	},
	Bug{
		Name: "reply-forgotten", In: "supervisor.handleRemove", Old: "s.dropSource(ctx, r, ticket)\nm.Reply(nil)", New: "s.dropSource(ctx, r, ticket)\nif r.liveEpoch != 0 { m.Reply(nil) }",
		Finds: []string{"I16", "I2"}, Why: "who removes a server that is down waits until its context ends",
	},
	// A removed server stays in the table until its connection is gone, marked as being removed.
	Bug{
		Name: "removed-at-once", In: "supervisor.endServer", Old: "r.removing, r.wanted = true, false", New: "r.wanted = false",
		Finds: []string{"I16", "I8"}, Why: "a server that is removed and added again runs twice, or not at all",
	},
)

// facadeBugs are in the facade's commands.
var facadeBugs = inPackage("supervisor",
	Bug{
		Name: "close-gives-no-time", In: "Manager.Close", Old: "max(time.Until(deadline)/2, 0)", New: "max(-time.Until(deadline), 0)",
		Finds: []string{"I17"}, Why: "whoever closes a manager with a deadline cuts off the calls that run, and nobody knows whether they ran",
	},
	Bug{
		Name: "close-waits-on", In: "Manager.Close", Old: "m.closeInBackground(drain)", New: "m.closeInBackground(drain)\n\t<-m.closed",
		Finds: []string{"I17"}, Why: "a program that must end soon waits until the last process has",
	},
	// The facade waits for the attempt with its own ticket, and for the catalog, before it returns.
	Bug{
		Name: "attempt-not-awaited", In: "Manager.awaitTicket", Old: "v.State.Answered >= ticket || v.State.Removing",
		New:   "v.State.Answered >= ticket-1 || v.State.Removing",
		Finds: []string{"I16"}, Why: "who connects a server is told of the attempt before",
	},
	Bug{
		Name: "failure-told-as-success", In: "Manager.awaitAttempt", Old: "case messages.Failed, messages.NeedsAuth: return failureError(op, v)",
		New:   "case messages.NeedsAuth:\nreturn failureError(op, v)",
		Finds: []string{"I16"}, Why: "who connects a server that cannot be reached is told that it worked",
	},
	Bug{
		Name: "published-not-awaited", In: "Manager.disableServer", Old: "return m.awaitCatalog(ctx, op)", New: "return nil",
		Finds: []string{"I16", "I1"}, Why: "who disables a server still finds its tools afterwards",
	},
)
