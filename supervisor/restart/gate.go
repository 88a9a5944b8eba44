package restart

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Gate is the start gate. It is not safe for concurrent use: one owner calls it, with times that do not go back.
//
// A start goes through Ask, then Next grants it, then Answered or Closed ends it. Each operation costs O(log n) in the
// number of waiting requests.
type Gate struct {
	limits    Limits
	now       time.Time // the latest time that was passed in
	seq       uint64
	granted   uint64
	processes *pool
	network   *pool
	inProcess *pool
	future    indexedHeap[*queuedRequest] // requests whose NotBefore has not come
	waiting   map[string]*queuedRequest   // by server: in future, in a lane, or in neither while an earlier grant is open
	open      map[string]*grant           // by server: neither answered nor closed
}

// NewGate makes an empty gate. A field of l below 1 counts as its default.
func NewGate(l Limits) *Gate {
	l = l.withDefaults()
	return &Gate{
		limits:    l,
		processes: newPool(l.Processes, 0, l.Processes*l.UnansweredFactor),
		network:   newPool(l.Network, l.PerOrigin, 0),
		inProcess: newPool(l.InProcess, 0, 0),
		future:    newRequestHeap(),
		waiting:   map[string]*queuedRequest{},
		open:      map[string]*grant{},
	}
}

// Enqueue lets a server wait for its start. It replaces an older request of the same server; a request that has begun to
// wait keeps its place in the order if the new one may begin as well, so that asking twice costs nothing.
//
// While an earlier grant of the server has neither answered nor closed, the request waits for that.
func (g *Gate) Enqueue(now time.Time, r Request) {
	now = g.advanceClock(now)
	r.Priority = min(r.Priority, Urgent)
	g.seq++
	w := &queuedRequest{Request: r, since: now, seq: g.seq, pool: g.poolFor(r.Kind), index: -1}
	if r.NotBefore.After(now) {
		w.since = r.NotBefore
	} else if old := g.waiting[r.Server]; old != nil && !old.since.After(now) {
		w.since, w.seq = old.since, old.seq
	}
	g.Cancel(r.Server)
	g.waiting[r.Server] = w
	g.placeRequest(w)
}

// placeRequest lets a request wait where it belongs now.
func (g *Gate) placeRequest(w *queuedRequest) {
	switch {
	case g.open[w.Server] != nil:
		w.heap = nil
	case w.since.After(g.now):
		w.heap = &g.future
		g.future.push(w)
	default:
		w.pool.addRequest(w)
	}
}

// Cancel takes back the request of a server that waits. It does nothing for a server that does not.
func (g *Gate) Cancel(server string) {
	w := g.waiting[server]
	if w == nil {
		return
	}
	delete(g.waiting, server)
	switch {
	case w.origin != nil:
		w.pool.dropRequest(w)
	case w.heap != nil:
		w.heap.remove(w.index)
	}
}

// Answered says that a server that was granted has answered the handshake: its slot is free. It does nothing for a
// server that was not granted or has answered before.
func (g *Gate) Answered(now time.Time, server string) {
	now = g.advanceClock(now)
	if o := g.open[server]; o != nil && now.Sub(o.startedAt) <= g.limits.Hold {
		o.widenOnce()
	}
	g.endGrant(now, server)
}

// Closed says that everything that a grant has started is gone: its slot is free, and a process counts as unanswered no
// more. It belongs behind every grant; behind one that has answered it does nothing.
//
// An attempt that failed is told by Closed, not by Answered: until then its process may still be there.
func (g *Gate) Closed(now time.Time, server string) { g.endGrant(now, server) }

func (g *Gate) endGrant(now time.Time, server string) {
	g.advanceClock(now)
	open := g.open[server]
	if open == nil {
		return
	}
	delete(g.open, server)
	open.pool.endGrant(open)
	if w := g.waiting[server]; w != nil {
		g.placeRequest(w)
	}
}

// Next returns every server that may start now, in order, and takes their slots. Call it again at wake, and after every
// other call, and Displace behind it. wake is when time alone can change something, for Next or for Displace; zero if it
// cannot. It is later than now.
func (g *Gate) Next(now time.Time) (granted []string, wake time.Time) {
	now = g.advanceClock(now)
	for !g.future.isEmpty() && !g.future.top().since.After(now) {
		w := g.future.top()
		g.future.remove(0)
		w.heap = nil
		g.placeRequest(w)
	}
	if !g.future.isEmpty() {
		wake = g.future.top().since
	}
	for _, p := range []*pool{g.processes, g.network, g.inProcess} {
		p.expireSlots(now)
		for w := p.nextRequest(now, g.limits.Age); w != nil; w = p.nextRequest(now, g.limits.Age) {
			delete(g.waiting, w.Server)
			g.open[w.Server] = p.grantRequest(w, now, g.limits.Hold)
			g.granted++
			granted = append(granted, w.Server)
		}
		if p.holds.isEmpty() || p.dueRequests == 0 || p.hasTooManySilent() && p.eager <= p.displaced {
			continue
		}
		if expires := p.holds.top().expires; wake.IsZero() || expires.Before(wake) {
			wake = expires
		}
	}
	return granted, wake
}

// advanceClock moves the gate's time forward, and never back.
func (g *Gate) advanceClock(now time.Time) time.Time {
	if now.After(g.now) {
		g.now = now
	}
	return g.now
}

func (g *Gate) poolFor(kind messages.TransportKind) *pool {
	switch kind {
	case messages.Stdio:
		return g.processes
	case messages.SDK:
		return g.inProcess
	case messages.HTTP, messages.SSE, messages.WebSocket, messages.ClaudeAIProxy:
		return g.network
	}
	return g.network
}
