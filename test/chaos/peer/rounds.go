package peer

import (
	"bytes"
	"encoding/json"
	"time"
)

// inputRound is a request that the server wants to have back: with which input, what it was about (askedFor), and when the server wanted it.
type inputRound struct {
	questionKind
	asked string
	at    time.Duration
	// cameBack is set once it has come back with its state.
	cameBack bool
}

// retryBound is the time in which a client sends a request again for which the server wanted only time, beside the time that the server itself takes:
// it pauses for 50 ms.
const retryBound = time.Second

// retryPause is the time before which no client sends a request again for which the server wanted only time: half of the
// product's pause. What the server sends may wait on its way, which makes the pause longer and never shorter.
const retryPause = 25 * time.Millisecond

// receiveRound judges that a request for which the server wanted only time comes back after a pause. A client that makes none asks
// the busy server as fast as it answers, and gives the request up after 32 rounds, which are over before the server has had any time.
func (m *machine) receiveRound(round *inputRound) {
	if waited := m.now - round.at; round.capability == "" && waited < retryPause {
		m.reportViolation("it wanted time for " + round.asked + " and no input, and the request came back after " + waited.String() +
			": a client pauses for 50ms and longer before it asks such a server again")
	}
}

// noteRound notes that a request has come back. Its caller may give it up before the server has looked at it (seed 30400278).
func (m *machine) noteRound(q *message) {
	if len(m.inputRounds) == 0 || !bytes.Contains(q.Params, []byte("requestState")) {
		return
	}
	var p struct {
		State string `json:"requestState"`
	}
	_ = json.Unmarshal(q.Params, &p) // a state of another form is none that the server has given
	if round := m.inputRounds[p.State]; round != nil {
		round.cameBack = true
	}
}

// awaitRound judges that a request comes back for which the server wanted no input. A caller who gives up in the meantime is not seen here, so that
// only three in a row that do not come back tell of the client: an agent that ends may have given up two (seed 20980716), and several that were
// asked for before any of them was overdue count as one (seed 30100175).
func (m *machine) awaitRound(c *conn, round *inputRound) {
	bound := retryBound + 4*m.cfg.Server.Latency
	if round.capability != "" || m.cfg.Server.CallTimeout > 0 && m.cfg.Server.CallTimeout < 2*bound {
		return
	}
	asked := m.now
	m.scheduleAfter(c, bound, func() {
		switch {
		case round.cameBack:
			m.lostRounds = 0
		case m.isEnded(c), !c.isUnblocked(), len(m.activeFaults) > 0, m.lastFaultAt >= asked:
		case asked < m.lostUntil:
		default:
			m.lostUntil = asked + bound
			if m.lostRounds++; m.lostRounds >= 3 {
				m.reportViolation("it wanted " + round.asked + " to come back with its state after a pause, at " + asked.String() +
					", and that has not happened; nor have the two before it")
			}
		}
	})
}
