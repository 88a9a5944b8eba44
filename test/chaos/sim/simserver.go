package sim

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// simServer is one server of the plan: its machine, and its connections by number. Only the loop uses it, except for the
// methods of remoteEnd, which only fill the inbox.
type simServer struct {
	w       *simulation
	server  scenario.Server
	machine peer.Machine
	// spec is the spec that the owner last gave for the server.
	spec messages.Spec
	// rng draws the additions to times, see nextJitter.
	rng *rand.Rand
	// webRandom draws for the pauses of the program's own HTTP client.
	webRandom lockedRandom

	// canary is the secret in the server's spec, which must come out nowhere.
	canary string
	token  bearerToken

	// conns holds the open connections, dialCount the number of the last one.
	conns     map[int]*simConn
	dialCount int
	// record, if not nil, gets what the server saw in the place of the history.
	record func(history.Event)
	// revision counts the respec commands.
	revision int
	// removed is set while the owner has removed the server.
	removed bool
	// commandCount counts the owner's commands for the server that went by message; requestSettled compares it to see whether a
	// later command has overtaken its own. Goroutines of users read it.
	commandCount atomic.Int64
}

// simConn is one connection from the server's side.
type simConn struct {
	conn
	number int
	// accepted and refused say how the opening ended. ended is set when the server's side has ended, nothingLeft when the
	// client has released the connection too.
	accepted, refused, ended, nothingLeft bool
	// abandoned is set when the client gave up before the opening was answered.
	abandoned    bool
	requestCount int
	// openRequests are the unanswered requests by JSON-RPC id.
	openRequests map[string]request
	// requestIDs are the ids that the record has of all requests, by JSON-RPC id.
	requestIDs map[string]string
}

// request is a request that the server received. Its id in the history counts the requests of the connection: if two callers
// wake in one instant, chance decides which of them gets the lower JSON-RPC id.
// task is the task that it is about, or that it became by its answer.
type request struct {
	method, call, id, task string
	// expires is the end of the time to live of the task that it has become.
	expires time.Duration
}

// newSimServer makes a server without connections. Its jitter has a source of its own, so that one server's draws do not shift
// another's.
func newSimServer(w *simulation, s scenario.Server, machine peer.Machine, canary string) *simServer {
	return &simServer{
		w: w, server: s, machine: machine, spec: specOf(s, canary), canary: canary, token: bearerToken{server: s.Name}, conns: map[int]*simConn{},
		rng:       rand.New(rand.NewPCG(w.plan.Seed, seedOf("jitter", s.Name))),
		webRandom: lockedRandom{rng: rand.New(rand.NewPCG(w.plan.Seed, seedOf("web", s.Name)))},
	}
}

// seedOf hashes words into a seed, so that each use of randomness has a source of its own and a new one does not shift the
// others.
func seedOf(words ...string) uint64 {
	h := fnv.New64a()
	for _, word := range words {
		// Write of a hash never fails.
		_, _ = h.Write(append([]byte(word), 0))
	}
	return h.Sum64()
}

// These methods implement remoteEnd. The manager's goroutines call them, so they only add to the inbox.
func (h *simServer) onDialed(c conn) { h.w.inbox.addItem(item{host: h, conn: c, kind: itemDialed}) }
func (h *simServer) onSent(c conn, x *exchange) {
	h.w.inbox.addItem(item{host: h, conn: c, kind: itemSent, x: x})
}
func (h *simServer) onStreamWanted(c conn, x *exchange) {
	h.w.inbox.addItem(item{host: h, conn: c, kind: itemStreamWanted, x: x})
}
func (h *simServer) onAbandoned(c conn, x *exchange) {
	h.w.inbox.addItem(item{host: h, conn: c, kind: itemAbandoned, x: x})
}
func (h *simServer) onReleased(c conn) { h.w.inbox.addItem(item{host: h, conn: c, kind: itemReleased}) }
func (h *simServer) onMeasured(c conn, used procinfo.Usage) {
	h.w.inbox.addItem(item{host: h, conn: c, kind: itemMeasured, used: used})
}

// onClosing adds the end of input, or with kill the SIGTERM that follows it.
func (h *simServer) onClosing(c conn, kill bool) {
	if kill {
		h.w.inbox.addItem(item{host: h, conn: c, kind: itemTerminating})
	} else {
		h.w.inbox.addItem(item{host: h, conn: c, kind: itemClosing})
	}
}

// nextJitter draws an addition of 1 to 999 ns, which keeps two servers from acting in the same nanosecond.
func (h *simServer) nextJitter() time.Duration { return time.Duration(1 + h.rng.IntN(999)) }

