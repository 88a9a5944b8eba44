package bugs

// callBugs are on the path of a call, and of the other requests of a caller, from the facade to the session. Most of them show
// only under a fault, because the path branches only where a connection is lost.
var callBugs = inPackage("actors",
	// A call is sent again only to a trusted server, and only if the tool declares itself read-only or idempotent; anything
	// else may run twice.
	Bug{
		Name: "write-replayed", In: "Request.isRepeatable",
		Old:   "spec.Trusted && a != nil && (a.ReadOnly != nil && *a.ReadOnly || a.Idempotent != nil && *a.Idempotent)",
		New:   "spec.Trusted && (a == nil || a.Title == \"\")",
		Finds: []string{"I3"}, Why: "a payment is made twice",
	},
	Bug{
		Name: "untrusted-replayed", In: "Request.isRepeatable", Old: "spec.Trusted && a != nil", New: "a != nil",
		// The call is sent twice (I3), or ends late, because it waits for the connection on which it would be (I2).
		Finds: []string{"I3", "I2"}, Why: "a server's own claim is enough to have its tools run twice",
	},
	Bug{
		Name: "no-deadline", In: "Calls.Repeat", Old: "newCallTimeout(ctx, link.Spec)", New: "session.NewCallTimeout(ctx, 0, 0)",
		Finds: []string{"I2"}, Why: "a call to a tool that hangs never ends",
	},
	Bug{
		Name: "wait-ignored", In: "Calls.Repeat", Old: "c.connectionFor(ctx, r, 0, r.wait)", New: "c.connectionFor(ctx, r, 0, 0)",
		Finds: []string{"I2"}, Why: "calls fail during a blip although they were allowed to wait",
	},
	Bug{
		Name: "first-try-forgotten", In: "Calls.repeat", Old: "repeatErr = stillUnknown(repeatErr)", New: "_ = stillUnknown",
		Finds: []string{"I3"}, Why: "a call that ran is told as not sent, and the caller sends it again",
	},
	Bug{
		Name: "repeated-on-the-dead", In: "Calls.repeat", Old: "c.connectionFor(ctx, r, link.Epoch, time.Until(until))",
		New:   "c.connectionFor(ctx, r, 0, time.Until(until))",
		Finds: []string{"I3", "I2"}, Why: "the one repetition of a call goes to the connection that just failed",
	},
	Bug{
		Name: "lost-call-waits", In: "Calls.connectionFor", Old: "if wait <= 0 { return nil, c.notConnectedError(server, tool, nil) }",
		New:   "if wait <= 0 { wait = time.Second }",
		Finds: []string{"I2", "I3"}, Why: "a call that is not allowed to wait for a server that is down waits for a second",
	},
	Bug{
		Name: "waits-for-the-same", In: "connectedSince", Old: "v.State.Epoch > after", New: "v.State.Epoch >= after",
		Finds: []string{"I2"}, Why: "a call that waits for its server to come back is told that it is back while it is not",
	},
	Bug{
		Name: "waits-for-the-parked", In: "mayConnectBy", Old: "v.State.NextAt.Before(until)", New: "!v.State.NextAt.Before(until)",
		Finds: []string{"I2"}, Why: "calls wait for a server that is not to be tried in time, and fail at once for one that is",
	},
	Bug{
		Name: "waits-for-nobody", In: "Calls.awaitConnected", Old: "context.WithDeadline(ctx, until)", New: "context.WithDeadline(context.WithoutCancel(ctx), until)",
		Finds: []string{"I2"}, Why: "a caller who gave up while a server restarts is not let go",
	},
	Bug{
		Name: "sleeper-not-woken", In: "Calls.wakeServer", Old: "c.Wake(server)",
		Finds: []string{"I2", "I11"}, Why: "a call to a lazy server waits until its deadline, and the server is never started",
	},
	Bug{
		Name: "connected-by-anything", In: "Calls.wakeServer", Old: "v.Spec.Connect != messages.Lazy && !starting",
		New:   "false && starting",
		Finds: []string{"I2"}, Why: "a call waits for as long as a server that is not lazy takes to start, whatever it was allowed to wait",
	},
	Bug{
		Name: "question-asked-twice", In: "Calls.Repeat", Old: "r.isRepeatable(link.Spec) && !bounded.Answered() && link.answers.Load() == before",
		New:   "r.isRepeatable(link.Spec) && link.answers.Load() >= before",
		Finds: []string{"I3"}, Why: "a person is asked the same thing twice after a connection was lost",
	},
	Bug{
		Name: "lost-question-repeated", In: "mayRepeat", Old: "return harmless", New: "return true",
		Finds: []string{"I3"}, Why: "what may have been done is asked for again",
	},
	Bug{
		Name: "secret-in-error", In: "Calls.completeError", Old: "hide(e.Text)", New: "e.Text",
		Finds: []string{"I10"}, Why: "the error of a call shows the token with which its server could not log in",
	},
	Bug{
		Name: "end-untold", In: "Calls.PublishEnd", Old: "r.callID == 0", New: "r.callID == 0 || messages.ClassOf(err) == messages.ClassCanceled",
		Finds: []string{"I2"}, Why: "a watcher counts a call that was given up as running for ever",
	},
	Bug{
		Name: "calls-share-a-number", In: "Calls.PublishStart", Old: "c.ids.Add(1)", New: "c.ids.Load() + 1",
		Finds: []string{"I2"}, Why: "a watcher cannot tell which of several calls has ended",
	},
	Bug{
		Name: "turn-left-at-once", In: "Calls.TakeSlot", Old: "r.hasSlot, err = r.link.enterQueue(ctx)", New: "if r.hasSlot, err = r.link.enterQueue(ctx); r.hasSlot { r.hasSlot = false; r.link.callQueue.releaseSlot() }",
		Finds: []string{"I9"}, Why: "a server that stands one call at a time gets all of them at once",
	},
	Bug{
		Name: "turn-never-left", In: "Calls.LeaveSlot", Old: "r.link.callQueue.releaseSlot()", New: "{}",
		Finds: []string{"I21", "I2"}, Why: "after a few calls a server with maxInFlight is never called again",
	},
	Bug{
		Name: "turn-of-the-impatient", In: "callQueue.acquireSlot", Old: "if !waited && <-w.Value { t.releaseSlot() }", New: "_ = waited",
		Finds: []string{"I21", "I2"}, Why: "each caller who gives up in the moment in which it is its turn takes a place for ever",
	},
	Bug{
		Name: "queue-keeps-who-left", In: "callQueue.acquireSlot", Old: "<-ctx.Done()", New: "<-make(chan struct{})",
		Finds: []string{"I2"}, Why: "a caller who gives up while it waits for its turn is not let go",
	},
	Bug{
		Name: "place-of-who-left", In: "callQueue.acquireSlot", Old: "waited := t.q.Drop(w)", New: "waited := w != nil",
		Finds: []string{"I21"}, Why: "a caller who gave up is given a turn all the same, and keeps it for ever",
	},
	Bug{
		Name: "start-keeps-who-left", In: "Calls.wakeServer", Old: "cell.Wait(ctx, isOver)", New: "cell.Wait(context.WithoutCancel(ctx), isOver)",
		Finds: []string{"I2"}, Why: "a caller who gives up while a lazy server starts is not let go",
	},
	Bug{
		Name: "default-bound-wins", In: "limitsOf", Old: "if spec.MaxInFlight != 0 { inFlight = spec.MaxInFlight }",
		New:   "if inFlight == 0 { inFlight = spec.MaxInFlight }",
		Finds: []string{"I21"}, Why: "the maxInFlight of a server is ignored where the program has one of its own",
	},
	Bug{
		Name: "use-not-noted", In: "Link.noteUse", Old: "if l.lastUse != nil { l.lastUse.Store(int64(time.Since(processStart))) }",
		Finds: []string{"I8"}, Why: "a lazy server is let go although it is used all the time",
	},
	Bug{
		Name: "silence-counted-once-more", In: "Link.noteResult", Old: "l.silent.Add(1) >= maxSilent", New: "l.silent.Add(1) > maxSilent",
		Finds: []string{"I8"}, Why: "a peer that is gone costs one more call its timeout before somebody looks",
	},
	Bug{
		Name: "refused-unsaid", In: "Link.noteResult", Old: "!errors.Is(err, messages.ErrCallerRefused)",
		New:   "messages.ClassOf(err) == messages.ClassNetwork",
		Finds: []string{"I8"}, Why: "every call fails with 401 and the status is green",
	},
	Bug{
		Name: "silence-starts-anew", In: "Link.noteResult", Old: "case l.lastHeard().After(before): l.silent.Store(0)", New: "case !l.lastHeard().Before(before): l.silent.Store(0)",
		Finds: []string{"I8"}, Why: "that calls time out in silence is never a reason to look whether the server lives",
	},
)
