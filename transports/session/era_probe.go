package session

// eraProbe is what is known of a server's era while it is being found out. What follows depends on what was answered, and not on
// what was answered first, or how soon: a server that was asked both questions while its machine was busy comes out like
// one that was asked on an idle machine.
//
//   - An answer to server/discover decides, whenever it comes before the verdict.
//   - initialize alone does not: where it is answered and server/discover is not, the server is asked to ping, at once and
//     again after Config.ProbeWait. Whoever answers what came so much later, and not what came first, does not know
//     server/discover.
//   - Where a server speaks both eras, and says so, one that keeps its session as long as its connection (a process, or
//     a server of this program) is spoken to in the legacy one, and every other one in the modern one. See keepsSession.
//
// What is left to time: a server that answers initialize, and neither server/discover nor ping, for overdueWaits times
// Config.ProbeWait, is of the legacy era; and one that answers server/discover only after that second ping is taken for one.
type eraProbe struct {
	// initializeFirst asks initialize before server/discover.
	initializeFirst bool
	// keepsSession says that a session costs nothing here, because the connection is one.
	//
	// 2026-07-28, Versioning: "The client SHOULD select a mutually supported version from the supported list", and of the server: "An
	// initialize request selects legacy semantics, scoped to the stdio process". So the choice is the client's where both
	// are listed. What the modern era brings is that no server need remember a client: that counts over HTTP, where sessions are
	// lost with a restart and requests meet several machines. A process is a session in any case. There the modern era
	// takes a description of the client with each request, and a standing request for what the legacy era says unasked;
	// with mcp-go 1.2.1 it costs half of the throughput and three times the memory. What the legacy era has is what a
	// server's authors have used longest, and logging, sampling and roots, which the modern one deprecates.
	keepsSession bool

	discover, initialize probeState
	// speaksBoth says that the answer to server/discover lists a version of the legacy era, too.
	speaksBoth bool
	// pings is how many were answered, pinging that one is out.
	pings   int
	pinging bool
	// probeWaitPassed says that Config.ProbeWait has passed since initialize was agreed to.
	probeWaitPassed bool
	// overdue says that the question that is waited for has been out for long enough.
	overdue bool
}

// overdueWaits times Config.ProbeWait is how long a server may take to answer what it is asked after initialize.
const overdueWaits = 5

// enoughPings are how many pings a server answers before it is believed not to answer server/discover.
const enoughPings = 2

// probeState is how far a question is.
type probeState uint8

const (
	probeUnasked probeState = iota
	probePending
	// probeAccepted: server/discover found a version of the modern era that we speak, or initialize was agreed to.
	probeAccepted
	// probeRefused: initialize was; or what server/discover was answered is no answer of a modern server.
	probeRefused
	// probeFinal: what server/discover was answered leaves nothing to be asked.
	probeFinal
)

// probeStep is what is to be done next.
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

func (q eraProbe) nextStep() probeStep {
	switch q.discover {
	case probeUnasked:
		if q.initializeFirst && q.initialize == probeUnasked {
			return stepInitialize
		}
		if q.initializeFirst && q.initialize == probePending {
			return stepWait
		}
		return stepDiscover
	case probeAccepted:
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
	switch q.initialize {
	case probeUnasked:
		if q.overdue {
			return stepInitialize
		}
		return stepWait
	case probeAccepted:
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

// legacyStep is what follows once nothing but initialize is of interest.
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
