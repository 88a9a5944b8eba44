package era

// A Probe is the state of the search for a server's era. It is a pure value: the session asks, records the answers here and
// takes the next step from NextStep. The result depends on which answers came, and not on which came first, or how soon: a
// server that got both questions while its machine was busy comes out like one on an idle machine.
//
//   - An answer to server/discover decides, whenever it comes before the decision.
//   - initialize alone does not decide: if the server answers it and not server/discover, the session sends ping, at once
//     and again after Config.ProbeWait. A server that answers requests that came so much later, and not the first one, does
//     not know server/discover.
//   - If a server speaks both eras, and says so, the session uses the legacy one if the server keeps a session as long as
//     its connection (a process, or a server of this program), and the modern one otherwise. See KeepsSession.
//
// Time still decides in two cases: a server that answers initialize, and neither server/discover nor ping, for OverdueWaits
// times Config.ProbeWait, is of the legacy era; and a server that answers server/discover only after the second ping is taken
// for one of the legacy era.
type Probe struct {
	// InitializeFirst asks initialize before server/discover (Config.InitializeFirst).
	InitializeFirst bool
	// KeepsSession is true if a session costs nothing here, because the connection is one.
	//
	// 2026-07-28, Versioning: "The client SHOULD select a mutually supported version from the supported list", and of the
	// server: "An initialize request selects legacy semantics, scoped to the stdio process". So the choice is the client's if
	// the server lists both. The advantage of the modern era is that a server need not remember its clients: that counts over
	// HTTP, where sessions are lost with a restart and requests meet several machines. A process is a session in any case.
	// There the modern era costs a description of the client in each request, and a standing request for the notifications
	// that the legacy era sends unasked; with mcp-go 1.2.1 it costs half of the throughput and three times the memory. The
	// advantages of the legacy era are that servers have used it longest, and logging, sampling and roots, which the modern
	// one deprecates.
	KeepsSession bool

	// The states of the two questions.
	Discover, Initialize State
	// SpeaksBoth is true if the answer to server/discover lists a version of the legacy era, too.
	SpeaksBoth bool
	// Pings counts the answered pings; Pinging is true while one is unanswered.
	Pings   int
	Pinging bool
	// ProbeWaitPassed is true once Config.ProbeWait has passed since the server agreed to initialize: it is time for the
	// second ping.
	ProbeWaitPassed bool
	// Overdue is true once the server has had enough time for the question that the probe waits for.
	Overdue bool
}

// OverdueWaits times Config.ProbeWait is the time in which a server must answer a request that comes after
// initialize.
const OverdueWaits = 5

// enoughPings is the number of answered pings after which the probe does not expect an answer to server/discover any
// more.
const enoughPings = 2

// State is the state of one question.
type State uint8

const (
	// Unasked: the question was not sent; Pending: it was, and has no answer.
	Unasked State = iota
	Pending
	// Accepted: the answer to server/discover names a modern version that we speak; or the server agreed to initialize.
	Accepted
	// Refused: the server refused initialize; or its answer to server/discover is not one of a modern server.
	Refused
	// Final: the answer leaves nothing to ask, and the handshake fails with it. To initialize it is one that asks for credentials, or for
	// patience: server/discover, which may stay without an answer, would get the same.
	Final
)

// Step is the next thing that the session does.
type Step uint8

const (
	StepWait Step = iota
	StepDiscover
	StepInitialize
	StepPing
	StepUseModern
	StepUseLegacy
	StepGiveUp
)

// NextStep returns the step that follows from the state. It first looks at server/discover, whose answer decides; only while
// that is open does initialize matter.
func (q Probe) NextStep() Step {
	switch q.Discover {
	case Unasked:
		// The other order, for servers that wait for initialize: the probe waits for its answer, or ProbeWait, before it goes
		// on.
		if q.InitializeFirst && q.Initialize == Unasked {
			return StepInitialize
		}
		if q.InitializeFirst && q.Initialize == Pending {
			return StepWait
		}
		return StepDiscover
	case Accepted:
		// A modern server: the legacy era is the better choice only if it speaks both and keeps its session.
		if !q.SpeaksBoth || !q.KeepsSession || q.Initialize == Refused || q.Initialize == Final {
			return StepUseModern
		}
		return q.legacyStep()
	case Final:
		return StepGiveUp
	case Refused:
		return q.legacyStep()
	case Pending:
	}
	// server/discover has no answer yet. After ProbeWait the probe asks initialize as well.
	switch q.Initialize {
	case Unasked:
		if q.Overdue {
			return StepInitialize
		}
		return StepWait
	case Accepted:
		// initialize works, and server/discover is still open: pings show whether the server is slow or ignores it.
		switch {
		case q.Overdue, q.Pings >= enoughPings:
			return StepUseLegacy
		case !q.Pinging && (q.Pings == 0 || q.ProbeWaitPassed):
			return StepPing
		}
	case Final:
		return StepGiveUp
	case Pending, Refused:
	}
	return StepWait
}

// legacyStep returns the step when server/discover has had its answer and only initialize can still decide.
func (q Probe) legacyStep() Step {
	switch q.Initialize {
	case Unasked:
		return StepInitialize
	case Accepted:
		return StepUseLegacy
	case Refused, Final:
		return StepGiveUp
	case Pending:
	}
	return StepWait
}
