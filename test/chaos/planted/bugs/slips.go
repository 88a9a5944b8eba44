package bugs

import "slices"

// slipBugs were written without a look at the tests and at what random days do, one after the other where an engineer may slip:
// a case that was left out, a field that was not reset, a bound on the wrong side. The share of them that is found says more
// about bugs that no engineer has thought of than the rest of the table does, because the harness has learned from that rest.
var slipBugs = slices.Concat(slipsInCalls, slipsInServers, slipsInLifecycle, slipsInCatalog, slipsInGate, slipsInSupervisor, slipsInSession)

// slipsInCalls are on the path of a call: whether to repeat it, how long to wait, and its place in the queue.
var slipsInCalls = inPackage("actors",
	Bug{
		Name: "not-sent-is-final", In: "mayRepeat", Old: "case messages.OutcomeNotSent: return true", New: "case messages.OutcomeNotSent:\nreturn false",
		Finds: []string{"I2"}, Why: "a call that met a connection in the moment of its end fails although it may wait for the next one",
	},
	Bug{
		Name: "full-queue-repeated", In: "mayRepeat", Old: "errors.Is(err, messages.ErrQueueFull)", New: "err == messages.ErrQueueFull",
		Finds: []string{"I21", "I2"}, Why: "a call for which there was no room waits for another connection instead of failing at once",
	},
	Bug{
		Name: "call-timeout-unheeded", In: "newCallTimeout", Old: "orDefault(spec.CallTimeout, DefaultCallTimeout)", New: "orDefault(0, DefaultCallTimeout)",
		Finds: []string{"I2"}, Why: "a call lasts for a minute whatever its server's callTimeout says",
	},
	Bug{
		Name: "longest-call-unheeded", In: "newCallTimeout", Old: "session.NewCallTimeout(ctx, timeout, most)", New: "session.NewCallTimeout(ctx, timeout, 0)",
		Finds: []string{"I2"}, Why: "a call with progress goes on beyond maxCallTimeout",
	},
	Bug{
		Name: "wait-begins-twice", In: "Calls.awaitTool", Old: "remaining -= time.Since(began)", New: "remaining -= 0 * time.Since(began)",
		Finds: []string{"I2"}, Why: "a call waits for its server twice as long as it is allowed to",
	},
	Bug{
		Name: "absent-not-awaited", In: "Calls.awaitTool", Old: "!connectedSince(seen, 0) && c.Wait > 0", New: "!connectedSince(seen, 0) && c.Wait < 0",
		Finds: []string{"I2"}, Why: "calls to a server whose tools were withdrawn fail although they may wait for it",
	},
	// A ping over the same gate tells whether a connection still serves after one of its streams broke.
	Bug{
		Name: "dead-stream-lives", In: "Link.stillServes", Old: "isAnswer(err)",
		New:   "!isAnswer(err)",
		Finds: []string{"I3", "I2"}, Why: "a read that was lost is repeated where nobody answers, and not where somebody does",
	},
	Bug{
		Name: "bystander-waits-too", In: "Calls.TakeSlot", Old: "r.link.callQueue == nil || r.SkipsQueue", New: "r.link.callQueue == nil",
		Finds: []string{"I2"}, Why: "what is asked aside waits behind calls that wait for it",
	},
	// A call in the queue may be displaced, admitted by a raised bound, or ended by its connection; each has to wake it.
	Bug{
		Name: "displaced-untold", In: "callQueue.acquireSlot", Old: "if displaced != nil { displaced.Value <- false }", New: "_ = displaced",
		Finds: []string{"I2"}, Why: "a caller whose place was given to another one waits until its deadline",
	},
	Bug{
		Name: "lifted-bound-holds", In: "Cell.setCallLimits", Old: "for _, w := range admitted { w.Value <- true }", New: "_ = admitted",
		Finds: []string{"I2"}, Why: "calls that wait for a bound which was raised wait on",
	},
	Bug{
		Name: "closed-while-waiting", In: "callQueue.acquireSlot", Old: "gate.Shut()", New: "(chan struct{})(nil)",
		Finds: []string{"I2"}, Why: "a call that waits for its turn at a server that died waits until its deadline",
	},
	Bug{
		Name: "answered-calls-count-as-silent", In: "Link.noteResult", Old: "if err == nil && l.silent.Load() != 0 && l.lastHeard().After(before) { l.silent.Store(0) }", New: "{}",
		Finds: []string{"I8"}, Why: "two timeouts with a thousand answers between them count as silence",
	},
)

