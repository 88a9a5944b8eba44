package planted

var sessionBugs = in("transports/session",
	Bug{
		Name: "silent-cancel", In: "Session.abandoned", Old: "s.cancel(ctx, id, method)",
		Finds: []string{"I4"}, Why: "the server works on for a caller who has gone",
	},
	Bug{
		Name: "cancel-of-another", In: "Session.cancel", Old: "strconv.AppendInt(b, id, 10)", New: "strconv.AppendInt(b, id+1, 10)",
		Finds: []string{"I4", "I3"}, Why: "who gives up a call cancels the one that came after it",
	},
	Bug{
		Name: "late-answer-to-another", In: "Session.ring", Old: "delete(s.pending, id)", New: "_, f.watched = id, false",
		Finds: []string{"I3", "I2"}, Why: "a caller gets what another one asked for",
	},
	Bug{
		Name: "answer-not-taken", In: "Session.take", Old: "delete(s.pending, id)",
		Finds: []string{"I3", "I2"}, Why: "a second answer to one request is given to the next caller, or stops the reader for ever",
	},
	Bug{
		Name: "timeout-is-not-sent", In: "Session.abandoned", Old: "e.Outcome = messages.OutcomeUnknown", New: "e.Outcome = messages.OutcomeNotSent",
		Finds: []string{"I3"}, Why: "a call that ran is told as not sent, and the caller sends it again",
	},
	Bug{
		Name: "death-is-not-sent", In: "Session.lost", Old: "outcome := messages.OutcomeUnknown", New: "outcome := messages.OutcomeNotSent",
		Finds: []string{"I3"}, Why: "a call that may have run when its server died is sent again",
	},
	Bug{
		Name: "refusal-is-unknown", In: "outcomeOf", Old: "d == transports.NotWritten", New: "d == transports.NotWritten && err == nil",
		Finds: []string{"I3", "I2"}, Why: "a call that never left is told as one that may have run",
	},
	Bug{
		Name: "fault-is-unknown", In: "answer.fault", Old: "Outcome: messages.OutcomeRejected", New: "Outcome: messages.OutcomeUnknown",
		Finds: []string{"I3"}, Why: "a call that its server refused is told as one that may have run",
	},
	Bug{
		Name: "lost-session-is-unknown", In: "outcomeOf", Old: "case te.Class == messages.ClassSession: return messages.OutcomeNotSent",
		New:   "case te.Class == messages.ClassSession:\nreturn messages.OutcomeUnknown",
		Finds: []string{"I3", "I2"}, Why: "after a server was restarted each call that it did not know is told as one that may have run",
	},
	Bug{
		Name: "forbidden-is-unknown", In: "outcomeOf",
		Old: "switch { case d == transports.MaybeWritten || te.Status == 0: return messages.OutcomeUnknown\n" +
			"case te.Class == messages.ClassSession: return messages.OutcomeNotSent }\nreturn messages.OutcomeRejected",
		New:   "if te.Class == messages.ClassSession && te.Status != 0 { return messages.OutcomeNotSent }\nreturn messages.OutcomeUnknown",
		Finds: []string{"I3"}, Why: "a call that was refused for its credentials is told as one that may have run",
	},
	Bug{
		Name: "bad-request-is-unknown", In: "outcomeOf",
		Old:   "if te.Status/100 == 4 && te.Status != http.StatusRequestTimeout { return messages.OutcomeRejected }",
		New:   "_ = http.StatusRequestTimeout",
		Finds: []string{"I3"}, Why: "a call that its server refused with a status of its own is told as one that may have run",
	},
	Bug{
		Name: "closed-gate-is-unknown", In: "Session.refuse", Old: "messages.OutcomeNotSent", New: "messages.OutcomeUnknown",
		Finds: []string{"I3"}, Why: "a call that was not admitted is told as one that may have run",
	},
	Bug{
		Name: "cancel-ends-all", In: "Session.abandoned", Old: "s.cancel(ctx, id, method)", New: "s.cancel(ctx, id, method)\ns.fail(contextError(ctx, method))",
		Finds: []string{"I8", "I2"}, Why: "a caller who gives up one call ends those of all others, and the connection",
	},
	Bug{
		Name: "left-is-late", In: "contextError", Old: "deadlinePassed(ctx)", New: "ctx.Err() != nil",
		Finds: []string{"I2"}, Why: "a caller who gave up is told that its time had passed, which counts against the server",
	},
	Bug{
		Name: "cancel-is-success", In: "Session.fly",
		Old: "if a.kind == answerLate { return answer{}, s.abandoned(ctx, f.id, m.Method) }",
		New: "if a.kind == answerLate {\ns.cancel(ctx, f.id, m.Method)\nreturn answer{raw: []byte(`{\"content\":[]}`)}, nil\n}",
		Finds: []string{
			"I3", "I2",
		}, Why: "a call that was given up is told as done",
	},
	Bug{
		Name: "first-page-only", In: "listing.fetch", Old: "next == nil", New: "next == nil || true",
		Finds: []string{"I14"}, Why: "tools beyond the first page do not exist",
	},
	Bug{
		Name: "last-page-only", In: "listing.page", Old: "l.emptyCursorMeansEnd(entries, next)",
		New:   "func() bool { l.entries = nil; return l.emptyCursorMeansEnd(entries, next) }()",
		Finds: []string{"I14"}, Why: "of the tools only those on the last page exist",
	},
	Bug{
		Name: "empty-cursor-ends", In: "listing.page", Old: "rawjson.IsNull(next)", New: "rawjson.IsNull(next) || string(next) == `\"\"`",
		Finds: []string{"I14"}, Why: "tools behind an empty cursor, which is a valid one, do not exist",
	},
	Bug{
		Name: "page-of-one-less", In: "listing.add", Old: "l.seen > l.most", New: "l.seen >= l.most",
		Finds: []string{"I14"}, Why: "a list as long as may be is refused",
	},
	Bug{
		Name: "session-loss-unnoticed", In: "Session.sendFailed", Old: "s.fail(e)", New: "_ = s",
		Finds: []string{"I8", "I2"}, Why: "all calls fail until the next look at a session that its server has forgotten",
	},
	Bug{
		Name: "drain-waits-for-its-bound", In: "Gate.leave", Old: "g.tell(&g.drained)",
		Finds: []string{"I17", "I2"}, Why: "each reconnect of a server that is in use takes five seconds",
	},
	Bug{
		Name: "empty-gate-drains", In: "Gate.shut", Old: "before == 0", New: "before != 0",
		Finds: []string{"I17", "I2"}, Why: "each reconnect of a server that is not in use takes five seconds, and calls that run are cut off",
	},
	Bug{
		Name: "closed-gate-admits", In: "Gate.enter", Old: "w&gateClosed != 0", New: "w == gateClosed",
		Finds: []string{"I3", "I1"}, Why: "as long as one call runs a server that was disabled can be called",
	},
	Bug{
		Name: "leaves-twice", In: "Gate.Do", Old: "defer g.leave()\nreturn f(g.session)", New: "g.leave()\nreturn f(g.session)",
		Finds: []string{"I2"}, Why: "what is read from a server is cut off by a reconnect",
	},
	Bug{
		Name: "close-admits", In: "Session.Close", Old: "g.shut()", New: "_ = g",
		Finds: []string{"I3", "I2"}, Why: "calls are sent over a connection that is being closed, and nobody knows whether they ran",
	},
	Bug{
		Name: "death-untold", In: "Session.die", Old: "f.answer <- answer{kind: answerLost}", New: "_ = f",
		Finds: []string{"I2"}, Why: "calls to a server that has died hang until their deadline",
	},
	Bug{
		Name: "alarm-left", In: "Session.die", Old: "s.alarm.timer.Stop()",
		Finds: []string{"I12"}, Why: "each connection that ended keeps a timer, and through it all its memory, for up to ten minutes",
	},
	Bug{
		Name: "background-goes-on", In: "Session.die", Old: "s.endLife()",
		Finds: []string{"I12"}, Why: "what a connection does in the background outlives it",
	},
	Bug{
		Name: "alarm-of-the-last", In: "Session.wakeBy", Old: "at >= s.alarm.at", New: "at <= s.alarm.at",
		Finds: []string{"I2"}, Why: "a call with a short timeout ends when the longest one does",
	},
	Bug{
		Name: "alarm-rings-once", In: "Session.ring", Old: "s.alarm.at = 0",
		Finds: []string{"I2"}, Why: "after the first timeout on a connection no other call ends at its own",
	},
	Bug{
		Name: "alarm-for-one", In: "Session.ring", Old: "at < next", New: "at > next",
		Finds: []string{"I2"}, Why: "of several calls that wait only the last one's deadline is kept",
	},
	Bug{
		Name: "progress-without-end", In: "Patience.begin", Old: "p.due = now() + moment(p.soft)",
		New:   "p.due = now() + moment(p.soft)\np.end = 0",
		Finds: []string{"I2"}, Why: "a server that reports progress for ever holds its caller for ever",
	},
	Bug{
		Name: "progress-unheard", In: "Session.progressed", Old: "patience.begin()", New: "_ = patience",
		Finds: []string{"I2"}, Why: "a long call is given up at its timeout although its server reports progress",
	},
	Bug{
		Name: "earlier-clock-wins-not", In: "Patience.next", Old: "p.end == 0 || p.due < p.end", New: "p.end == 0 || p.due > p.end",
		Finds: []string{"I2"}, Why: "a call ends at the longest time that it may take, whatever its timeout",
	},
	Bug{
		Name: "clock-stands-still", In: "Patience.resume", Old: "p.due += now()",
		Finds: []string{"I2"}, Why: "a call about which a person was asked ends the moment in which the person has answered",
	},
	Bug{
		Name: "change-told-once", In: "notice.tell", Old: "n.waits.Store(false)",
		Finds: []string{"I14"}, Why: "of the changes of a connection's tools only the first is seen",
	},
	Bug{
		Name: "change-during-telling", In: "notice.tell", Old: "n.waits.Store(false)\nf()", New: "f()\nn.waits.Store(false)",
		Finds: []string{"I14"}, Why: "a change that comes while the one before is told is never seen",
	},
	Bug{
		Name: "reopened-stream-quiet", In: "sink.StreamReopened", Old: "s.toolsChanged()",
		Finds: []string{"I14"}, Why: "a tool that came while the stream of a remote server was cut is never seen",
	},
	Bug{
		Name: "life-not-noted", In: "sink.MessageOn", Old: "s.heard.Store(int64(now()))", New: "s.heard.CompareAndSwap(0, int64(now()))",
		Finds: []string{"I9", "I8"}, Why: "a server that talks all the time is asked all the time whether it lives, and given up when it is slow",
	},
	Bug{
		Name: "noise-unbounded", In: "Session.disturbed", Old: "!s.noise.Load().add(line, s.cfg.NoiseLimit, time.Now())",
		New:   "!s.noise.Load().add(line, s.cfg.NoiseLimit, time.Now()) || s.info.Load() != nil",
		Finds: []string{"I9", "I8"}, Why: "a server that logs to its standard output without end is read without end",
	},
	Bug{
		Name: "broken-answer-waits", In: "Session.brokenMessage", Old: "f.answer <- answer{kind: answerBroken, word: \"is not valid JSON\"}",
		New:   "_ = f",
		Finds: []string{"I2"}, Why: "a call whose answer is not valid JSON ends at its deadline and not when it came",
	},
	Bug{
		Name: "too-long-answer-waits", In: "Session.discarded", Old: "f.answer <- a", New: "_ = f",
		Finds: []string{"I2"}, Why: "a call whose answer is too long ends at its deadline and not when it came",
	},
	Bug{
		Name: "tool-error-is-a-result", In: "Session.answered",
		Old:   "answer{kind: answerResult, raw: e.result, isError: e.isError, word: string(e.resultType)}",
		New:   "answer{kind: answerResult, raw: e.result, word: string(e.resultType)}",
		Finds: []string{"I2", "I3"}, Why: "a tool that failed is told as one that did what it was asked",
	},
	Bug{
		Name: "released-too-early", In: "Session.finish", Old: "<-s.conn.Released()",
		Finds: []string{"I6", "I12"}, Why: "a server is started again while its old process still runs",
	},
	Bug{
		Name: "flight-remembers", In: "Session.land",
		Old:   "f.ctx, f.standing, f.watched, f.patience, f.progress = nil, false, false, nil, nil",
		New:   "f.ctx, f.watched, f.patience, f.progress = nil, false, nil, nil",
		Finds: []string{"I2"}, Why: "an answer that cannot be told apart is not given to the one call that waits",
	},
	Bug{
		Name: "memory-of-a-failed-list", In: "listing.fetch", Old: "s.memory.give(l.taken)\nl.taken = 0", New: "l.taken = 0",
		Finds: []string{"I9", "I12"}, Why: "lists that fail eat up the memory that their server may hold",
	},
	Bug{
		Name: "memory-of-a-lane", In: "lane.drain", Old: "l.memory.give(item.held)",
		Finds: []string{"I9"}, Why: "after a thousand log messages a server's notifications find no memory any more",
	},
)
