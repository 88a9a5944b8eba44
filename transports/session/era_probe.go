package session

// eraProbe is the state of the search for a server's era. It is a pure value: probeEra asks, records the answers here and
// takes the next step from nextStep. The result depends on which answers came, and not on which came first, or how soon: a
// server that got both questions while its machine was busy comes out like one on an idle machine.
//
//   - An answer to server/discover decides, whenever it comes before the decision.
//   - initialize alone does not decide: if the server answers it and not server/discover, the session sends ping, at once
//     and again after Config.ProbeWait. A server that answers requests that came so much later, and not the first one, does
//     not know server/discover.
//   - If a server speaks both eras, and says so, the session uses the legacy one if the server keeps a session as long as
//     its connection (a process, or a server of this program), and the modern one otherwise. See keepsSession.
//
// Time still decides in two cases: a server that answers initialize, and neither server/discover nor ping, for overdueWaits
// times Config.ProbeWait, is of the legacy era; and a server that answers server/discover only after the second ping is taken
// for one of the legacy era.
type eraProbe struct {
	// initializeFirst asks initialize before server/discover (Config.InitializeFirst).
	initializeFirst bool
	// keepsSession is true if a session costs nothing here, because the connection is one.
	//
	// 2026-07-28, Versioning: "The client SHOULD select a mutually supported version from the supported list", and of the
	// server: "An initialize request selects legacy semantics, scoped to the stdio process". So the choice is the client's if
	// the server lists both. The advantage of the modern era is that a server need not remember its clients: that counts over
	// HTTP, where sessions are lost with a restart and requests meet several machines. A process is a session in any case.
	// There the modern era costs a description of the client in each request, and a standing request for the notifications
	// that the legacy era sends unasked; with mcp-go 1.2.1 it costs half of the throughput and three times the memory. The
	// advantages of the legacy era are that servers have used it longest, and logging, sampling and roots, which the modern
	// one deprecates.
	keepsSession bool

	// The states of the two questions.
	discover, initialize probeState
	// speaksBoth is true if the answer to server/discover lists a version of the legacy era, too.
	speaksBoth bool
	// pings counts the answered pings; pinging is true while one is unanswered.
	pings   int
	pinging bool
	// probeWaitPassed is true once Config.ProbeWait has passed since the server agreed to initialize: it is time for the
	// second ping.
	probeWaitPassed bool
	// overdue is true once the server has had enough time for the question that the probe waits for.
	overdue bool
}

// overdueWaits times Config.ProbeWait is the time in which a server must answer a request that comes after
// initialize.
const overdueWaits = 5

// enoughPings is the number of answered pings after which the probe does not expect an answer to server/discover any
// more.
const enoughPings = 2

// probeState is the state of one question.
type probeState uint8

const (
	// probeUnasked: the question was not sent; probePending: it was, and has no answer.
	probeUnasked probeState = iota
	probePending
	// probeAccepted: the answer to server/discover names a modern version that we speak; or the server agreed to initialize.
	probeAccepted
	// probeRefused: the server refused initialize; or its answer to server/discover is not one of a modern server.
	probeRefused
	// probeFinal: the answer to server/discover leaves nothing to ask. The handshake fails with it.
	probeFinal
)

// probeStep is the next thing that probeEra does.
type probeStep uint8

const (
	stepWait probeStep = iota
	stepDiscover
	stepInitialize
	stepPing
	stepUseModern
	stepUseLegacy
	stepGiveUp
)

// nextStep returns the step that follows from the state. It first looks at server/discover, whose answer decides; only while
// that is open does initialize matter.
func (q eraProbe) nextStep() probeStep {
	switch q.discover {
	case probeUnasked:
		// The other order, for servers that wait for initialize: the probe waits for its answer, or ProbeWait, before it goes
		// on.
		if q.initializeFirst && q.initialize == probeUnasked {
			return stepInitialize
		}
		if q.initializeFirst && q.initialize == probePending {
			return stepWait
		}
		return stepDiscover
	case probeAccepted:
		// A modern server: the legacy era is the better choice only if it speaks both and keeps its session.
		if !q.speaksBoth || !q.keepsSession || q.initialize == probeRefused {
			return stepUseModern
		}
		return q.legacyStep()
	case probeFinal:
		return stepGiveUp
	case probeRefused:
		return q.legacyStep()
	case probePending:
	}
	// server/discover has no answer yet. After ProbeWait the probe asks initialize as well.
	switch q.initialize {
	case probeUnasked:
		if q.overdue {
			return stepInitialize
		}
		return stepWait
	case probeAccepted:
		// initialize works, and server/discover is still open: pings show whether the server is slow or ignores it.
		switch {
		case q.overdue, q.pings >= enoughPings:
			return stepUseLegacy
		case !q.pinging && (q.pings == 0 || q.probeWaitPassed):
			return stepPing
		}
	case probePending, probeRefused, probeFinal:
	}
	return stepWait
}

// legacyStep returns the step when server/discover has had its answer and only initialize can still decide.
func (q eraProbe) legacyStep() probeStep {
	switch q.initialize {
	case probeUnasked:
		return stepInitialize
	case probeAccepted:
		return stepUseLegacy
	case probeRefused:
		return stepGiveUp
	case probePending, probeFinal:
	}
	return stepWait
}