// slipsInServers are in the actor of a server and in the registry.
var slipsInServers = inPackage("actors",
	// A late answer to a probe is no proof of death: a message since then, or an error that says the session is unknown,
	// decides.
	Bug{
		Name: "talker-given-up", In: "Server.handleProbeDone", Old: "s.sess.LastMessageAt().After(m.sentAt)", New: "s.sess.LastMessageAt().Before(m.sentAt)",
		Finds: []string{"I8", "I13"}, Why: "a server that is slow to answer pings is given up although it talks",
	},
	Bug{
		Name: "forgotten-session-lives", In: "Server.handleProbeDone", Old: "case messages.ClassNetwork, messages.ClassSession:\ns.applyEvent(lifecycle.Lost{Epoch: m.epoch, Cause: s.causeOf(m.err, s.sess.Conn())})\nreturn",
		New:   "case messages.ClassNetwork:\ns.applyEvent(lifecycle.Lost{Epoch: m.epoch, Cause: s.causeOf(m.err, s.sess.Conn())})\nreturn",
		Finds: []string{"I13", "I8"}, Why: "a server that has forgotten the session counts as alive",
	},
	Bug{
		Name: "refusal-not-looked-into", In: "Server.handleLinkFailed", Old: "if s.isRemote() { s.probeNow(m.epoch) }", New: "{}",
		Finds: []string{"I8"}, Why: "calls fail for as long as it takes until the next look at the connection",
	},
	// Only remote transports are probed, because the end of a process shows by itself.
	Bug{
		Name: "streams-not-probed", In: "Server.isRemote", Old: "return s.spec.Kind().Remote()",
		New:   "return s.spec.Kind().PairsAnswers()",
		Finds: []string{"I8", "I13"}, Why: "a WebSocket or SSE server that vanished is never noticed",
	},
	// The connect timeout grows with each timeout in a row and is reset by a success.
	Bug{
		Name: "patience-never-grows", In: "Server.handleStepFailed", Old: "s.timeouts++",
		Finds: []string{"I11"}, Why: "a server that is a little too slow to start is never connected",
	},
	Bug{
		Name: "patience-never-shrinks", In: "Server.performEffect", Old: "s.timeouts = 0",
		Finds: []string{"I8"}, Why: "an attempt at a server that was slow once goes on for minutes ever after",
	},
	Bug{
		Name: "timers-go-on", In: "Server.performEffect", Old: "s.stopTimers()",
		Finds: []string{"I12"}, Why: "each connection leaves its timers behind",
	},
	// These fields are seen only by people who read the status, so that no other behavior depends on them.
	Bug{
		Name: "restarts-not-counted", In: "Server.performEffect", Old: "s.connectCount++",
		Finds: []string{"I22"}, Why: "a server that is restarted all the time looks as if it never was",
	},
	Bug{
		Name: "phase-since-ever", In: "Server.applyEvent", Old: "s.since = time.Now()",
		Finds: []string{"I22"}, Why: "nobody can see since when a server is down",
	},
	Bug{
		Name: "drain-of-the-default", In: "Server.Receive", Old: "s.drainTime = m.Drain",
		Finds: []string{"I2", "I12"}, Why: "Close with a short deadline waits five seconds for calls that hang",
	},
	// A spec that replaces another starts with no list and with the era unknown; one that adjusts keeps the connection and
	// filters its tools again.
	Bug{
		Name: "new-spec-keeps-list", In: "Server.replaceSpec", Old: "s.spec, s.list, s.tools, s.attempts, s.timeouts = m.Spec, nil, nil, 0, 0",
		New:   "s.spec, s.attempts, s.timeouts = m.Spec, 0, 0",
		Finds: []string{"I14"}, Why: "a server with another program shows the tools of the old one",
	},
	Bug{
		Name: "new-spec-keeps-era", In: "Server.replaceSpec", Old: "s.cfg.Holder.era.Store(messages.EraAuto)", New: "{}",
		Finds: []string{"I11"}, Why: "a server that was replaced by one of another protocol era is not understood at first",
	},
	Bug{
		Name: "filter-not-changed", In: "Server.adjustSpec", Old: "s.filterTools()",
		Finds: []string{"I14", "I1"}, Why: "a tool that was denied by a changed configuration is offered on",
	},
	Bug{
		Name: "bounds-of-the-first-link", In: "Server.adjustSpec", Old: "s.useLink(&Link{Server: s.link.Server, Epoch: s.link.Epoch, gate: s.link.gate, reportError: s.link.reportError, lastHeard: s.link.lastHeard, answers: s.link.answers})", New: "s.link.Spec = spec",
		Finds: []string{"I21", "I2"}, Why: "another maxInFlight or idleTimeout has no effect before the next connection",
	},
	// Waits for credentials are numbered, so that the message of an earlier wait is ignored.
	Bug{
		Name: "credentials-of-an-old-wait", In: "Server.retryCredentials", Old: "s.cancelAwait == nil || m.number != s.awaitCount", New: "s.cancelAwait == nil",
		Finds: []string{"I8"}, Why: "a server that was refused again is tried once more for credentials that it had refused before",
	},
	// The registry keeps a snapshot also if only its marks changed, and calls back the servers that it has seen.
	Bug{
		Name: "marks-not-kept", In: "Registry.publishPending", Old: "r.cfg.Catalog.snapshot.Store(next)", New: "if changed { r.cfg.Catalog.snapshot.Store(next) }",
		Finds: []string{"I1", "I5"}, Why: "a late word about a server counts, because the newer one changed nothing to be seen",
	},
	Bug{
		Name: "seen-forgotten", In: "Registry.publishPending", Old: "for _, f := range seen { f() }", New: "if changed { for _, f := range seen { f() } }",
		Finds: []string{"I8", "I11"}, Why: "a server with the same tools as before never counts as connected",
		// The end of a connection cuts the drain short, and every check of an attempt's progress schedules the next.
	},
	Bug{
		Name: "drain-of-the-dead", In: "attempt.drainGates", Old: "a.currentSession().Dead()", New: "make(chan struct{})",
		Finds: []string{"I2", "I8"}, Why: "a server that dies while it is reconnected comes back five seconds late",
	},
	Bug{
		Name: "looked-once", In: "attempt.checkProgress", Old: "a.checkTimer = time.AfterFunc(v.At.Sub(seen.At), a.checkProgress)",
		Finds: []string{"I11", "I9"}, Why: "an attempt whose first look was too early to end it goes on for ever",
	},
	// A watcher gets every event from its first one on, also a mere change of the next attempt's time.
	Bug{
		Name: "new-time-untold", In: "Server.publishChange", Old: "now.NextAt.Equal(before.NextAt)", New: "!now.NextAt.IsZero() == !before.NextAt.IsZero()",
		Finds: []string{"I8", "I13"}, Why: "a watcher believes that a server is tried when it is not",
	},
	Bug{
		Name: "watch-from-the-last", In: "Hub.Watch", Old: "h.seq + 1", New: "h.seq + 2",
		Finds: []string{"I2"}, Why: "the first event after somebody began to watch is lost",
	},
	Bug{
		Name: "sleeper-uncounted", In: "Watcher.takeBatch", Old: "h.asleep++",
		Finds: []string{"I2", "I8"}, Why: "a watcher that waits is not woken",
	},
	Bug{
		Name: "dirty-since-the-last-connection", In: "Server.startAttempt",
		Old:   "s.strikes, s.probing, s.dirtySince, s.futileLists, s.shownHash, s.lastProbeAnswer = 0, false, time.Time{}, 0, [32]byte{}, time.Time{}",
		New:   "s.strikes, s.probing, s.futileLists, s.lastProbeAnswer = 0, false, 0, time.Time{}",
		Finds: []string{"I14", "I1"}, Why: "a server that comes back with the same tools after its list was changed is not told again",
	},
)

