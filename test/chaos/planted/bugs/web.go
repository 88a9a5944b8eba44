package bugs

// webBugs are in the manager's HTTP client, which half of the days have: exchanges, streams that break and are resumed, sessions, credentials.
var webBugs = inPackage("transports/web",
	Bug{
		Name: "resumed-without-event", In: "httpConn.openStream", Old: `h.Set("Last-Event-Id", lastID)`, New: "_ = lastID",
		Finds: []string{"I23", "I2"}, Why: "a stream that broke is opened anew and not gone on with: the answer that it had for a caller never comes",
	},
	Bug{
		Name: "retry-time-unread", In: "exchange.readResponse", Old: "x.retry, x.hadEvents = r.Retry, true", New: "x.hadEvents = true",
		Finds: []string{"I23"}, Why: "a server that says when to come back is asked before",
	},
	Bug{
		Name: "put-off-is-final", In: "exchange.resumeStream", Old: "e.Class == messages.ClassNetwork && e.Status >= 500 || e.Class == messages.ClassThrottled",
		New: "e.Class == messages.ClassThrottled", Finds: []string{"I23", "I2"}, Why: "a call is lost because its server could not go on with the answer in that moment",
	},
	Bug{
		Name: "torn-stream-is-lost", In: "exchange.readAnswerStream", Old: `x.lastID == "" || fruitless == maxResumes || x.m.Version != ""`,
		New: `x.lastID == "" || !x.hadEvents || fruitless == maxResumes || x.m.Version != ""`, Finds: []string{"I23", "I2"},
		Why: "after one resumption that brings nothing a call is given up, whose answer the server has",
	},
	Bug{
		Name: "torn-stream-is-unsent", In: "exchange.readAnswerStream", Old: "x.noteEmptyEnd(broken)\nreturn transports.MaybeWritten, x.brokenStreamError(broken)",
		New: "x.noteEmptyEnd(broken)\nreturn transports.NotWritten, x.brokenStreamError(broken)", Finds: []string{"I3"},
		Why: "a call whose answer is torn is told as not sent, and its caller sends it again",
	},
	Bug{
		Name: "first-event-is-the-answer", In: "exchange.deliverEvent", Old: "answer = x.m.ID != 0 && answersRequest(e.Data, x.m.ID)", New: "answer = x.m.ID != 0",
		Finds: []string{"I2", "I20"}, Why: "what a server says on the way to an answer ends the call",
	},
	Bug{
		Name: "reopening-unsaid", In: "streamListener.listenOnce", Old: "if gap && l.c.reopenSink != nil { l.c.reopenSink.StreamReopened() }", New: "_ = gap",
		Finds: []string{"I14", "I16"}, Why: "a list that changed while the stream was cut stays as it was",
	},
	Bug{
		Name: "refused-event-kept", In: "streamListener.mayReopen", Old: `l.lastID = ""`, New: "{}",
		Finds: []string{"I14", "I23"}, Why: "a server that refuses to go on after an event is asked for the same for ever, and nothing it says is heard any more",
	},
	Bug{
		Name: "silent-stream-given-up", In: "httpConn.keepListening", Old: "if !more { return }", New: "if !more || !heard && failures > 0 { return }",
		Finds: []string{"I14", "I23"}, Why: "after two cuts in a row nothing that the server says is heard any more",
	},
	Bug{
		Name: "goodbye-unsaid", In: "httpConn.deleteSession", Old: "cause.Class != messages.ClassCanceled", New: "cause.Class == messages.ClassCanceled",
		Finds: []string{"I23"}, Why: "the sessions of connections that were closed stay open at their servers",
	},
	Bug{
		Name: "session-unnamed", In: "httpConn.captureSession", Old: "c.session, c.postHeaders = id, nil", New: "c.session = id",
		Finds: []string{"I23"}, Why: "requests are sent with the headers of before the session, and name none",
	},
	Bug{
		Name: "exchange-never-left", In: "exchange.endExchange", Old: "x.lifetime.Leave()",
		Finds: []string{"I12", "I17"}, Why: "a connection is never released",
	},
)
