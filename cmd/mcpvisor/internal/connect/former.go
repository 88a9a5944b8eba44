package connect

import (
	"bytes"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// This file moves an agent to the servers of another directory, or from a daemon that is ending to the next one. The new connection is told what
// the old one knew, as after the end of a daemon. The old one stays until what it has got is answered, and gets nothing new but answers and
// cancellations; of one that is ending nothing any more.

// formerConn is a connection that was left.
type formerConn struct {
	epoch int
	// asked holds the ids of its requests that the agent has not answered.
	asked map[string]bool
}

// moveDaemon begins with a connection for another directory, beside the one of before. There must be no former one.
func (b *bridge) moveDaemon() lines {
	b.former = &formerConn{epoch: b.epoch, asked: b.asked}
	b.phase = disconnected
	return b.beginDaemon()
}

// mayLeave reports whether a daemon that is ending can be left before its end. A handshake that it has not answered it answers first, because
// the next one is told of it.
func (b *bridge) mayLeave() bool {
	return b.phase == connected && b.former == nil && (b.answered || b.handshake == nil)
}

// leaveDaemon is called when the daemon wants nothing more: it is told where the end is, and stays as the former one until what it has got is
// answered. What comes waits for the next one. follows says that there is one without a request of the agent: it gets what the agent listens
// to, and the agent does not learn that this one has ended its subscriptions.
func (b *bridge) leaveDaemon(confirm []byte, follows bool) (out lines) {
	b.former = &formerConn{epoch: b.epoch, asked: b.asked}
	b.phase, b.asked = disconnected, nil
	for i, r := range b.open {
		if follows && r.epoch == b.epoch && r.method == "subscriptions/listen" {
			b.open[i].epoch = 0
		}
	}
	out.toFormer = append(out.toFormer, confirm)
	return out
}

// formerEnds reports whether there is a former connection that has no requests any more.
func (b *bridge) formerEnds() bool { return b.former != nil && !b.hasRequests(b.former.epoch) }

// hasRequests reports whether a connection has requests without an answer; 0 is for those that none has.
func (b *bridge) hasRequests(epoch int) bool {
	return slices.ContainsFunc(b.open, func(r openRequest) bool { return r.epoch == epoch })
}

// fromFormer takes a line of the former connection. What it says of the lists and resources of its directory is not the agent's any more.
func (b *bridge) fromFormer(line []byte) (out lines) {
	e := readEnvelope(line)
	switch method := e.methodName(); {
	case e.isRequest():
		if b.former.asked == nil {
			b.former.asked = map[string]bool{}
		}
		b.former.asked[string(e.id)] = true
		line = withID(line, questionID(b.former.epoch, e.id))
	case method == "notifications/cancelled":
		id := bytes.TrimSpace(rawjson.Member(e.params, "requestId"))
		if !b.former.asked[string(id)] {
			return out
		}
		delete(b.former.asked, string(id))
		line = cancelNotice(questionID(b.former.epoch, id))
	case method == "notifications/progress", method == "notifications/message":
	case method == "" && e.id != nil:
		if !slices.ContainsFunc(b.open, func(r openRequest) bool { return r.epoch == b.former.epoch && r.id == string(e.id) }) {
			return out // an answer to a request of the bridge, or to one that was taken back
		}
		b.finishRequest(string(e.id), line)
	default:
		return out
	}
	out.toAgent = append(out.toAgent, line)
	return out
}

// loseFormer is called when the former connection has gone: what only reads is asked once more, of the present one.
func (b *bridge) loseFormer() (out lines) {
	if b.former == nil {
		return out
	}
	out = b.loseConn(b.former.epoch, b.former.asked)
	b.former = nil
	if b.phase == connected {
		out.addLines(b.sendWaiting())
	}
	return out
}