// slipsInLifecycle are in the state machine of a server.
var slipsInLifecycle = inPackage("actors/lifecycle",
	// A grant begins a new attempt: the fields of the one before are reset.
	Bug{
		Name: "was-up-before", In: "machine.handleGranted", Old: "m.Epoch, m.Conn, m.WasUp = epoch, Opening, false", New: "m.Epoch, m.Conn = epoch, Opening",
		Finds: []string{"I7"}, Why: "the failure of an attempt counts as the end of the connection before it",
	},
	Bug{
		Name: "old-time-shown", In: "machine.handleGranted", Old: "m.Retry, m.NextAt = \"\", time.Time{}",
		Finds: []string{"I22", "I7"}, Why: "a server that is being connected says that it is tried at a time that has passed",
	},
	// The end of a connection resets all flags about its lists. Each of these slips leaves one of them set.
	Bug{
		Name: "refresh-of-the-dead", In: "machine.shutConnection", Old: "m.Listing, m.Dirty, m.RelistAfter, m.Refreshing, m.ListFailures = false, false, false, false, 0",
		New:   "m.Listing, m.Dirty, m.RelistAfter, m.ListFailures = false, false, false, 0",
		Finds: []string{"I16", "I2"}, Why: "who waits for a refresh of a server that died waits on",
	},
	Bug{
		Name: "listing-of-the-dead", In: "machine.shutConnection", Old: "m.Listing, m.Dirty, m.RelistAfter, m.Refreshing, m.ListFailures = false, false, false, false, 0",
		New:   "m.Dirty, m.RelistAfter, m.Refreshing, m.ListFailures = false, false, false, 0",
		Finds: []string{"I14"}, Why: "a server that died while it was listed is not listed when it changes",
	},
	Bug{
		Name: "list-failures-of-the-dead", In: "machine.shutConnection", Old: "m.Listing, m.Dirty, m.RelistAfter, m.Refreshing, m.ListFailures = false, false, false, false, 0",
		New:   "m.Listing, m.Dirty, m.RelistAfter, m.Refreshing = false, false, false, false",
		Finds: []string{"I14"}, Why: "on a new connection a change of the tools is not listed, because lists failed on the old one",
	},
	// Enabling a warm server may need a list; a rested lazy server needs none and stays at rest.
	Bug{
		Name: "change-while-enabling", In: "machine.enableServer", Old: "m.RelistAfter = m.Dirty",
		Finds: []string{"I14"}, Why: "a server that is enabled while it is listed shows the list from before its change",
	},
	Bug{
		Name: "warm-list-not-awaited", In: "machine.enableServer", Old: "m.Dirty || m.Listing", New: "m.Dirty",
		Finds: []string{"I14"}, Why: "a server that is enabled while it is listed shows the old list",
	},
	Bug{
		Name: "enabled-lazy-starts", In: "machine.enableServer", Old: "m.Blocked == nil && !(m.Lazy && m.EverConnected)", New: "m.Blocked == nil",
		Finds: []string{"I8"}, Why: "a lazy server that rested starts because it was disabled and enabled",
	},
	// A reconnect has no effect on an attempt that is opening already; otherwise the start keeps the urgency of its command.
	Bug{
		Name: "reconnect-while-opening", In: "machine.reconnectServer", Old: "case Opening: return", New: "case Opening:",
		Finds: []string{"I11", "I8"}, Why: "a reconnect during an attempt leaves the server waiting for an end that does not come",
	},
	Bug{
		Name: "due-forgotten", In: "machine.handleClosed", Old: "m.requestStart(m.DueUrgency, true)", New: "m.requestStart(Normal, true)",
		Finds: []string{"I18", "I8"}, Why: "what a person has asked for waits behind all others",
	},
	// The published phase separates a server that comes back soon from one that is parked, because calls wait only for the
	// former.
	Bug{
		Name: "parked-seems-restarting", In: "machine.handleScheduled", Old: "e.Retry != messages.RetryAt && m.Phase == messages.Pending", New: "e.Retry == messages.RetryNever && m.Phase == messages.Pending",
		Finds: []string{"I22"}, Why: "calls wait for a server that is parked as for one that comes back at once",
	},
	// Change notifications wait while lists fail, and count from the opening of the connection on.
	Bug{
		Name: "talk-hastens-lists", In: "machine.handleToolsChanged", Old: "m.Phase == messages.Connected && !m.Listing && m.ListFailures == 0", New: "m.Phase == messages.Connected && !m.Listing",
		Finds: []string{"I9"}, Why: "a server that talks and cannot be listed is listed without a pause",
	},
	Bug{
		Name: "early-change-unheard", In: "machine.handleToolsChanged", Old: "m.Conn != Opening && m.Conn != Open", New: "m.Conn != Open",
		Finds: []string{"I14"}, Why: "a change of the tools during the first list is never seen",
	},
	// An adjusted spec may turn a lazy server into an eager one, and has to reach the catalog.
	Bug{
		Name: "lazy-as-before", In: "machine.adjustSpec", Old: "m.Lazy = e.Lazy",
		Finds: []string{"I17"}, Why: "a server whose spec is not lazy any more is let go when idle",
	},
	Bug{
		Name: "eager-rests-on", In: "machine.adjustSpec", Old: "case m.Step == messages.Idle: m.requestStart(Normal, true)", New: "",
		Finds: []string{"I11", "I8"}, Why: "a server whose spec is not lazy any more is not connected",
	},
	Bug{
		Name: "refused-cuts-calls", In: "machine.handleUnauthorized", Old: "m.shutConnection(true)", New: "m.shutConnection(false)",
		Finds: []string{"I2"}, Why: "calls that run are cut off when one is refused for its credentials",
	},
	Bug{
		Name: "refresh-of-the-disabled", In: "machine.disableServer", Old: "m.Refreshing, m.RelistAfter = false, false",
		Finds: []string{"I16", "I2"}, Why: "who waits for a refresh of a server that was disabled waits on",
	},
	Bug{
		Name: "adjusted-not-told", In: "machine.adjustSpec", Old: "m.emitEffect(Update{m.Epoch, m.Rev})", New: "{}",
		Finds: []string{"I21", "I14", "I2"}, Why: "another configuration around a connection has no effect on what is offered, and on how calls find it",
	},
)

