package bugs

import "slices"

// laterSlipBugs were written as slipBugs were, after the harness had learned from those: one slip in each of many functions that had
// none yet, before any of them was looked for.
var laterSlipBugs = slices.Concat(laterSlipsInActors, laterSlipsInLifecycle, laterSlipsInQueue, laterSlipsInSupervisor, laterSlipsInGate, laterSlipsInSession)

// laterSlipsInActors are in the registry, in the links to connections and in what follows notifications.
var laterSlipsInActors = inPackage("actors",
	Bug{
		Name: "second-withdrawal-unarmed", In: "Registry.Receive", Old: "r.schedulePublish(ctx)\nr.armWithdrawal(ctx)", New: "r.schedulePublish(ctx)",
		Finds: []string{"I1"}, Why: "when two servers are lost one after the other, the tools of the second stay visible for ever",
	},
	Bug{
		Name: "idle-timer-of-old-spec", In: "Server.useLink", Old: "if s.idle != nil { s.idle.Stop() }", New: "{}",
		Finds: []string{"I8", "I17", "I12"}, Why: "a server whose idle time was made longer is disconnected after the old one",
	},
	Bug{
		Name: "use-of-the-last-connection", In: "Server.useLink", Old: "s.lastUse.Store(int64(time.Since(processStart)))", New: "{}",
		Finds: []string{"I17", "I8"}, Why: "a lazy server that was woken rests again at once",
	},
	Bug{
		Name: "waiting-is-no-use", In: "Link.enterQueue", Old: "l.noteUse()", New: "{}",
		Finds: []string{"I17", "I8"}, Why: "a server is disconnected as idle while calls wait for their turn",
	},
	Bug{
		Name: "granted-slot-read-twice", In: "callQueue.acquireSlot", Old: "if received { w.Value <- goes }", New: "_ = received",
		Finds: []string{"I2", "I21"}, Why: "a call whose deadline is the instant of its turn never returns",
	},
	Bug{
		Name: "older-gates-forgotten", In: "attempt.openGate", Old: "g.InFlight() == 0", New: "g.InFlight() >= 0",
		Finds: []string{"I17"}, Why: "calls from before a server was disabled and enabled are cut off by the reconnect that follows",
	},
	Bug{
		Name: "second-answer-counts", In: "Subscriptions.noteAnswer", Old: "s.agreed || agreed", New: "agreed",
		Finds: []string{"I20", "I28"}, Why: "who asks once more for what it watches, and is refused, ends the watch of all",
	},
	Bug{
		Name: "lowered-bound-untold", In: "Cell.setCallLimits", Old: "for _, w := range displaced { w.Value <- false }", New: "_ = displaced",
		Finds: []string{"I2", "I21"}, Why: "calls that lose their place when fewer may wait are never answered",
	},
	Bug{
		Name: "one-refusal-ends-resubscribing", In: "attempt.matchSubscriptions", New: "return",
		Old:   "log.Warn(\"a resource is not watched as callers want\", zap.String(\"server\", a.name),\nzap.String(\"error\", hide(err.Error())))",
		Finds: []string{"I20"}, Why: "after a reconnect no resource is watched behind one that is gone",
	},
	Bug{
		Name: "kept-connection-watches-on", In: "Server.publishView", Old: "before.Phase != messages.Connected", New: "before.Phase != messages.Connected && before.Phase != messages.Disabled",
		Finds: []string{"I20"}, Why: "what was given up while a server was disabled is sent on for as long as its connection stands",
	},
	Bug{
		Name: "closed-watcher-reads-on", In: "Hub.dropWatcher", Old: "kept.shared = true", New: "{}",
		Finds: []string{"I19"}, Why: "a watcher that was closed reads events of later where its own were",
	},
	Bug{
		Name: "pause-never-begins", In: "coalescer.flushChanges", Old: "p.lastPublished = time.Now()", New: "{}",
		Finds: []string{"I9", "I19"}, Why: "a server that notifies without a pause pushes everything else out of the watchers' queues",
	},
	Bug{
		Name: "unlisted-for-ever", In: "Server.startAttempt", Old: "s.unlisted = \"\"", New: "{}",
		Finds: []string{"I22"}, Why: "a server whose list failed once shows that failure over every later connection",
	},
	// The process that ended on the question about the era may still hold a port.
	Bug{
		Name: "second-dial-beside-the-first", In: "attempt.startHandshake", Old: "a.closeSession(sess)", New: "{}",
		Finds: []string{"I6", "I12"}, Why: "a server that ends on the question about the era runs twice",
	},
)

