package bugs

// policyBugs are in the retry policy, which decides when a server is tried again. I7 computes the same delays from the
// documented numbers and compares.
var policyBugs = inPackage("supervisor/restart",
	// A delay is drawn between the floor and an interval that doubles with each failure. The jitter keeps servers that died
	// together apart.
	Bug{
		Name: "no-floor", In: "Policy.Down", Old: "drawDuration(rnd, p.Floor, p.Interval(d.Kind, r.Attempts))",
		New:   "drawDuration(rnd, 0, p.Interval(d.Kind, r.Attempts)/8)",
		Finds: []string{"I7"}, Why: "a server that dies at once is started again in the same millisecond",
	},
	Bug{
		Name: "no-growth", In: "Policy.Down", Old: "drawDuration(rnd, p.Floor, p.Interval(d.Kind, r.Attempts))",
		New:   "drawDuration(rnd, p.Floor, p.Interval(d.Kind, 1))",
		Finds: []string{"I7"}, Why: "a dead server is tried at the pace of the first failure for ever",
	},
	Bug{
		Name: "no-jitter", In: "drawDuration", Old: "rnd()", New: "0.9+0*rnd()",
		Finds: []string{"I7"}, Why: "a thousand servers that die together come back together",
	},
	// Only a connection that lasted for Stable clears the failures; a mere connect clears the rest.
	Bug{
		Name: "reset-on-connect", In: "Policy.Connected", Old: "r.EverConnected, r.Parked, r.Exhausted, r.Displaced = true, false, 0, false",
		New:   "r.EverConnected, r.Parked, r.Exhausted, r.Displaced, r.Attempts = true, false, 0, false, 0",
		Finds: []string{"I7"}, Why: "connect-then-drop loops at the first delay for ever",
	},
	// After so many failures in a row a server is parked: it is then only probed, at long intervals with jitter.
	Bug{
		Name: "never-parks", In: "Policy.Down", Old: "r.Parked = r.Attempts >= p.parkAfter(d.Kind)", New: "r.Parked = false",
		Finds: []string{"I7"}, Why: "a dead server costs a process start a minute for ever",
	},
	Bug{
		Name: "parked-one-later", In: "Policy.Down", Old: "r.Attempts >= p.parkAfter(d.Kind)", New: "r.Attempts > p.parkAfter(d.Kind)",
		Finds: []string{"I7"}, Why: "a dead server is started once more than it should before it is parked",
	},
	Bug{
		Name: "parked-for-ever", In: "Policy.Down", Old: "return r, Decision{messages.RetryParked, now.Add(delay)}",
		New:   "return r, Decision{messages.RetryParked, now.Add(100 * delay)}",
		Finds: []string{"I13", "I11", "I7"}, Why: "a server that was parked is given up for good",
	},
	// A Retry-After counts with a little jitter, unless the policy's own delay is longer.
	Bug{
		Name: "retry-after-ignored", In: "Policy.Down", Old: "max(p.withJitter(d.RetryAfter, rnd), p.Floor)",
		New:   "drawDuration(rnd, p.Floor, p.Interval(d.Kind, r.Attempts))",
		Finds: []string{"I7"}, Why: "a server that asks for time is stormed",
	},
	Bug{
		Name: "retry-after-of-the-parked", In: "Policy.Down", Old: "d.RetryAfter > delay", New: "d.RetryAfter > delay && stable",
		Finds: []string{"I7"}, Why: "a parked server that asks for an hour is probed after five minutes",
	},
	Bug{
		Name: "retry-after-clipped", In: "Policy.withJitter", Old: "min(wish, longest)", New: "min(wish, 2*time.Second)",
		Finds: []string{"I7"}, Why: "a server that asks for a minute is tried after two seconds",
	},
	// The stable period decides between a quick retry and one more failure.
	Bug{
		Name: "stable-too-soon", In: "Policy.Down", Old: "d.Connected >= p.Stable", New: "d.Connected >= p.Stable/4",
		Finds: []string{"I7"}, Why: "a server that dies every quarter of a minute is never parked",
	},
	Bug{
		Name: "never-steady", In: "Policy.Down", Old: "d.Connected >= p.Stable", New: "d.Connected >= 100*p.Stable",
		Finds: []string{"I7"}, Why: "a server that was well for an hour waits as if it had never been",
	},
	// The cap bounds the interval for a server that stays away for long.
	Bug{
		Name: "cap-ignored", In: "Policy.Interval", Old: "MaxInterval: p.Cap", New: "MaxInterval: 20 * p.Cap",
		Finds: []string{"I7", "I11"}, Why: "a server that comes back is not looked for",
	},
	Bug{
		Name: "probes-in-step", In: "Policy.Down", Old: "scaleDuration(p.Probe, 1-p.ProbeJitter)", New: "scaleDuration(p.Probe, 1+p.ProbeJitter)",
		Finds: []string{"I7"}, Why: "all parked servers are probed at one moment",
	},
	// Processes and network servers have bases and park counts of their own.
	Bug{
		Name: "parks-swapped", In: "Policy.parkAfter", Old: "kind == messages.Stdio", New: "kind != messages.Stdio",
		Finds: []string{"I7"}, Why: "remote servers are parked before a deployment is over, and processes are started too often",
	},
	Bug{
		Name: "bases-swapped", In: "Policy.baseInterval", Old: "kind == messages.Stdio", New: "kind != messages.Stdio",
		Finds: []string{"I7"}, Why: "processes are restarted at the pace that is meant for connections",
	},
	// The class of an error decides whether a retry makes sense and whether it counts.
	Bug{
		Name: "machine-blamed-on-server", In: "retryModeOf", Old: "case messages.ClassExhausted: return uncounted",
		New:   "case messages.ClassExhausted:\nreturn counted",
		Finds: []string{"I7", "I13"}, Why: "a machine that is short of descriptors for a minute has all its servers parked",
	},
	Bug{
		Name: "session-loss-is-the-end", In: "retryModeOf", Old: "case messages.ClassSession: return counted",
		New:   "case messages.ClassSession:\nreturn never",
		Finds: []string{"I11", "I7"}, Why: "a server that was redeployed is never connected again",
	},
	Bug{
		Name: "missing-retried", In: "retryModeOf", Old: "case messages.ClassMissing: return ifEverConnected",
		New:   "case messages.ClassMissing:\nreturn counted",
		Finds: []string{"I7", "I8"}, Why: "a misspelt command is started again and again",
	},
	// After a sleep of the machine all retries are due at once, so they are spread.
	Bug{
		Name: "herd-after-sleep", In: "Policy.Woken", Old: "drawDuration(rnd, 0, p.WakeSpread)", New: "drawDuration(rnd, 0, 0)",
		Finds: []string{"I7", "I6"}, Why: "when a laptop is opened all servers are dialled in one instant",
	},
	// A server that gave its place at the gate to another one must not displace the next in turn.
	Bug{
		Name: "place-taken-again", In: "Policy.Displaced", Old: "r.Displaced = true",
		Finds: []string{"I7", "I11"}, Why: "silent servers take each other's places for ever, and none gets the time that it needs",
	},
	Bug{
		Name: "fresh-start-parked", In: "Policy.Steady", Old: "r.Attempts, r.Exhausted, r.Parked = 0, 0, false", New: "r.Exhausted, r.Parked = 0, false",
		Finds: []string{"I7"}, Why: "a server that a person mended is parked at its first failure",
	},
)