// slipsInCatalog are in the edits of the catalog and in the comparison of tools.
var slipsInCatalog = inPackage("actors/catalog",
	Bug{
		Name: "expiry-turns-back", In: "edit.applyChange", Old: "if old.mark.after(at) { at = old.mark }", New: "{}",
		Finds: []string{"I1"}, Why: "after the tools of a lost server are gone, late words of it count",
	},
	Bug{
		Name: "refusals-unseen", In: "edit.buildSnapshot", Old: "len(changed) == 0 && !refusals", New: "len(changed) == 0",
		Finds: []string{"I5"}, Why: "nobody hears that a tool is refused for its name",
	},
	Bug{
		Name: "meta-unseen", In: "sameTool", Old: "bytes.Equal(a.Raw, b.Raw)", New: "len(a.Raw) == len(b.Raw)",
		Finds: []string{"I14"}, Why: "whoever reads what a tool says beyond its description goes on with what it said before",
	},
)

// slipsInGate are in the start gate and its width, which shrinks when the machine is starved and grows again with quick starts.
var slipsInGate = inPackage("supervisor/restart",
	// Starts carry the generation of the width under which they began. Only those of the present generation may change the
	// width.
	Bug{
		Name: "narrowed-by-each", In: "width.narrow", Old: "generation != w.generation", New: "generation > w.generation",
		Finds: []string{"I18", "I7", "I11"}, Why: "a dozen servers that starve together narrow the gate a dozen times, to its least",
	},
	Bug{
		Name: "narrowed-to-nothing", In: "width.narrow", Old: "max(min(w.now, unanswered)/2, min(leastWidth, w.most))", New: "min(w.now, unanswered) / 2",
		Finds: []string{"I18", "I7", "I11"}, Why: "one starved start closes the gate for all others",
	},
	Bug{
		Name: "widened-by-the-old", In: "width.widen", Old: "generation == w.generation", New: "generation <= w.generation",
		Finds: []string{"I6", "I9"}, Why: "answers from before the gate was narrowed widen it again",
	},
	Bug{
		Name: "widened-at-once", In: "width.widen", Old: "min(w.now+1, w.most)", New: "w.most",
		Finds: []string{"I6", "I9"}, Why: "one quick start opens the gate that a starved machine had narrowed",
	},
	Bug{
		Name: "widened-twice", In: "grant.widenOnce", Old: "g.easedOnce = true",
		Finds: []string{"I6", "I9"}, Why: "one start widens the gate with each word about it",
	},
	Bug{
		Name: "late-answer-widens", In: "Gate.Answered", Old: "now.Sub(o.startedAt) <= g.limits.Hold", New: "now.Sub(o.startedAt) >= 0",
		Finds: []string{"I6", "I9"}, Why: "starts that take for ever widen the gate",
	},
	// A start that waits for a processor holds its slot longer, up to a bound, and its place in the order of expiry changes
	// with it.
	Bug{
		Name: "longer-hold-unsorted", In: "Gate.Waited", Old: "o.pool.holds.fix(o.index)", New: "{}",
		Finds: []string{"I7", "I18", "I11"}, Why: "a start that waits for a processor keeps the slots of all that began after it",
	},
	Bug{
		Name: "hold-without-end", In: "Gate.Waited", Old: "min(g.limits.Hold+waited, longestHold*g.limits.Hold)", New: "g.limits.Hold + waited",
		Finds: []string{"I7", "I18", "I11"}, Why: "a starved start that never answers keeps its slot for ever",
	},
	// A displaced start counts until it has ended, so that one request displaces one start.
	Bug{
		Name: "displaced-twice", In: "Gate.Displace", Old: "min(p.eager, p.width.now-p.slotsHeld) - p.displaced", New: "min(p.eager, p.width.now-p.slotsHeld)",
		Finds: []string{"I6", "I9", "I11"}, Why: "each word of a server displaces one more silent one for the same request",
	},
	Bug{
		Name: "displaced-for-ever", In: "pool.endGrant", Old: "if g.displaced { p.displaced-- }", New: "{}",
		Finds: []string{"I7", "I18", "I11"}, Why: "after some displacements nobody is displaced any more, and new servers wait for minutes",
	},
	Bug{
		Name: "installers-without-bound", In: "Gate.Installing", Old: "p.installing < p.maxUnanswered", New: "p.installing >= 0",
		Finds: []string{"I9"}, Why: "a hundred servers are installed at once",
	},
	// A server that gave its place must not lose it again at once, nor take another's for trouble of this machine.
	Bug{
		Name: "displaced-once-and-for-all", In: "Policy.Down", Old: "if mode != uncounted { r.Displaced = false }", New: "{}",
		Finds: []string{"I7", "I18", "I11"}, Why: "a server that gave its place once waits behind all others whatever it does",
	},
	Bug{
		Name: "displacing-counts-on", In: "pool.dropRequest", Old: "p.eager--",
		Finds: []string{"I29"}, Why: "the gate counts requests that have gone, and silent servers give up their places for none",
	},
	Bug{
		Name: "machine-trouble-displaces", In: "Record.Displaces", Old: "r.EverConnected || r.Attempts == 0 && r.Exhausted == 0", New: "r.EverConnected || r.Attempts == 0",
		Finds: []string{"I6", "I11"}, Why: "servers that this machine could not start displace each other for ever",
	},
	Bug{
		Name: "connected-stays-parked", In: "Policy.Connected", Old: "r.EverConnected, r.Parked, r.Exhausted, r.Displaced = true, false, 0, false",
		New:   "r.EverConnected, r.Exhausted, r.Displaced = true, 0, false",
		Finds: []string{"I7", "I11"}, Why: "a server that was parked and is well again is only probed after its next loss",
	},
)

