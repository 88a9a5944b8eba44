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

// host is one server in the world: its machine, and its connections by number. Only the world's loop uses it, apart from
// the methods of far, which only fill the inbox.
type host struct {
	w       *world
	server  scenario.Server
	machine peer.Machine
	spec    messages.Spec
	rng     *rand.Rand // jitter

	canary string
	token  token

	conns    map[int]*line
	dials    int
	revision int  // how often its spec was changed
	removed  bool // the owner has removed it
	// asked counts what the owner asked of it by message.
	asked atomic.Int64
}

// line is one connection as the world sees it.
type line struct {
	conn
	number int
	// accepted and refused say how the opening ended; ended that the server's side is no more; gone that nothing is left.
	accepted, refused, ended, gone bool
	// abandoned says that the client gave up before the opening was answered.
	abandoned bool
	requests  int
	// asked are the requests that have no answer yet, by id.
	asked map[string]request
}

// request is one that was received. Its id in the record counts the requests of the connection: which of two callers that
// were woken in one instant got the lower id of JSON-RPC is nobody's business.
type request struct{ method, call, id string }

func newHost(w *world, s scenario.Server, machine peer.Machine, canary string) *host {
	return &host{
		w: w, server: s, machine: machine, spec: specOf(s, canary), canary: canary, token: token{server: s.Name}, conns: map[int]*line{},
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
func (h *host) dialed(c conn)            { h.w.inbox.put(h, c, dialed, nil) }
func (h *host) sent(c conn, x *exchange) { h.w.inbox.put(h, c, sent, x) }
func (h *host) left(c conn, x *exchange) { h.w.inbox.put(h, c, left, x) }
func (h *host) released(c conn)          { h.w.inbox.put(h, c, released, nil) }
func (h *host) closing(c conn, kill bool) {
	if kill {
		h.w.inbox.put(h, c, terminating, nil)
	} else {
		h.w.inbox.put(h, c, closing, nil)
	}
}

// jitter keeps two servers from acting in the same nanosecond.
func (h *host) jitter() time.Duration { return time.Duration(1 + h.rng.IntN(999)) }

// handle does what an item of the inbox asks for.
func (h *host) handle(it item) {
	base := it.conn.base()
	if it.what == dialed {
		h.dials++
		base.number = h.dials
		h.conns[base.number] = &line{conn: it.conn, number: base.number, asked: map[string]request{}}
		h.note(history.Event{Kind: history.Open, Conn: base.number})
		h.perform(h.machine.Open(h.w.now(), base.number))
		return
	}
	l := h.conns[base.number]
	if l == nil {
		return
	}
	switch it.what {
	case sent:
		h.receive(l, it.x)
	case left:
		h.abandoned(l, it.x)
	case closing, terminating:
		h.closed(l, it.what == terminating)
	case released:
		h.over(l)
	case dialed:
	}
}

func (h *host) receive(l *line, x *exchange) {
	r := request{method: x.method, call: x.call}
	if x.id != "" {
		l.requests++
		r.id = strconv.Itoa(l.requests)
		l.asked[x.id] = r
	}
	h.note(history.Event{Kind: history.Received, Conn: l.number, Method: x.method, ID: r.id, Call: r.call})
	h.perform(h.machine.Receive(h.w.now(), l.number, x.body, x.header))
	l.took(x) // unless it was refused just now
	h.w.moved = true
}

func (h *host) abandoned(l *line, x *exchange) {
	if x == nil || !l.accepted && !l.refused {
		h.perform(h.machine.Abandoned(h.w.now(), l.number, ""))
		h.forget(l)
		return
	}
	if x.id != "" {
		delete(l.asked, x.id)
		h.perform(h.machine.Abandoned(h.w.now(), l.number, x.id))
	}
}

// forget drops a connection that was never opened. One that was refused has said so; of one that nobody waits for any more
// nothing is left from here on.
func (h *host) forget(l *line) {
	if !l.refused {
		h.note(history.Event{Kind: history.Released, Conn: l.number})
	}
	l.gone, l.refused = true, true
	delete(h.conns, l.number)
}

func (h *host) closed(l *line, signal bool) {
	switch {
	case !l.accepted && !l.refused: // over HTTP: the opening was never answered
		h.perform(h.machine.Abandoned(h.w.now(), l.number, ""))
		l.refused, l.abandoned = true, true
	case !l.ended && !l.refused:
		h.perform(h.machine.Closed(h.w.now(), l.number, signal))
	}
}

// over follows the end of a connection for good.
func (h *host) over(l *line) {
	if !l.ended && l.accepted {
		h.machine.Killed(h.w.now(), l.number)
	}
	if l.accepted || l.abandoned {
		h.note(history.Event{Kind: history.Released, Conn: l.number})
	}
	l.gone = true
	delete(h.conns, l.number)
}

// note records what a server saw.
func (h *host) note(e history.Event) {
	e.Server, e.Side = h.server.Name, history.World
	h.w.record(e)
	if e.Call != "" && (e.Kind == history.Received || e.Kind == history.Answered) {
		h.w.people.happened(&e)
	}
}

// down ends the server's side of a connection.
func (h *host) down(l *line, e ending, retryAfter time.Duration) {
	if !l.ended {
		l.ended = true
		h.note(history.Event{Kind: history.Down, Conn: l.number, Class: e.err.Class, Text: e.err.Text, RetryAfter: retryAfter})
	}
	h.w.moved = true
	l.exit(e)
}

// broken is a connection that the network or the server has ended without a word.
func (h *host) broken() *transports.Error {
	return &transports.Error{Class: messages.ClassNetwork, Text: h.label() + " broke the connection"}
}

// label names the server in the errors of its transport.
func (h *host) label() string { return h.server.Name + ".sim:443" }
