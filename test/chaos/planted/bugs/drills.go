package bugs

import "slices"

// drillBugs are slips that no day can tell from what its faults do, or whose situation no day brings about: package drills finds them.
var drillBugs = slices.Concat(
	inPackage("transports/serve",
		Bug{
			Name: "turn-kept-by-a-refused-request", In: "lineConn.receiveLine", Old: "<-c.turns\ncancel()\nc.out.writeAnswer(m.id, appendError(nil, m.id, e), nil)",
			New:   "cancel()\nc.out.writeAnswer(m.id, appendError(nil, m.id, e), nil)",
			Finds: []string{"I25"}, Why: "each request by which an agent on lines uses the id of one that runs takes a place for ever",
		},
		Bug{
			Name: "end-of-input-ends-calls", In: "Stdio", Old: "c.session.endInput()\nc.running.Wait()", New: "c.session.endInput()",
			Finds: []string{"I25"}, Why: "an agent on lines that closes its input gets no results of the calls that still run",
		},
	),
	inPackage("transports/web",
		Bug{
			Name: "gap-of-the-stream-unnoted", In: "streamListener.listenOnce", Old: "l.gap = true",
			Finds: []string{"I14"}, Why: "what a server announces while its stream is broken, and does not number its events, is never noticed",
		},
		Bug{
			Name: "one-stream-more", In: "exchange.readAnswerStream", Old: "fruitless == maxResumes", New: "fruitless > maxResumes",
			Finds: []string{"I2"}, Why: "a call is given up after more streams that bring nothing than it should be",
		},
		Bug{
			Name: "nothing-counts-as-something", In: "exchange.readResponse", Old: "x.hadEvents = false",
			Finds: []string{"I2", "I23"}, Why: "a stream that brings nothing counts as one that brought something, because the one before did",
		},
	),
	inPackage("transports/session",
		Bug{
			Name: "unanswered-end-counts-as-watching", In: "Session.requestSubscription", Old: "case !want && (e == nil || e.Outcome == messages.OutcomeUnknown):\ns.watches.Replace(uri, nil, nil)",
			New:   "case !want && e == nil:\ns.watches.Replace(uri, nil, nil)",
			Finds: []string{"I24"}, Why: "after a request to end a watch that the server did not answer, the next watch of the resource gets no updates",
		},
		Bug{
			Name: "no-timer-after-a-question", In: "Session.resumeTimeout", Old: "s.armRequestTimer(p.NextDue())",
			Finds: []string{"I2"}, Why: "a call about which a person was asked longer than its timeout is ended by its longest time only",
		},
		Bug{
			Name: "progress-beside-a-question", Package: sessionParts + "calltimeout", In: "Context.RestartIdle", Old: "p.paused > 0", New: "false",
			Finds: []string{"I2"}, Why: "a call that tells of progress while a person is asked about it does not time out afterwards",
		},
	),
	inPackage("actors",
		Bug{
			Name: "rejected-hides-the-first", In: "stillUnknown", Old: "case messages.OutcomeNotSent, messages.OutcomeRejected:\ndefault:\nreturn err",
			New:   "case messages.OutcomeNotSent:\ndefault:\nreturn err",
			Finds: []string{"I2"}, Why: "a call that may have run is reported as rejected when its repetition is rejected",
		},
	),
	inPackage("supervisor/internal/asker",
		Bug{
			Name: "gone-and-still-waiting", In: "Asker.AskPermission", Old: "f.waiting--",
			Finds: []string{"I20"}, Why: "a person who is asked about a call is told that callers wait for it who have given up",
		},
		Bug{
			Name: "answer-for-any-arguments", In: "Asker.AskPermission", Old: "args: sha256.Sum256(r.Arguments)", New: "args: [sha256.Size]byte{}",
			Finds: []string{"I20"}, Why: "what a person answers about a call counts for waiting calls of the tool with other arguments",
		},
	),
	inPackage("supervisor",
		Bug{
			Name: "ready-of-the-spec-before", In: "Manager.awaitReady", Old: "v.Seen >= ticket && isOver(v)", New: "isOver(v)",
			Finds: []string{"I16"}, Why: "Ready right after SetServers or Configure returns the failure of the spec before",
		},
	),
	inPackage("supervisor/internal/core",
		Bug{
			Name: "without-credentials-untried", In: "supervisor.handleAdd", Old: "v.State.Phase == messages.Failed || v.State.Phase == messages.NeedsAuth",
			New:   "v.State.Phase == messages.Failed",
			Finds: []string{"I16"}, Why: "Connect with the same spec does not try a server that needed credentials, although it may have some now",
		},
		Bug{
			Name: "told-the-last-end", In: "supervisor.nextIdleEnd", Old: "wait == 0 || d < wait", New: "wait == 0 || d > wait",
			Finds: []string{"I21"}, Why: "a caller who found no free instance is told to come back when the last one ends, and not the first",
		},
	),
	inPackage("supervisor/internal/requests",
		Bug{
			Name: "bound-of-the-other-kind", In: "Handler.sampleFunc", Old: "takeUnlessRelayed(&d.sampleLimits, caller, server)",
			New:   "takeUnlessRelayed(&d.elicitLimits, caller, server)",
			Finds: []string{"I24"}, Why: "a server may ask for the model no more often than for the person",
		},
	),
	inPackage("supervisor/gateway",
		Bug{
			Name: "prefix-of-before", In: "offerList.isOf", Old: "l.prefix == prefix", New: "true",
			Finds: []string{"I26"}, Why: "prompts keep their names when another prefix is configured for a view",
		},
		Bug{
			Name: "given-up-level-counts", In: "view.setLevel", Old: "v.wanted[st.level.Load()]--",
			Finds: []string{"I24"}, Why: "a server goes on sending the finer log messages that an agent has given up",
		},
		Bug{
			Name: "slash-hides-what-is-inside", In: "watches.tellUpdated", Old: `strings.TrimSuffix(to.uri, "/")+"/"`, New: `to.uri+"/"`,
			Finds: []string{"I24"}, Why: "an agent that watches a directory by a URI with a slash at its end hears nothing of the files in it",
		},
		Bug{
			Name: "ended-though-watched", In: "watches.removeWatch", Old: "watched := len(one.tell) > 0", New: "watched := false",
			Finds: []string{"I24"}, Why: "a watch that begins while the one before is being ended is ended with it, and updates until it is asked for anew are lost",
		},
		Bug{
			Name: "taken-back-and-begun", In: "watches.removeWatchesOf", Old: "wish.takenBack, takenBack = true, true", New: "takenBack = true",
			Finds: []string{"I24"}, Why: "a watch that its agent ends while the gateway looks for the server begins all the same, and stays",
		},
		Bug{
			Name: "rest-of-the-questions-forgotten", In: "Gateway.resumeCall", Old: "c.wakeUp()",
			Finds: []string{"I25"}, Why: "an agent that answers some of the questions about its call is not asked the others again, and the call hangs",
		},
		Bug{
			Name: "answers-taken-twice", In: "suspension.takeAnswers", Old: "s.stage == working || round != s.round", New: "round != s.round",
			Finds: []string{"I25"}, Why: "an agent that gives the answers of a round a second time takes its call from the request that waits for it",
		},
		Bug{
			Name: "late-part-untold", In: "view.awaitPart", Old: "g.noteChange(func(*saidChanges) {})",
			Finds: []string{"I26"}, Why: "an agent that listed while a server was slow is not told when the server has listed",
		},
		Bug{
			Name: "task-asked-once", In: "modernCall.relayQuestion", Old: "delete(c.asking, q.id)",
			Finds: []string{"I25"}, Why: "a question about a task is not asked again after the request that carried it went away",
		},
		Bug{
			Name: "one-who-cannot-is-asked", In: "Questions.askerFor", Old: "st.abilityOf(ability) == nil", New: "false",
			Finds: []string{"I24"}, Why: "a question of an instance goes to an agent that cannot answer while another one of the principal can",
		},
	),
	inPackage("actors",
		Bug{
			Name: "read-is-no-use", In: "Calls.Send", Old: "!r.AwakeOnly", New: "r.Entry != nil",
			Finds: []string{"I17"}, Why: "a lazy server that is only read rests although it is in use",
		},
		Bug{
			Name: "asleep-with-a-list-due", Package: "actors/lifecycle", In: "machine.handleEvent",
			Old: "m.Phase == messages.Connected && m.isOpen(e.Epoch) && m.Lazy && !m.Listing && !m.Dirty", New: "m.Phase == messages.Connected && m.isOpen(e.Epoch) && m.Lazy && !m.Listing",
			Finds: []string{"I17"}, Why: "a lazy server rests before a change of its tools is listed that it has announced",
		},
		Bug{
			Name: "met-its-rest", In: "Calls.repeat", Old: "closed && c.hasGoneToRest(ctx, link) && !r.AwakeOnly", New: "false",
			Finds: []string{"I2"}, Why: "a call that meets the rest of its server in the same instant is refused, and no later one is",
		},
		Bug{
			Name: "list-keeps-awake", Package: "supervisor", In: "Manager.ReadOrRecall", Old: "ctx = context.WithValue(ctx, awakeOnly{}, true)",
			Finds: []string{"I17"}, Why: "agents that list prompts and resources keep a lazy server from its rest",
		},
	),
	inPackage("supervisor",
		Bug{
			Name: "whole-time-for-calls", In: "Manager.Close", Old: "max(time.Until(deadline)/2, 0)", New: "max(time.Until(deadline), 0)",
			Finds: []string{"I17"}, Why: "Close gives calls all of its time, and leaves none for the processes",
		},
		Bug{
			Name: "drain-of-a-removal-at-close", Package: "supervisor/internal/core", In: "supervisor.closeServers",
			Old: "s.endServer(ctx, r, m.Drain)", New: "s.endServer(ctx, r, s.Common.Timing.Drain)",
			Finds: []string{"I17"}, Why: "calls of a manager that is closed go on for as long as those of a server that is removed, whatever time Close has",
		},
		Bug{
			Name: "close-asks-on", In: "Manager.beginClose", Old: "close(m.closingBegun)",
			Finds: []string{"I20"}, Why: "a person is asked on about a call although the manager is closed",
		},
		Bug{
			Name: "enable-what-is-removed", Package: "actors", In: "Calls.notConnectedError", Old: "s.Removing", New: "false",
			Finds: []string{"I2"}, Why: "a call that meets the removal of its server is told to enable it",
		},
	),
	inPackage("supervisor",
		Bug{
			Name: "first-send-forgotten", In: "interception.send", Old: "c.mayHaveRun || !hasReturned || err == nil", New: "!hasReturned || err == nil",
			Finds: []string{"I20"}, Why: "a request that an interceptor sent twice, the second time in vain, ends as not sent although it may have run",
		},
		Bug{
			Name: "no-response-with-an-error", In: "interception.invoker", Old: "res == nil && err != nil", New: "false",
			Finds: []string{"I20"}, Why: "an interceptor that looks at the response of an inner one that refused panics",
		},
		Bug{
			Name: "second-response-over-the-first", In: "interception.beginSend", Old: "c.calls > 0", New: "false",
			Finds: []string{"I20"}, Why: "the second call of next changes the response of the first, which an interceptor keeps",
		},
		Bug{
			Name: "own-change-unseen", In: "interception.invoker", Old: "interceptors[i](ctx, q, c.invoker(i+1))", New: "interceptors[i](ctx, &c.asked, c.invoker(i+1))",
			Finds: []string{"I20"}, Why: "the second interceptor gets the request of the caller, and not what the first made of it",
		},
	),
	inPackage("transports/serve",
		Bug{
			Name: "answered-and-open", In: "eventStream.writeAnswer", Old: "s.log.keepEvent(s.stream, s.number+1, body, true)", New: "s.log.keepEvent(s.stream, s.number+1, body, false)",
			Finds: []string{"I25"}, Why: "an agent that comes back behind its answer waits on a stream on which nothing comes any more",
		},
		Bug{
			Name: "session-of-any-path", In: "sessions.findSession", Old: "s.Path != path", New: "false",
			Finds: []string{"I25"}, Why: "a session that began at one server's path is found at that of another",
		},
		Bug{
			Name: "old-by-its-beginning", In: "sessions.findSession", Old: "s.lastUsed = time.Now()",
			Finds: []string{"I25"}, Why: "a session ends as idle although its agent uses it",
		},
		Bug{
			Name: "deleted-session-runs", In: "Session.closeSession", Old: "s.cancelRequests()",
			Finds: []string{"I25"}, Why: "the calls of a session that its agent has ended go on at their servers",
		},
	),
	inPackage("actors",
		Bug{
			Name: "next-attempt-counted-back", In: "Calls.notConnectedError", Old: "time.Until(s.NextAt)", New: "time.Since(s.NextAt)",
			Finds: []string{"I16"}, Why: "a caller whose server is away is told to come back at once, although it is tried much later",
		},
		Bug{
			Name: "deadline-not-named", In: "Calls.awaitTool", Old: "c.notConnectedError(server, tool, ctx.Err())", New: "c.notConnectedError(server, tool, nil)",
			Finds: []string{"I16"}, Why: "a call whose deadline ends while its server is away does not say that it was the deadline",
		},
		Bug{
			Name: "reads-do-not-wait", In: "Calls.Repeat", Old: "r.wait, r.mayWake = c.Wait, true", New: "r.mayWake = true",
			Finds: []string{"I2"}, Why: "a read of a server that is away ends at once where a call waits for it",
		},
		Bug{
			Name: "forgets-who-lists", Package: "supervisor", In: "Manager.findOffering",
			Old:   "m.index.SetResources(listed[i].server, before[listed[i].server], listed[i].items, listed[i].err)",
			Finds: []string{"I16", "I2"}, Why: "a read by a URI does not find the server that listed it and is away now",
		},
	),
)
