package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
)

// simServer is one server in the world: its machine, and its connections by number. Only the world's loop uses it, apart from
// the methods of far, which only fill the inbox.
type simServer struct {
	w       *simulation
	server  scenario.Server
	machine peer.Machine
	spec    messages.Spec
	rng     *rand.Rand // jitter

	canary string
	token  bearerToken

	conns     map[int]*simConn
	dialCount int
	revision  int  // how often its spec was changed
	removed   bool // the owner has removed it
	// commandCount counts what the owner asked of it by message.
	commandCount atomic.Int64
}

// simConn is one connection as the world sees it.
type simConn struct {
	conn
	number int
	// accepted and refused say how the opening ended; ended that the server's side is no more; gone that nothing is left.
	accepted, refused, ended, nothingLeft bool
	// abandoned says that the client gave up before the opening was answered.
	abandoned    bool
	requestCount int
	// openRequests are the requests that have no answer yet, by id.
	openRequests map[string]request
}

// request is one that was received. Its id in the record counts the requests of the connection: which of two callers that
// were woken in one instant got the lower id of JSON-RPC is nobody's business.
type request struct{ method, call, id string }

func newSimServer(w *simulation, s scenario.Server, machine peer.Machine, canary string) *simServer {
	return &simServer{
		w: w, server: s, machine: machine, spec: specOf(s, canary), canary: canary, token: bearerToken{server: s.Name}, conns: map[int]*simConn{},
		rng: rand.New(rand.NewPCG(w.plan.Seed, seedOf("jitter", s.Name))),
	}
}

// seedOf makes a number of words, so that each use of chance has a source of its own.
func seedOf(words ...string) uint64 {
	h := fnv.New64a()
	for _, word := range words {
		_, _ = h.Write(append([]byte(word), 0)) // it never fails
	}
	return h.Sum64()
}

// These are far.
func (h *simServer) onDialed(c conn)                 { h.w.inbox.addItem(h, c, itemDialed, nil) }
func (h *simServer) onSent(c conn, x *exchange)      { h.w.inbox.addItem(h, c, itemSent, x) }
func (h *simServer) onAbandoned(c conn, x *exchange) { h.w.inbox.addItem(h, c, itemAbandoned, x) }
func (h *simServer) onReleased(c conn)               { h.w.inbox.addItem(h, c, itemReleased, nil) }
func (h *simServer) onClosing(c conn, kill bool) {
	if kill {
		h.w.inbox.addItem(h, c, itemTerminating, nil)
	} else {
		h.w.inbox.addItem(h, c, itemClosing, nil)
	}
}

// nextJitter keeps two servers from acting in the same nanosecond.
func (h *simServer) nextJitter() time.Duration { return time.Duration(1 + h.rng.IntN(999)) }

// handleItem does what an item of the inbox asks for.
func (h *simServer) handleItem(it item) {
	base := it.conn.base()
	if it.kind == itemDialed {
		h.dialCount++
		base.number = h.dialCount
		h.conns[base.number] = &simConn{conn: it.conn, number: base.number, openRequests: map[string]request{}}
		h.recordEvent(history.Event{Kind: history.Open, Conn: base.number})
		h.performActions(h.machine.Open(h.w.currentTime(), base.number))
		return
	}
	l := h.conns[base.number]
	if l == nil {
		return
	}
	switch it.kind {
	case itemSent:
		h.receiveMessage(l, it.x)
	case itemAbandoned:
		h.abandonExchange(l, it.x)
	case itemClosing, itemTerminating:
		h.closeConn(l, it.kind == itemTerminating)
	case itemReleased:
		h.releaseConn(l)
	case itemDialed:
	}
}

func (h *simServer) receiveMessage(l *simConn, x *exchange) {
	r := request{method: x.method, call: x.call}
	if x.id != "" {
		l.requestCount++
		r.id = strconv.Itoa(l.requestCount)
		l.openRequests[x.id] = r
	}
	h.recordEvent(history.Event{Kind: history.Received, Conn: l.number, Method: x.method, ID: r.id, Call: r.call})
	h.performActions(h.machine.Receive(h.w.currentTime(), l.number, x.body, x.header))
	l.markTaken(x) // unless it was refused just now
	h.w.needsWait = true
}

func (h *simServer) abandonExchange(l *simConn, x *exchange) {
	if x == nil || !l.accepted && !l.refused {
		h.performActions(h.machine.Abandoned(h.w.currentTime(), l.number, ""))
		h.forgetConn(l)
		return
	}
	if x.id != "" {
		delete(l.openRequests, x.id)
		h.performActions(h.machine.Abandoned(h.w.currentTime(), l.number, x.id))
	}
}

// forgetConn drops a connection that was never opened. One that was refused has said so; of one that nobody waits for any more
// nothing is left from here on.
func (h *simServer) forgetConn(l *simConn) {
	if !l.refused {
		h.recordEvent(history.Event{Kind: history.Released, Conn: l.number})
	}
	l.nothingLeft, l.refused = true, true
	delete(h.conns, l.number)
}

func (h *simServer) closeConn(l *simConn, signal bool) {
	switch {
	case !l.accepted && !l.refused: // over HTTP: the opening was never answered
		h.performActions(h.machine.Abandoned(h.w.currentTime(), l.number, ""))
		l.refused, l.abandoned = true, true
	case !l.ended && !l.refused:
		h.performActions(h.machine.Closed(h.w.currentTime(), l.number, signal))
	}
}

// releaseConn follows the end of a connection for good.
func (h *simServer) releaseConn(l *simConn) {
	if !l.ended && l.accepted {
		h.machine.Killed(h.w.currentTime(), l.number)
	}
	if l.accepted || l.abandoned {
		h.recordEvent(history.Event{Kind: history.Released, Conn: l.number})
	}
	l.nothingLeft = true
	delete(h.conns, l.number)
}

// recordEvent records what a server saw.
func (h *simServer) recordEvent(e history.Event) {
	e.Server, e.Side = h.server.Name, history.World
	h.w.recordEvent(e)
	if e.Call != "" && (e.Kind == history.Received || e.Kind == history.Answered) {
		h.w.users.noteCallEvent(&e)
	}
}

// endServerSide ends the server's side of a connection.
func (h *simServer) endServerSide(l *simConn, e ending, retryAfter time.Duration) {
	if !l.ended {
		l.ended = true
		h.recordEvent(history.Event{Kind: history.Down, Conn: l.number, Class: e.err.Class, Text: e.err.Text, RetryAfter: retryAfter})
	}
	h.w.needsWait = true
	l.endRemote(e)
}

// brokenError is a connection that the network or the server has ended without a word.
func (h *simServer) brokenError() *transports.Error {
	return &transports.Error{Class: messages.ClassNetwork, Text: h.serverLabel() + " broke the connection"}
}

// serverLabel names the server in the errors of its transport.
func (h *simServer) serverLabel() string { return h.server.Name + ".sim:443" }