// laterSlipsInLifecycle are in what the state machine remembers of lists.
var laterSlipsInLifecycle = inPackage("actors/lifecycle",
	Bug{
		Name: "refresh-of-an-older-list", In: "machine.handleListed", Old: "m.Refreshing && m.RelistAfter", New: "false",
		Finds: []string{"I16", "I14"}, Why: "who refreshes a server while it is listed sees a list from before",
	},
	Bug{
		Name: "listed-again-and-again", In: "machine.listTools", Old: "m.Listing, m.Dirty, m.RelistAfter = true, false, false", New: "m.Listing, m.Dirty = true, false",
		Finds: []string{"I9"}, Why: "a server that was refreshed while it was listed is listed without an end",
	},
)

// laterSlipsInQueue are in the ring of callers that wait for their turns.
var laterSlipsInQueue = inPackage("actors/internal/queue",
	Bug{
		Name: "turn-of-the-gone", In: "Queue.removeWaiter", Old: "if q.nextLine == l { q.nextLine = l.next }", New: "{}",
		Finds: []string{"I21", "I2"}, Why: "the turn of a caller who gave up blocks all others",
	},
	Bug{
		Name: "newcomer-comes-second", In: "Queue.joinRing", Old: "l.next, l.prev = q.nextLine, q.nextLine.prev", New: "l.next, l.prev = q.nextLine.next, q.nextLine",
		Finds: []string{"I21"}, Why: "callers who come later have their turn before those who wait",
	},
)

// laterSlipsInSupervisor are in the records of servers, and of calls by message.
var laterSlipsInSupervisor = slices.Concat(inPackage("supervisor/internal/core",
	Bug{
		Name: "removed-comes-back", In: "supervisor.endServer", Old: "delete(s.orphans, r.name)", New: "{}",
		Finds: []string{"I16"}, Why: "a server that is removed while its actor waits for a successor is started again",
	},
	Bug{
		Name: "reasons-of-panics-kept", In: "supervisor.handleTerminated", Old: "delete(s.panics, who.Id)", New: "{}",
		Finds: []string{"I12"}, Why: "each panic leaves its text behind, for as long as the manager lives",
	},
	Bug{
		Name: "displaced-again", In: "supervisor.startRequest", Old: "Spared: r.policy.Displaced", New: "Spared: false",
		Finds: []string{"I6", "I18"}, Why: "a server that gave its place gives it again each time",
	},
), inPackage("supervisor",
	Bug{
		Name: "ids-kept-for-ever", In: "replyCache.dropOldest", Old: "delete(r.byID, oldest.reply.GetCallId())", New: "{}",
		Finds: []string{"I12"}, Why: "the ids of calls by message, and their answers, fill the memory",
	},
))

// laterSlipsInGate are in the order of starts.
var laterSlipsInGate = inPackage("supervisor/restart",
	Bug{
		Name: "persons-never-take-turns", In: "pool.grantRequest", Old: "p.lastWasAsked = w.Priority == Urgent", New: "{}",
		Finds: []string{"I18"}, Why: "while persons ask for servers, no other one is started",
	},
	Bug{
		Name: "full-origin-stays-full", In: "pool.releaseSlot", Old: "for c := range g.origin.queues { p.refreshReady(g.origin, c) }", New: "{}",
		Finds: []string{"I18", "I11"}, Why: "servers of one address that had to wait for each other are never started",
	},
)

