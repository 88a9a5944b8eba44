package restart

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Gate is the start gate. It is not safe for concurrent use: one owner calls it, with times that do not go back.
//
// A start is queued by Enqueue, granted by Next, and ended by Answered or Closed. Each operation costs O(log n) in the
// number of waiting requests.
type Gate struct {
	limits Limits
	now    time.Time // the latest time that was passed in
	// seq numbers the requests, granted counts the grants.
	seq       uint64
	granted   uint64
	processes *pool
	network   *pool
	inProcess *pool
	future    indexedHeap[*queuedRequest] // requests whose NotBefore has not come yet
	waiting   map[string]*queuedRequest   // by server: in future, in an originQueue, or in neither while an earlier grant is open
	open      map[string]*grant           // by server: granted, and neither answered nor closed
}

// NewGate makes an empty gate. A field of l below 1 counts as its default. Only processes have a bound of unanswered starts.
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
// wait keeps its place in the order if the new one may begin as well, so that a second request costs no place.
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

// placeRequest puts a request where it waits now: nowhere while its server is starting, else for its time, else for a slot.
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

// Answered records that a granted server has answered the handshake: its slot is free. It does nothing for a
// server that was not granted or has answered before. An answer within Hold widens a narrowed gate.
func (g *Gate) Answered(now time.Time, server string) {
	now = g.advanceClock(now)
	if o := g.open[server]; o != nil && now.Sub(o.startedAt) <= g.limits.Hold {
		o.widenOnce()
	}
	g.endGrant(now, server)
}

// Closed records that everything that a grant has started is gone: its slot is free, and a process no longer counts as unanswered.
// The owner must call it after every grant; after an answer it does nothing.
//
// The owner reports an attempt that failed by Closed, not by Answered: until then its process may still run.
func (g *Gate) Closed(now time.Time, server string) { g.endGrant(now, server) }

// endGrant frees what a grant holds, and lets a request of the same server that waited for it take its place in the order.
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
// other call, and Displace after it. wake is the next time at which Next or Displace may have something to return although nothing
// else happens; zero if there is none. It is later than now.
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
		// No slot will expire that helps: nothing waits, or the silent processes are too many and none may be displaced.
		if p.holds.isEmpty() || p.dueRequests == 0 || p.hasTooManySilent() && p.eager <= p.displaced {
			continue
		}
		if expires := p.holds.top().expires; wake.IsZero() || expires.Before(wake) {
			wake = expires
		}
	}
	return granted, wake
}

// advanceClock moves the gate's time forward, and never back: a clock that was set back must not delay all starts.
func (g *Gate) advanceClock(now time.Time) time.Time {
	if now.After(g.now) {
		g.now = now
	}
	return g.now
}

// poolFor returns the pool whose slots a kind of server takes. A program's own kind counts as network.
func (g *Gate) poolFor(kind messages.TransportKind) *pool {
	switch kind {
	case messages.Stdio:
		return g.processes
	case messages.SDK:
		return g.inProcess
	default:
		return g.network
	}
}
