package bugs

// sessionBugs are in the JSON-RPC session over one connection: requests and their answers, outcomes, timeouts, lists in pages,
// the gate, and the end.
var sessionBugs = inPackage("transports/session",
	// A caller who gives up has the session send notifications/cancelled with the id of that request, and of no other.
	Bug{
		Name: "silent-cancel", In: "Session.abandonRequest", Old: "s.cancelRequest(ctx, id, method)",
		Finds: []string{"I4"}, Why: "the server works on for a caller who has gone",
	},
	Bug{
		Name: "cancel-of-another", In: "Session.cancelRequest", Old: "strconv.AppendInt(b, id, 10)", New: "strconv.AppendInt(b, id+1, 10)",
		Finds: []string{"I4", "I3"}, Why: "who gives up a call cancels the one that came after it",
	},
	// A request leaves the table of pending ones exactly once, with its answer, its timeout or the end of the session.
	Bug{
		Name: "late-answer-to-another", In: "Session.expireRequests", Old: "delete(s.pending, id)", New: "_, f.watched = id, false",
		Finds: []string{"I3", "I2"}, Why: "a caller gets what another one asked for",
	},
	Bug{
		Name: "answer-not-taken", In: "Session.takePending", Old: "delete(s.pending, id)",
		Finds: []string{"I3", "I2"}, Why: "a second answer to one request is given to the next caller, or stops the reader for ever",
	},
	// The outcome tells the caller whether the call may have run: "not sent" invites a repetition, "unknown" forbids it.
	Bug{
		Name: "timeout-is-not-sent", In: "Session.abandonRequest", Old: "e.Outcome = messages.OutcomeUnknown", New: "e.Outcome = messages.OutcomeNotSent",
		Finds: []string{"I3"}, Why: "a call that ran is told as not sent, and the caller sends it again",
	},
	Bug{
		Name: "death-is-not-sent", In: "Session.sessionLostError", Old: "result := messages.OutcomeUnknown", New: "result := messages.OutcomeNotSent",
		Finds: []string{"I3"}, Why: "a call that may have run when its server died is sent again",
	},
	Bug{
		Name: "refusal-is-unknown", Package: sessionParts + "outcome", In: "OfSend", Old: "d == transports.NotWritten", New: "d == transports.NotWritten && err == nil",
		Finds: []string{"I3", "I2"}, Why: "a call that never left is told as one that may have run",
	},
	Bug{
		Name: "fault-is-unknown", Package: sessionParts + "outcome", In: "Answer.AsError", Old: "Outcome: messages.OutcomeRejected", New: "Outcome: messages.OutcomeUnknown",
		Finds: []string{"I3"}, Why: "a call that its server refused is told as one that may have run",
	},
	Bug{
		Name: "lost-session-is-unknown", Package: sessionParts + "outcome", In: "OfSend", Old: "case te.Class == messages.ClassSession: return messages.OutcomeNotSent",
		New:   "case te.Class == messages.ClassSession:\nreturn messages.OutcomeUnknown",
		Finds: []string{"I3", "I2"}, Why: "after a server was restarted each call that it did not know is told as one that may have run",
	},
	Bug{
		Name: "forbidden-is-unknown", Package: sessionParts + "outcome", In: "OfSend",
		Old: "switch { case d == transports.MaybeWritten || te.Status == 0: return messages.OutcomeUnknown\n" +
			"case te.Class == messages.ClassSession: return messages.OutcomeNotSent }\nreturn messages.OutcomeRejected",
		New:   "if te.Class == messages.ClassSession && te.Status != 0 { return messages.OutcomeNotSent }\nreturn messages.OutcomeUnknown",
		Finds: []string{"I3"}, Why: "a call that was refused for its credentials is told as one that may have run",
	},
	Bug{
		Name: "bad-request-is-unknown", Package: sessionParts + "outcome", In: "OfSend",
		Old:   "if te.Status/100 == 4 && te.Status != http.StatusRequestTimeout { return messages.OutcomeRejected }",
		New:   "_ = http.StatusRequestTimeout",
		Finds: []string{"I3"}, Why: "a call that its server refused with a status of its own is told as one that may have run",
	},
	Bug{
		Name: "closed-gate-is-unknown", In: "Session.gateClosedError", Old: "messages.OutcomeNotSent", New: "messages.OutcomeUnknown",
		Finds: []string{"I3"}, Why: "a call that was not admitted is told as one that may have run",
	},
	// One caller's end is no matter of the others, and no failure of the server.
	Bug{
		Name: "cancel-ends-all", In: "Session.abandonRequest", Old: "s.cancelRequest(ctx, id, method)", New: "s.cancelRequest(ctx, id, method)\ns.failSession(outcome.ContextError(ctx, method))",
		Finds: []string{"I8", "I2"}, Why: "a caller who gives up one call ends those of all others, and the connection",
	},
	Bug{
		Name: "left-is-late", Package: sessionParts + "outcome", In: "ContextError", Old: "DeadlinePassed(ctx)", New: "ctx.Err() != nil",
		Finds: []string{"I2"}, Why: "a caller who gave up is told that its time had passed, which counts against the server",
	},
	Bug{
		Name: "cancel-is-success", In: "Session.sendAndWait",
		Old: "if a.Kind == outcome.AnswerTimedOut { return outcome.Answer{}, s.abandonRequest(ctx, f.id, m.Method) }",
		New: "if a.Kind == outcome.AnswerTimedOut {\ns.cancelRequest(ctx, f.id, m.Method)\nreturn outcome.Answer{Raw: []byte(`{\"content\":[]}`)}, nil\n}",
		Finds: []string{
			"I3", "I2",
		}, Why: "a call that was given up is told as done",
	},
	// A list goes on while the result has a cursor, and the empty text is a valid one.
	Bug{
		Name: "first-page-only", Package: sessionParts + "lists", In: "Collector.FetchPages", Old: "next == nil", New: "next == nil || true",
		Finds: []string{"I14"}, Why: "tools beyond the first page do not exist",
	},
	Bug{
		Name: "last-page-only", Package: sessionParts + "lists", In: "Collector.addPage", Old: "l.emptyCursorMeansEnd(entries, next)",
		New:   "func() bool { l.Entries = nil; return l.emptyCursorMeansEnd(entries, next) }()",
		Finds: []string{"I14"}, Why: "of the tools only those on the last page exist",
	},
	Bug{
		Name: "empty-cursor-ends", Package: sessionParts + "lists", In: "Collector.addPage", Old: "rawjson.IsNull(next)", New: "rawjson.IsNull(next) || string(next) == `\"\"`",
		Finds: []string{"I14"}, Why: "tools behind an empty cursor, which is a valid one, do not exist",
	},
	Bug{
		Name: "page-of-one-less", Package: sessionParts + "lists", In: "Collector.addEntries", Old: "l.entriesSeen > l.limits.MaxEntries", New: "l.entriesSeen >= l.limits.MaxEntries",
		Finds: []string{"I14"}, Why: "a list as long as may be is refused",
	},
	// A session that its server has forgotten ends at once, so that the supervisor can open another one.
	Bug{
		Name: "session-loss-unnoticed", In: "Session.sendFailedError", Old: "s.failSession(e)", New: "_ = s",
		Finds: []string{"I8", "I2"}, Why: "all calls fail until the next look at a session that its server has forgotten",
	},
	// A closed gate admits no call and reports when the last admitted one has left.
	Bug{
		Name: "drain-waits-for-its-bound", In: "Gate.leave", Old: "g.closeSignal(&g.drained)",
		Finds: []string{"I17", "I2"}, Why: "each reconnect of a server that is in use takes five seconds",
	},
	Bug{
		Name: "empty-gate-drains", In: "Gate.markClosed", Old: "first, empty := g.calls.Close()", New: "first, empty := g.calls.Close()\nempty = !empty",
		Finds: []string{"I17", "I2"}, Why: "each reconnect of a server that is not in use takes five seconds, and calls that run are cut off",
	},
	Bug{
		Name: "closed-gate-admits", Package: "transports/internal/admission", In: "Counter.Enter", Old: "w&closed != 0", New: "w == closed",
		Finds: []string{"I3", "I1"}, Why: "as long as one call runs a server that was disabled can be called",
	},
	Bug{
		Name: "leaves-twice", In: "Gate.Do", Old: "defer g.leave()\nreturn f(g.session)", New: "g.leave()\nreturn f(g.session)",
		Finds: []string{"I2"}, Why: "what is read from a server is cut off by a reconnect",
	},
	Bug{
		Name: "close-admits", In: "Session.Close", Old: "g.markClosed()", New: "_ = g",
		Finds: []string{"I3", "I2"}, Why: "calls are sent over a connection that is being closed, and nobody knows whether they ran",
	},
	// The end of a session answers every pending request, stops its timer and ends its goroutines.
	Bug{
		Name: "death-untold", In: "Session.endSession", Old: "waiting[id].answer <- outcome.Answer{Kind: outcome.AnswerSessionEnded}", New: "_ = id",
		Finds: []string{"I2"}, Why: "calls to a server that has died hang until their deadline",
	},
	Bug{
		Name: "alarm-left", In: "Session.endSession", Old: "s.requestTimer.timer.Stop()",
		Finds: []string{"I12"}, Why: "each connection that ended keeps a timer, and through it all its memory, for up to ten minutes",
	},
	Bug{
		Name: "background-goes-on", In: "Session.endSession", Old: "s.endLifetime()",
		Finds: []string{"I12"}, Why: "what a connection does in the background outlives it",
	},
	// One timer per session is set to the earliest deadline of all pending requests.
	Bug{
		Name: "alarm-of-the-last", In: "Session.armRequestTimer", Old: "at >= s.requestTimer.firesAt", New: "at <= s.requestTimer.firesAt",
		Finds: []string{"I2"}, Why: "a call with a short timeout ends when the longest one does",
	},
	Bug{
		Name: "alarm-rings-once", In: "Session.expireRequests", Old: "s.requestTimer.firesAt = 0",
		Finds: []string{"I2"}, Why: "after the first timeout on a connection no other call ends at its own",
	},
	Bug{
		Name: "alarm-for-one", In: "Session.expireRequests", Old: "at < next", New: "at > next",
		Finds: []string{"I2"}, Why: "of several calls that wait only the last one's deadline is kept",
	},
	// Progress restarts the idle timeout of a call, but never the longest time that it may take.
	Bug{
		Name: "progress-without-end", Package: sessionParts + "calltimeout", In: "Context.RestartIdle", Old: "p.idleDue = monotime.Now() + monotime.Time(p.idleTimeout)",
		New:   "p.idleDue = monotime.Now() + monotime.Time(p.idleTimeout)\np.longestDue = 0",
		Finds: []string{"I2"}, Why: "a server that reports progress for ever holds its caller for ever",
	},
	Bug{
		Name: "progress-unheard", In: "Session.handleProgress", Old: "timeout.RestartIdle()", New: "_ = timeout",
		Finds: []string{"I2"}, Why: "a long call is given up at its timeout although its server reports progress",
	},
	Bug{
		Name: "earlier-clock-wins-not", Package: sessionParts + "calltimeout", In: "Context.nextDueLocked", Old: "p.longestDue == 0 || p.idleDue < p.longestDue", New: "p.longestDue == 0 || p.idleDue > p.longestDue",
		Finds: []string{"I2"}, Why: "a call ends at the longest time that it may take, whatever its timeout",
	},
	Bug{
		Name: "clock-stands-still", Package: sessionParts + "calltimeout", In: "Context.ResumeIdle", Old: "p.idleDue += monotime.Now()",
		Finds: []string{"I2"}, Why: "a call about which a person was asked ends the moment in which the person has answered",
	},
	// Change notifications are joined; the flag has to be cleared before the callback, or a change during the callback is lost.
	Bug{
		Name: "change-told-once", Package: sessionParts + "serial", In: "CoalescedCall.Schedule", Old: "n.scheduled.Store(false)",
		Finds: []string{"I14"}, Why: "of the changes of a connection's tools only the first is seen",
	},
	Bug{
		Name: "change-during-telling", Package: sessionParts + "serial", In: "CoalescedCall.Schedule", Old: "n.scheduled.Store(false)\nf()", New: "f()\nn.scheduled.Store(false)",
		Finds: []string{"I14"}, Why: "a change that comes while the one before is told is never seen",
	},
	// A stream that is opened again may have missed a change, so it counts as one.
	Bug{
		Name: "reopened-stream-quiet", In: "sink.StreamReopened", Old: "s.notifyToolsChanged()",
		Finds: []string{"I14"}, Why: "a tool that came while the stream of a remote server was cut is never seen",
	},
	// Every message proves that the server lives; lines that are no messages are counted and bounded.
	Bug{
		Name: "life-not-noted", In: "sink.MessageOn", Old: "s.lastHeard.Store(int64(monotime.Now()))", New: "s.lastHeard.CompareAndSwap(0, int64(monotime.Now()))",
		Finds: []string{"I9", "I8"}, Why: "a server that talks all the time is asked all the time whether it lives, and given up when it is slow",
	},
	Bug{
		Name: "noise-unbounded", In: "Session.countNoise", Old: "!s.noise.Load().countLine(line, s.cfg.NoiseLimit, time.Now())",
		New:   "!s.noise.Load().countLine(line, s.cfg.NoiseLimit, time.Now()) || s.info.Load() != nil",
		Finds: []string{"I9", "I8"}, Why: "a server that logs to its standard output without end is read without end",
	},
	// An answer that cannot be used still ends its request.
	Bug{
		Name: "broken-answer-waits", In: "Session.handleInvalidJSON", Old: "f.answer <- outcome.Answer{Kind: outcome.AnswerUnusable, Detail: \"is not valid JSON\"}",
		New:   "_ = f",
		Finds: []string{"I2"}, Why: "a call whose answer is not valid JSON ends at its deadline and not when it came",
	},
	Bug{
		Name: "too-long-answer-waits", In: "Session.failDiscarded", Old: "f.answer <- a", New: "_ = f",
		Finds: []string{"I2"}, Why: "a call whose answer is too long ends at its deadline and not when it came",
	},
	Bug{
		Name: "tool-error-is-a-result", In: "Session.handleAnswer",
		Old:   "outcome.Answer{Kind: outcome.AnswerResult, Raw: e.Result, IsError: e.IsError, Detail: string(e.ResultType)}",
		New:   "outcome.Answer{Kind: outcome.AnswerResult, Raw: e.Result, Detail: string(e.ResultType)}",
		Finds: []string{"I2", "I3"}, Why: "a tool that failed is told as one that did what it was asked",
	},
	// The connection counts as released only when its transport says so; a recycled request must hold nothing of the one
	// before.
	Bug{
		Name: "released-too-early", In: "Session.releaseWhenDone", Old: "<-s.conn.Released()",
		Finds: []string{"I6", "I12"}, Why: "a server is started again while its old process still runs",
	},
	Bug{
		Name: "flight-remembers", In: "Session.recycleRequest",
		Old:   "f.ctx, f.longLived, f.watched, f.timeout, f.progress, f.posted = nil, false, false, nil, nil, nil",
		New:   "f.ctx, f.watched, f.timeout, f.progress, f.posted = nil, false, nil, nil, nil",
		Finds: []string{"I2"}, Why: "an answer that cannot be told apart is not given to the one call that waits",
	},
	// The memory of lists and notifications is charged to the server and has to be given back on every path.
	Bug{
		Name: "memory-of-a-failed-list", Package: sessionParts + "lists", In: "Collector.FetchPages", Old: "l.limits.Memory.Release(l.MemoryTaken)\nl.MemoryTaken = 0", New: "l.MemoryTaken = 0",
		Finds: []string{"I9", "I12"}, Why: "lists that fail eat up the memory that their server may hold",
	},
	Bug{
		Name: "memory-of-a-lane", Package: sessionParts + "serial", In: "Queue.drain", Old: "l.Memory.Release(item.memoryHeld)",
		Finds: []string{"I9"}, Why: "after a thousand log messages a server's notifications find no memory any more",
	},
)