// laterSlipsInSession are in requests, tasks and subscriptions.
var laterSlipsInSession = inPackage("transports/session",
	Bug{
		Name: "list-drops-requests", In: "Session.freeIdleRequests", Old: "s.pending != nil && len(s.pending) == 0", New: "s.pending != nil",
		Finds: []string{"I2"}, Why: "calls that are under way when a list ends are never answered",
	},
	Bug{
		Name: "error-of-no-request", In: "Session.takeOnlyPending", Old: "case f.longLived:", New: "",
		Finds: []string{"I2"}, Why: "an error without an id, in the modern era, leaves its call waiting until the deadline",
	},
	Bug{
		Name: "polled-as-before", Package: sessionParts + "tasks", In: "Poller.pollInterval", Old: "min(max(d, pollFloor), pollCeiling)<<min(p.failures, 3)", New: "min(max(d, pollFloor), pollCeiling)",
		Finds: []string{"I23", "I9"}, Why: "a server that refuses to tell of a task is asked as often as before",
	},
	Bug{
		Name: "throttled-poll-is-final", Package: sessionParts + "tasks", In: "Poller.checkAnswer", Old: "case messages.ClassNetwork, messages.ClassThrottled, messages.ClassTimeout:\nretry = true",
		New:   "case messages.ClassNetwork, messages.ClassTimeout:\nretry = true",
		Finds: []string{"I2"}, Why: "a server that asks for patience loses the tasks of its callers",
	},
	Bug{
		Name: "failed-polls-add-up", Package: sessionParts + "tasks", In: "Poller.pollStatus", Old: "p.failures, p.retryAfter, p.detailed = 0, 0, true", New: "p.retryAfter, p.detailed = 0, true",
		Finds: []string{"I2"}, Why: "a task of hours is given up after five lost packets",
	},
	Bug{
		Name: "update-refused-by-the-ended", Package: sessionParts + "tasks", In: "Poller.provideInput",
		Old: "case e != nil && a.Kind == outcome.AnswerRPCError && ctx.Err() == nil:\nif p.pollStatus(ctx) == nil && p.lastStatus.State.Final() { return nil }\nreturn e", New: "",
		Finds: []string{"I2"}, Why: "a task that ends while a person answers its question counts as failed",
	},
	Bug{
		Name: "result-asked-for-twice", Package: sessionParts + "tasks", In: "Poller.finalAnswer",
		Old: "case p.pendingResult != nil:\nselect {\ncase end = <-p.pendingResult:\np.pendingResult = nil\ncase <-ctx.Done():\nreturn outcome.Answer{}, p.interruptedError(ctx)\n}", New: "",
		Finds: []string{"I23"}, Why: "the result of a task that asked for input is fetched twice",
	},
	Bug{
		Name: "calm-stream-waits-long", Package: sessionParts + "subscriptions", In: "Stream.run", Old: "if agreed && time.Since(began) >= reopenCalm { pause = reopenFirst }", New: "_ = began",
		Finds: []string{"I14"}, Why: "after some cuts in a week a changed list is seen minutes late",
	},
	Bug{
		Name: "agreement-of-the-last-stream", Package: sessionParts + "subscriptions", In: "Streams.openRequest", Old: "st.agreed = false", New: "{}",
		Finds: []string{"I14"}, Why: "what changed while a subscription was cut off is never seen",
	},
	Bug{
		Name: "ended-streams-kept", Package: sessionParts + "subscriptions", In: "Stream.listenOnce", Old: "defer func() { st.streams.closeRequest(id) }()", New: "{}",
		Finds: []string{"I12"}, Why: "each cut of a stream leaves an entry behind, and what names an ended subscription is believed",
	},
)
