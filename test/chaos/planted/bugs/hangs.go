package bugs

import "slices"

// hangBugs make a run stand still in virtual time: a lock that is not released, or a send without a reader. The harness must
// end such a run, and name the goroutine that waits and what it waits for.
var hangBugs = slices.Concat(
	inPackage("actors",
		Bug{
			Name: "wait-forgets-unlock", In: "Cell.Wait", Old: "c.mu.Unlock()", New: "if !ok(c.announced.Load()) { c.mu.Unlock() }",
			Finds: []string{"hung"}, Why: "one caller who waits for a server at the wrong moment, and the server's actor never goes on",
		},
		Bug{
			Name: "send-without-reader", In: "Server.performEffect", Old: "s.scheduleRelist(e)", New: "s.scheduleRelist(e); make(chan int) <- 1",
			Finds: []string{"I9"}, Why: "the actor of a server blocks for ever when its tools change",
		}),
	inPackage("transports/session", Bug{
		Name: "take-forgets-unlock", In: "Session.takePending", Old: "s.mu.Unlock()", New: "if ok { s.mu.Unlock() }",
		Finds: []string{"hung"}, Why: "one answer to a request that nobody waits for, and the session never goes on",
	}),
	inPackage("supervisor/internal/core", Bug{
		Name: "chance-forgets-unlock", In: "supervisor.sessionRand", Old: "defer mu.Unlock()", New: "",
		Finds: []string{"hung"}, Why: "the second draw of a session's jitter never comes back",
	}),
)