// gateBugs are in the start gate, which decides which servers may start now: a number of slots for processes and for each host,
// and an order by urgency.
var gateBugs = inPackage("supervisor/restart",
	// A start holds a slot until it is answered or its hold time is over; the count of unanswered starts bounds the silent
	// ones.
	Bug{
		Name: "gate-wide-open", In: "pool.nextRequest", Old: "p.slotsHeld >= p.width.now || p.hasTooManySilent()", New: "p.hasTooManySilent()",
		Finds: []string{"I6"}, Why: "sixty node processes start at once and all miss their timeouts",
	},
	Bug{
		Name: "gate-one-wider", In: "pool.nextRequest", Old: "p.slotsHeld >= p.width.now", New: "p.slotsHeld > p.width.now",
		Finds: []string{"I6"}, Why: "one process more starts than the processors bear",
	},
	Bug{
		Name: "gate-never-frees", In: "pool.expireSlots", Old: "!p.holds.isEmpty() && !p.holds.top().expires.After(now)",
		New:   "false && !p.holds.isEmpty()",
		Finds: []string{"I11", "I7", "I9"}, Why: "a few silent servers keep all others from starting",
	},
	Bug{
		Name: "unanswered-leaks", In: "pool.endGrant",
		Old:   "p.releaseSlot(g)\nif g.apart { p.installing-- } else { p.unanswered-- }",
		New:   "held := g.holding\np.releaseSlot(g)\nif g.apart { p.installing-- } else if held { p.unanswered-- }",
		Finds: []string{"I11", "I7"}, Why: "after some failures no process is started any more",
	},
	Bug{
		Name: "unanswered-unbounded", In: "pool.hasTooManySilent", Old: "p.maxUnanswered > 0 && p.unanswered >= p.maxUnanswered", New: "p.maxUnanswered < 0",
		Finds: []string{"I6"}, Why: "processes that never answer pile up",
	},
	// A new request of a waiting server replaces the old one and keeps its place in the queue if that was due already.
	Bug{
		Name: "old-wait-kept", In: "Gate.Enqueue",
		Old: "if r.NotBefore.After(now) { w.since = r.NotBefore } else if old := g.waiting[r.Server]; old != nil && !old.since.After(now) {\n" +
			"w.since, w.seq = old.since, old.seq }",
		New: "if old := g.waiting[r.Server]; old != nil && old.since.After(now) {\nw.since = old.since\n" +
			"} else if r.NotBefore.After(now) {\nw.since = r.NotBefore\n} else if old != nil && !old.since.After(now) {\n" +
			"w.since, w.seq = old.since, old.seq\n}",
		Finds: []string{"I7", "I8", "I11"}, Why: "reconnect and a new configuration wait for the timer of the old one",
	},
	Bug{
		Name: "time-unheeded", In: "Gate.Enqueue", Old: "r.NotBefore.After(now)", New: "r.NotBefore.Before(g.now)",
		Finds: []string{"I7"}, Why: "no server waits before it is tried again",
	},
	Bug{
		Name: "old-request-left", In: "Gate.Enqueue", Old: "g.Cancel(r.Server)",
		Finds: []string{"I7", "I6"}, Why: "a server that was asked for twice is started twice",
	},
	// A request of a server whose last attempt still closes waits apart until that attempt has ended.
	Bug{
		Name: "request-behind-its-own", In: "Gate.endGrant", Old: "if w := g.waiting[server]; w != nil { g.placeRequest(w) }",
		Finds: []string{"I11", "I16"}, Why: "a server that is asked for while its last attempt still closes never starts",
	},
	Bug{
		Name: "two-of-one", In: "Gate.placeRequest", Old: "g.open[w.Server] != nil", New: "g.open[w.Server] != nil && !w.Displaces",
		Finds: []string{"I6", "I11"}, Why: "a server is granted a start while the one before has not ended, and one of the two places is never given back",
	},
	// The gate asks to be woken at the earliest time at which a slot or a request becomes due.
	Bug{
		Name: "wake-of-the-last-hold", In: "Gate.Next", Old: "expires.Before(wake)", New: "expires.After(wake)",
		Finds: []string{"I11", "I7"}, Why: "servers wait for the timer of another one although a slot is free",
	},
	// The starts of each host are counted apart, with a bound; a count without starts is dropped.
	Bug{
		Name: "origin-one-more", In: "pool.isOriginFull", Old: "l.slotsHeld >= p.perOrigin", New: "l.slotsHeld > p.perOrigin",
		Finds: []string{"I6"}, Why: "one host is dialled more often at once than is polite",
	},
	Bug{
		Name: "origin-never-free", In: "pool.releaseSlot", Old: "g.origin.slotsHeld--",
		Finds: []string{"I11", "I7"}, Why: "after sixteen dials to one host no server of that host is dialled again",
	},
	Bug{
		Name: "lane-forgotten", In: "pool.dropIfEmpty", Old: "l.slotsHeld > 0", New: "l.slotsHeld > 1",
		Finds: []string{"I6", "I11"}, Why: "the count of the dials to one host is lost, and more than may be are made",
	},
	// A waiting request rises with its age, and requests of persons alternate with the others, so that none waits for ever.
	Bug{
		Name: "nobody-rises", In: "queuedRequest.agedClass", Old: "max(risen, 0)", New: "min(risen, 0)",
		Finds: []string{"I11"}, Why: "a server that nobody has used yet waits for as long as others fail and retry",
	},
	Bug{
		Name: "persons-always-first", In: "pool.nextRequest", Old: "best == nil || class < Urgent || !p.lastWasAsked", New: "true",
		Finds: []string{"I11"}, Why: "while people ask for servers nothing else is started",
	},
	// Counters of the gate change in pairs; one that is missed drifts until the gate is full or open.
	Bug{
		Name: "displaced-uncounted", In: "Gate.Displace", Old: "p.displaced++",
		Finds: []string{"I7", "I11"}, Why: "for one server that wants to start many that are still starting are ended",
	},
	Bug{
		Name: "installer-holds-slot", In: "Gate.Installing", Old: "p.releaseSlot(o)",
		Finds: []string{"I11"}, Why: "servers that are being installed keep others from starting",
	},
	Bug{
		Name: "request-counted-on", In: "pool.dropRequest", Old: "p.dueRequests--",
		Finds: []string{"I9"}, Why: "the gate wakes again and again for requests that are gone",
	},
)