// slipsInSupervisor are in the supervisor's table of servers, in the facade and in the message front.
var slipsInSupervisor = slices.Concat(inPackage("supervisor/internal/core",
	// A server that is being removed may be added again meanwhile: commands then apply to the one that comes back.
	Bug{
		Name: "added-again-stays-disabled", In: "supervisor.handleAdd", Old: "r.runtime != nil && r.runtime.Equal(spec) && r.wanted == !spec.Disabled", New: "r.runtime != nil && r.runtime.Equal(spec)",
		Finds: []string{"I16"}, Why: "who adds a server again that somebody disabled is told that all is well, and it stays disabled",
	},
	Bug{
		Name: "removal-of-the-returning", In: "supervisor.handleRemove", Old: "r != nil && r.comesBack()", New: "r != nil && r.comesBack() && r.liveEpoch == 0",
		Finds: []string{"I16"}, Why: "a server that is removed, added and removed again comes back",
	},
	Bug{
		Name: "wish-for-the-returning", In: "supervisor.handleCommand", Old: "r != nil && r.comesBack()", New: "r != nil && r.comesBack() && r.liveEpoch == 0",
		Finds: []string{"I16"}, Why: "who disables a server that is being added anew is told that there is none",
	},
	Bug{
		Name: "adjustment-kept", In: "supervisor.handleSetServers", Old: "r.runtime.Equal(spec)", New: "r.runtime.SameConnection(spec)",
		Finds: []string{"I21", "I14", "I2"}, Why: "another callTimeout in a set of servers has no effect",
	},
	// The supervisor grants no start beside a live connection, while it closes, or on the word of an actor that was replaced.
	Bug{
		Name: "grant-beside-connection", In: "supervisor.grantStarts", Old: "r == nil || r.pid == nil || r.liveEpoch != 0", New: "r == nil || r.pid == nil",
		Finds: []string{"I6"}, Why: "a server is started a second time while its old process still runs",
	},
	Bug{
		Name: "starts-while-closing", In: "supervisor.grantStarts", Old: "if s.closing != nil { return }", New: "{}",
		Finds: []string{"I12"}, Why: "servers are started while the program ends",
	},
	Bug{
		Name: "last-words-count", In: "supervisor.handleFromServer", Old: "r == nil || r.pid == nil || r.actorEpoch != m.ActorEpoch", New: "r == nil || r.pid == nil",
		Finds: []string{"I6", "I8"}, Why: "what an actor said before it died counts as its successor's word",
	},
	Bug{
		Name: "blocked-as-before", In: "supervisor.applySpec", Old: "r.blocked = s.blockingCause(r)",
		Finds: []string{"I16", "I8"}, Why: "a server whose spec became valid is not started",
	},
), inPackage("supervisor",
	// The facade returns after the catalog shows the effect of the command.
	Bug{
		Name: "refresh-not-published", In: "Manager.awaitAttempt", Old: "m.awaitCatalog(ctx, op)", New: "nil",
		Finds: []string{"I16", "I14"}, Why: "who refreshed a server sees the old list",
	},
	Bug{
		Name: "removal-not-awaited", In: "Manager.Remove", Old: "removal.IsUnreachable(v) || m.shared.CellOf(name) != cell", New: "true",
		Finds: []string{"I16", "I1"}, Why: "a server that was removed can be called",
	},
	// The front remembers the ids of running and of ended calls, and who waits for each reply.
	Bug{
		Name: "same-call-runs-twice", In: "entryActor.runCall", Old: "e.calls[id] = &actorCall{}", New: "{}",
		Finds: []string{"I3"}, Why: "a message that is sent twice runs its tool twice",
	},
	Bug{
		Name: "ended-call-runs-again", In: "entryActor.handleCallEnded", Old: "e.endedCalls.addReply(m.reply, time.Now())", New: "{}",
		Finds: []string{"I3"}, Why: "a message that comes again after its answer runs its tool again",
	},
	Bug{
		Name: "second-sender-unanswered", In: "entryActor.handleCallEnded", Old: "for _, to := range c.waiters { e.sendReply(to, m.reply) }", New: "_ = c",
		Finds: []string{"I2"}, Why: "who sends a call again while it runs is never answered",
	},
	Bug{
		Name: "calls-by-message-add-up", In: "entryActor.endRequest", Old: "e.inFlight--",
		Finds: []string{"I20", "I2", "I9"}, Why: "after four thousand calls by message every other one is refused",
	},
	// A watch of another actor ends with that actor, and a second one replaces the first.
	Bug{
		Name: "watched-twice", In: "entryActor.addWatch", Old: "e.removeWatch(to)",
		Finds: []string{"I19"}, Why: "an actor that watches again gets every event twice",
	},
	Bug{
		Name: "dead-actor-watched", In: "entryActor.addWatch", Old: "ctx.Watch(to)",
		Finds: []string{"I19", "I12"}, Why: "an actor that ended is told of events for ever",
	},
), inPackage("supervisor/internal/core",
	Bug{
		Name: "sleep-woken-as-before", In: "supervisor.checkClocks", Old: "s.handleWoken(ctx)", New: "{}",
		Finds: []string{"I11", "I13"}, Why: "after a night's sleep each server comes back when its old timer ends",
	},
))

