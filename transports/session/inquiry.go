package session

// inquiry is what is known of a server's era while it is being found out. What follows depends on what was answered, and not on
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
// What is left to time: a server that answers initialize, and neither server/discover nor ping, for lookWaits times
// Config.ProbeWait, is of the legacy era; and one that answers server/discover only after that second ping is taken for one.
type inquiry struct {
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

	discover, initialize standing
	// both says that the answer to server/discover lists a version of the legacy era, too.
	both bool
	// pings is how many were answered, pinging that one is out.
	pings   int
	pinging bool
	// rested says that Config.ProbeWait has passed since initialize was agreed to.
	rested bool
	// overdue says that the question that is waited for has been out for long enough.
	overdue bool
}

// lookWaits times Config.ProbeWait is how long a server may take to answer what it is asked after initialize.
const lookWaits = 5

// pingsEnough are how many pings a server answers before it is believed not to answer server/discover.
const pingsEnough = 2

// standing is how far a question is.
type standing uint8

const (
	unasked standing = iota
	waited
	// granted: server/discover found a version of the modern era that we speak, or initialize was agreed to.
	granted
	// refused: initialize was; or what server/discover was answered is no answer of a modern server.
	refused
	// ended: what server/discover was answered leaves nothing to be asked.
	ended
)

// move is what is to be done next.
type move uint8

const (
	wait move = iota
	askDiscover
	askInitialize
	askPing
	settleModern
	settleLegacy
	giveUp
)

func (q inquiry) next() move {
	switch q.discover {
	case unasked:
		if q.initializeFirst && q.initialize == unasked {
			return askInitialize
		}
		if q.initializeFirst && q.initialize == waited {
			return wait
		}
		return askDiscover
	case granted:
		if !q.both || !q.keepsSession || q.initialize == refused {
			return settleModern
		}
		return q.legacy()
	case ended:
		return giveUp
	case refused:
		return q.legacy()
	case waited:
	}
	switch q.initialize {
	case unasked:
		if q.overdue {
			return askInitialize
		}
		return wait
	case granted:
		switch {
		case q.overdue, q.pings >= pingsEnough:
			return settleLegacy
		case !q.pinging && (q.pings == 0 || q.rested):
			return askPing
		}
	case waited, refused, ended:
	}
	return wait
}

// legacy is what follows once nothing but initialize is of interest.
func (q inquiry) legacy() move {
	switch q.initialize {
	case unasked:
		return askInitialize
	case granted:
		return settleLegacy
	case refused:
		return giveUp
	case waited, ended:
	}
	return wait
}
