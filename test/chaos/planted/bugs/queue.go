package bugs

// queueBugs are in the queue of calls behind maxInFlight: callers take turns, each with one line of waiting calls, and two
// bounds limit the calls in flight and the calls that wait.
var queueBugs = inPackage("actors/internal/queue",
	Bug{
		Name: "one-key-first", In: "Queue.admitNext", Old: "q.nextLine = l.next",
		Finds: []string{"I21"}, Why: "who sends many calls at once keeps everybody else waiting until the last of them is done",
	},
	// Each bound is compared once, so an error by one lets one call too many in.
	Bug{
		Name: "one-too-many", In: "Queue.Enter", Old: "q.inFlight < q.limits.InFlight", New: "q.inFlight <= q.limits.InFlight",
		Finds: []string{"I9"}, Why: "a server that says it stands one call at a time gets two",
	},
	Bug{
		Name: "queue-one-too-long", In: "Queue.Enter", Old: "q.waiting >= q.limits.Waiting", New: "q.waiting > q.limits.Waiting",
		Finds: []string{"I9"}, Why: "one more call waits than may: nobody is harmed where the bound is not 0, where calls hang that should be refused",
	},
	// Every way out of the queue hands the place on: the end of a call, a caller who gives up, a displaced call.
	Bug{
		Name: "nobody-goes-next", In: "Queue.Leave", Old: "return q.admitNext()", New: "if q.inFlight > 0 { return nil }\nreturn q.admitNext()",
		Finds: []string{"I21", "I2"}, Why: "room that was given back is used only when all calls have ended",
	},
	Bug{
		Name: "places-traded", In: "Queue.displaceableFor", Old: "longest.length >= own+2", New: "longest.length >= own",
		Finds: []string{"I21", "I2"}, Why: "calls that wait are thrown out for others of callers who have as many waiting",
	},
	Bug{
		Name: "given-up-still-waits", In: "Queue.Drop", Old: "q.removeWaiter(w)", New: "w.line = nil",
		Finds: []string{"I21", "I2"}, Why: "the place of a caller who gave up is given to nobody: the server ends with no room at all",
	},
	Bug{
		Name: "smaller-bound-unheeded", In: "Queue.SetLimits", Old: "q.limits = l.clamped()", New: "if l.InFlight > q.limits.InFlight { q.limits = l.clamped() }",
		Finds: []string{"I9"}, Why: "a bound that is lowered has no effect until the next start of the program",
	},
)