// slipsInSession are in the session: lists, input requests, tasks and the end.
var slipsInSession = inPackage("transports/session",
	// A list is equal to the one before only if it has as many tools; a repeated cursor ends it with an error.
	Bug{
		Name: "removed-tools-unseen", In: "ToolList.nextList",
		Old:   "l.OnlyReused() && len(t.Quarantined) == 0 && len(l.Entries) == len(t.all)",
		New:   "l.OnlyReused() && len(t.Quarantined) == 0",
		Finds: []string{"I14"}, Why: "a tool that the server took away is offered on",
	},
	Bug{
		Name: "page-said-twice", Package: sessionParts + "lists", In: "Collector.addPage", Old: "if _, seenBefore := l.cursors[string(next)]; seenBefore { return nil, \"has pages that repeat: a cursor came twice\" }", New: "{}",
		Finds: []string{"I14", "I9"}, Why: "a list whose pages repeat is asked for a thousand times",
	},
	Bug{
		Name: "task-tools-unknown", In: "Session.ListTools", Old: "s.storeTaskSupport(l.Entries)",
		Finds: []string{"I2"}, Why: "a tool that must run as a task is called without one",
	},
	// A call with rounds of input may have run from its first round on, waits between rounds, and returns the server's state.
	Bug{
		Name: "round-not-sent", In: "Session.provideInput", Old: "if e.Outcome == messages.OutcomeNotSent { e.Outcome = messages.OutcomeUnknown }", New: "{}",
		Finds: []string{"I3"}, Why: "a call whose first round has run is told as not sent, and sent again",
	},
	Bug{
		Name: "asked-again-at-once", In: "Session.provideInput", Old: "min(roundPause<<min(round, 10), roundPauseMost)", New: "roundPause >> min(round+20, 40)",
		Finds: []string{"I20"}, Why: "a server that wants time is asked without a pause, and its request is given up within a second",
	},
	Bug{
		Name: "state-not-returned", In: "Session.nextRoundParams", Old: "if !rawjson.IsNull(state) { extra = append(jsonrpc.AppendComma(extra, 0), `\"requestState\":`...)\nextra = append(extra, state...) }", New: "_ = state",
		Finds: []string{"I2", "I3"}, Why: "a server does not know its own request again when it has its input",
	},
	// While a person answers a question the idle timeout of the call stands still, however many questions there are at once.
	Bug{
		Name: "person-hurried", In: "Session.answerInputRequests", Old: "timeout.PauseIdle()\ndefer s.resumeTimeout(timeout)", New: "_ = timeout",
		Finds: []string{"I2"}, Why: "a call ends while a person answers its question",
	},
	Bug{
		Name: "no-alarm-after-question", In: "Session.resumeTimeout", Old: "s.armRequestTimer(p.NextDue())", New: "_ = p",
		Finds: []string{"I2"}, Why: "a call about which a person was asked never ends if its server does not answer",
	},
	Bug{
		Name: "second-question-stops-twice", Package: sessionParts + "calltimeout", In: "Context.PauseIdle", Old: "p.paused == 1 && p.idleTimeout > 0", New: "p.idleTimeout > 0",
		Finds: []string{"I2"}, Why: "two questions at once about one call end it at any time",
	},
	Bug{
		Name: "first-answer-goes-on", Package: sessionParts + "calltimeout", In: "Context.ResumeIdle", Old: "p.paused == 0 && p.idleTimeout > 0", New: "p.idleTimeout > 0",
		Finds: []string{"I2"}, Why: "when one of two questions is answered the call may end at any time",
	},
	// A closing session registers no request and opens no gate.
	Bug{
		Name: "sends-while-closing", In: "Session.registerRequest", Old: "s.pending == nil || s.closing", New: "s.pending == nil",
		Finds: []string{"I3", "I2"}, Why: "a request is sent over a connection that is being closed",
	},
	// A task outlives its first answer: its status restarts the timeout, and the end of its caller or its connection ends it.
	Bug{
		Name: "task-times-out", Package: sessionParts + "tasks", In: "Poller.pollStatus", Old: "calltimeout.Of(ctx).RestartIdle()", New: "{}",
		Finds: []string{"I2"}, Why: "a task ends at the timeout of a call although its server says that it is at work",
	},
	Bug{
		Name: "task-goes-on-alone", In: "Session.pollTask", Old: "s.abandonTask(status.ID)", New: "{}",
		Finds: []string{"I4"}, Why: "the task of a caller who gave up goes on",
	},
	Bug{
		Name: "task-of-the-dead", Package: sessionParts + "tasks", In: "Poller.waitForPoll", Old: "p.conversation.Dead()", New: "(chan struct{})(nil)",
		Finds: []string{"I2"}, Why: "a task whose connection died is waited for until the next question",
	},
	Bug{
		Name: "hint-unheard", In: "Session.handleTaskStatus", Old: "f.id != id", New: "f.id == id",
		Finds: []string{"I2"}, Why: "that a task has ended is seen only with the next question",
	},
	// A callback of a caller runs no more after the call has returned.
	Bug{
		Name: "progress-after-the-end", In: "progressReporter.deliverReport", Old: "p.finished", New: "p.callback == nil",
		Finds: []string{"I2"}, Why: "a caller hears of progress after its call has ended",
	},
	Bug{
		Name: "extended-each-time", Package: sessionParts + "calltimeout", In: "Context.ExtendOnce", Old: "p.extended = true",
		Finds: []string{"I2"}, Why: "a server that asks all the time holds its caller for ever",
	},
	Bug{
		Name: "gate-of-the-closing", In: "Session.OpenGate", Old: "s.closing || s.endReason != nil", New: "s.endReason != nil",
		Finds: []string{"I3"}, Why: "calls are admitted to a connection that is being closed",
	},
	// The end of a session reaches its gates, its transport and its pending requests.
	Bug{
		Name: "gates-of-the-dead", In: "Session.endSession", Old: "for _, g := range gates { g.markClosed() }", New: "_ = gates",
		Finds: []string{"I2"}, Why: "calls that wait for their turn at a server that died wait until their deadline",
	},
	Bug{
		Name: "failed-not-closed", In: "Session.failSession", Old: "if ready { s.spawn(s.closeConn) }", New: "_ = ready",
		Finds: []string{"I12", "I11"}, Why: "a connection that was given up stays open, and the server never comes back",
	},
	Bug{
		Name: "lane-forgets-its-bytes", Package: sessionParts + "serial", In: "Queue.drain", Old: "l.bytes -= item.size",
		Finds: []string{"I9"}, Why: "after a megabyte of notifications no other one is heard",
	},
	Bug{
		Name: "lost-while-closing", In: "sink.Down", Old: "s.endSession(outcome.TranslateError(\"connect\", err))", New: "if !s.closing { s.endSession(outcome.TranslateError(\"connect\", err)) }",
		Finds: []string{"I2", "I12"}, Why: "calls that wait when a connection is closed never end",
	},
	Bug{
		Name: "resources-told-once", In: "Session.publishUpdates", Old: "u.order, u.waiting = nil, nil", New: "u.order = nil",
		Finds: []string{"I14"}, Why: "a resource that is watched is told as changed once and never again",
	},
	Bug{
		Name: "handshake-error-of-another", In: "Session.takeHandshakeRequest", Old: "s.info.Load() != nil", New: "s.info.Load() == nil",
		Finds: []string{"I2", "I3"}, Why: "an error without an id ends the one call that is under way",
	},
)