// handleItem handles an item of the inbox: it numbers a new connection, or passes the item on to its connection, if that is
// still open.
func (h *simServer) handleItem(it item) {
	base := it.conn.base()
	if it.kind == itemDialed {
		h.dialCount++
		base.number = h.dialCount
		h.conns[base.number] = &simConn{conn: it.conn, number: base.number, openRequests: map[string]request{}, requestIDs: map[string]string{}}
		h.recordEvent(history.Event{Kind: history.Open, Conn: base.number})
		h.performActions(h.machine.Open(h.w.currentTime(), base.number))
		return
	}
	l := h.conns[base.number]
	if l == nil {
		return
	}
	if own, ok := ownWebOf(l); ok {
		h.judgeStreams(l, own)
	}
	switch it.kind {
	case itemSent:
		h.receiveMessage(l, it.x)
	case itemAbandoned:
		h.abandonExchange(l, it.x)
	case itemClosing, itemTerminating:
		h.closeConn(l, it.kind == itemTerminating)
	case itemMeasured:
		h.recordEvent(history.Event{Kind: history.Measured, Conn: l.number, Ran: it.used.CPU, Waited: it.used.CPUWait})
	case itemReleased:
		h.releaseConn(l)
	case itemStreamWanted:
		h.openStream(l, it.x)
	case itemDialed:
	}
}

// receiveMessage records a message and gives it to the machine. Over HTTP the exchange of a notification ends here, unless the
// machine has just refused it.
func (h *simServer) receiveMessage(l *simConn, x *exchange) {
	r := request{method: x.method, call: x.call}
	if x.isAboutTask() {
		r.task = taskOf(x.body)
	}
	if x.id != "" {
		l.requestCount++
		r.id = strconv.Itoa(l.requestCount)
		l.openRequests[x.id], l.requestIDs[x.id] = r, r.id
	}
	e := history.Event{Kind: history.Received, Conn: l.number, Method: x.method, ID: r.id, Call: r.call, Task: r.task,
		Cursor: x.method == "tools/list" && bytes.Contains(x.body, []byte(`"cursor":`))}
	if x.method == "resources/subscribe" || x.method == "resources/unsubscribe" {
		e.About = uriOf(x.body)
	}
	if x.method == "logging/setLevel" {
		e.Level = levelOf(x.body)
	}
	if x.method == "notifications/cancelled" {
		e.About = l.requestIDs[cancelledOf(x.body)]
	}
	if h.record != nil {
		if e.By = x.caller; x.method == "" {
			e.Text = string(x.body)
		}
	}
	h.recordEvent(e)
	h.performActions(h.machine.Receive(h.w.currentTime(), l.number, x.body, x.header))
	l.markTaken(x)
	h.w.needsWait = true
}

// abandonExchange tells the machine that the client gave up the opening (x is nil, or nothing was opened yet) or a request.
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

// forgetConn drops a connection that was never opened. A refused one has a Refused event already; one that its client abandoned
// gets a Released event.
func (h *simServer) forgetConn(l *simConn) {
	if !l.refused {
		h.recordEvent(history.Event{Kind: history.Released, Conn: l.number})
	}
	l.nothingLeft, l.refused = true, true
	delete(h.conns, l.number)
}

// closeConn tells the machine that the client closes its side, or that the process gets SIGTERM.
func (h *simServer) closeConn(l *simConn, signal bool) {
	switch {
	// Over HTTP the client may close before its first message was answered.
	case !l.accepted && !l.refused:
		h.performActions(h.machine.Abandoned(h.w.currentTime(), l.number, ""))
		l.refused, l.abandoned = true, true
	case !l.ended && !l.refused:
		h.performActions(h.machine.Closed(h.w.currentTime(), l.number, signal))
	}
}

// releaseConn handles the release of a connection by the client: nothing is left of it. The machine forgets it, if it has not
// ended it itself.
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

// recordEvent records what the server saw. That a call has come may be when its caller gives it up.
func (h *simServer) recordEvent(e history.Event) {
	e.Server, e.Side = h.server.Name, history.World
	if h.record != nil {
		h.record(e)
		return
	}
	h.w.recordEvent(e)
	if e.Call != "" && e.Kind == history.Received {
		h.w.users.leaverAt(e.Call, load.WhenReceived)()
	}
}

// endServerSide ends the server's side of a connection and records that once.
func (h *simServer) endServerSide(l *simConn, e ending, retryAfter time.Duration) {
	if !l.ended {
		l.ended = true
		h.recordEvent(history.Event{Kind: history.Down, Conn: l.number, Class: e.err.Class, Text: e.err.Text, RetryAfter: retryAfter})
	}
	// The manager's goroutines may react to the end; the loop waits for them before it does the next thing.
	h.w.needsWait = true
	l.endRemote(e)
}

// brokenError is the error of a connection that the network or the server has ended without an answer.
func (h *simServer) brokenError() *transports.Error {
	return &transports.Error{Class: messages.ClassNetwork, Text: h.serverLabel() + " broke the connection"}
}

// serverLabel returns the server's name and port as its transport's errors show it.
func (h *simServer) serverLabel() string { return h.server.Name + ".sim:443" }
