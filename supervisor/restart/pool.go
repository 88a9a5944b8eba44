package restart

import "time"

// pool has the slots of one kind and all requests that wait for them.
//
// The order of the gate changes while time passes, because waiting raises the class. Nothing has to be moved for that:
// of all requests that were made in one class, the oldest is always the best, so only the four oldest are compared.
// Requests for one origin wait in an originQueue of their own, because a full origin must not hold up the others.
//
// In a stampede all requests have risen to the highest class after a while. A person's request would then be the last
// of a thousand if the class alone counted, and the thousand would never start if a person always came first. So the
// two take turns.
type pool struct {
	limit     int
	width     width // of limit: less while the machine is starved
	perOrigin int   // 0: origins do not count
	slotsHeld int
	// unanswered counts the grants that have neither answered nor closed; at maxUnanswered nothing starts. 0 is no limit.
	unanswered, maxUnanswered int
	installing                int // counted apart from unanswered, and never more than maxUnanswered
	dueRequests               int // requests in all originQueues
	eager                     int // those of them that may displace
	displaced                 int // grants that were displaced and have not ended
	// silent are the grants that gave up their slot and may be displaced, in the order in which they gave it up. It is kept
	// only where maxUnanswered is set, and is never longer than that.
	silent       []*grant
	byOrigin     map[string]*originQueue
	ready        [classes]indexedHeap[*originQueue] // originQueues with a free slot and a request of the class, ordered by that request
	lastWasAsked bool                               // the last grant was a person's request
	starts       uint64                             // numbers the grants
	holds        indexedHeap[*grant]                // the grants that hold a slot, by the time when they lose it
}

// originQueue has the requests that wait for one origin, and the number of slots that it holds.
type originQueue struct {
	origin     string
	slotsHeld  int
	queues     [classes]indexedHeap[*queuedRequest]
	readyIndex [classes]int // the place in the pool's ready heaps, -1 for none
}

// queuedRequest is a request with its place in the order.
type queuedRequest struct {
	Request
	since time.Time // when the waiting begins: at Enqueue or NotBefore, whichever is later
	seq   uint64    // of Enqueue: decides between equal times
	pool  *pool
	// heap is the one that has the request: the gate's future, or that of its originQueue; nil while its server is starting.
	heap   *indexedHeap[*queuedRequest]
	origin *originQueue // set while it waits for a slot
	index  int          // in heap
}

// before reports the order inside a class.
func (w *queuedRequest) before(o *queuedRequest) bool {
	if !w.since.Equal(o.since) {
		return w.since.Before(o.since)
	}
	return w.seq < o.seq
}

// agedClass returns the request's class after waiting until now.
func (w *queuedRequest) agedClass(now time.Time, age time.Duration) Priority {
	risen := now.Sub(w.since) / age
	return Priority(min(time.Duration(w.Priority)+max(risen, 0), time.Duration(Urgent)))
}

// grant is a start that has neither answered nor closed.
type grant struct {
	server    string
	pool      *pool
	origin    *originQueue
	startedAt time.Time
	expires   time.Time // when the slot is lost; Waited moves it
	seq       uint64    // numbers the grants of the pool
	index     int       // in the pool's holds
	// holding says that the grant still has its slot.
	holding bool
	// generation is that of the width when the grant began; easedOnce says that it has widened the gate already.
	generation int
	easedOnce  bool
	// spared grants are never displaced; displaced ones were named by Displace.
	spared, displaced bool
	// installing was reported by Installing; apart says that the grant counts in the pool's installing and not in unanswered.
	installing, apart bool
}

// before reports the order in which slots expire.
func (g *grant) before(o *grant) bool {
	if !g.expires.Equal(o.expires) {
		return g.expires.Before(o.expires)
	}
	return g.seq < o.seq
}

func newRequestHeap() indexedHeap[*queuedRequest] {
	return indexedHeap[*queuedRequest]{less: (*queuedRequest).before, setIndex: func(w *queuedRequest, i int) { w.index = i }}
}

// newPool makes an empty pool; a bound of 0 is none.
func newPool(limit, perOrigin, maxUnanswered int) *pool {
	p := &pool{
		limit: limit, width: newWidth(limit), perOrigin: perOrigin, maxUnanswered: maxUnanswered, byOrigin: map[string]*originQueue{},
		holds: indexedHeap[*grant]{less: (*grant).before, setIndex: func(g *grant, i int) { g.index = i }},
	}
	for c := range p.ready {
		p.ready[c] = indexedHeap[*originQueue]{
			less:     func(a, b *originQueue) bool { return a.queues[c].top().before(b.queues[c].top()) },
			setIndex: func(l *originQueue, i int) { l.readyIndex[c] = i },
		}
	}
	return p
}

// addRequest puts a request into the queue of its origin; all origins are one where they do not count.
func (p *pool) addRequest(w *queuedRequest) {
	origin := ""
	if p.perOrigin > 0 {
		origin = w.Origin
	}
	l := p.byOrigin[origin]
	if l == nil {
		l = &originQueue{origin: origin, readyIndex: [classes]int{-1, -1, -1, -1}}
		for c := range l.queues {
			l.queues[c] = newRequestHeap()
		}
		p.byOrigin[origin] = l
	}
	w.origin, w.heap = l, &l.queues[w.Priority]
	w.heap.push(w)
	p.dueRequests++
	if w.Displaces {
		p.eager++
	}
	p.refreshReady(l, int(w.Priority))
}

// dropRequest takes a request out of the queue of its origin.
func (p *pool) dropRequest(w *queuedRequest) {
	l, c := w.origin, int(w.Priority)
	// The originQueue leaves the ready heap first: that heap compares by the queue's first request, which may be this one.
	if l.readyIndex[c] >= 0 {
		p.ready[c].remove(l.readyIndex[c])
	}
	w.heap.remove(w.index)
	w.origin, w.heap = nil, nil
	p.dueRequests--
	if w.Displaces {
		p.eager--
	}
	p.refreshReady(l, c)
	p.dropIfEmpty(l)
}

// isOriginFull reports whether an origin has all slots that it may have.
func (p *pool) isOriginFull(l *originQueue) bool {
	return p.perOrigin > 0 && l.origin != "" && l.slotsHeld >= p.perOrigin
}

// refreshReady puts an originQueue into the ready heap of a class, moves it there, or takes it out, as its first request and its
// slots require.
func (p *pool) refreshReady(l *originQueue, c int) {
	ready := &p.ready[c]
	switch wanted, at := !l.queues[c].isEmpty() && !p.isOriginFull(l), l.readyIndex[c]; {
	case wanted && at < 0:
		ready.push(l)
	case wanted:
		ready.fix(at)
	case at >= 0:
		ready.remove(at)
	}
}

// dropIfEmpty forgets an originQueue that holds nothing, so that origins which are gone cost no memory.
func (p *pool) dropIfEmpty(l *originQueue) {
	if l.slotsHeld > 0 {
		return
	}
	for c := range l.queues {
		if !l.queues[c].isEmpty() {
			return
		}
	}
	delete(p.byOrigin, l.origin)
}

// nextRequest returns the request that starts next, nil if none can.
func (p *pool) nextRequest(now time.Time, age time.Duration) *queuedRequest {
	if p.slotsHeld >= p.width.now || p.hasTooManySilent() {
		return nil
	}
	var best *queuedRequest
	var class Priority
	// The highest class of its own is left out here: persons and risen requests are compared below.
	for c := range Urgent {
		if p.ready[c].isEmpty() {
			continue
		}
		w := p.ready[c].top().queues[c].top()
		if k := w.agedClass(now, age); best == nil || k > class || k == class && w.before(best) {
			best, class = w, k
		}
	}
	if askedHeap := &p.ready[Urgent]; !askedHeap.isEmpty() && (best == nil || class < Urgent || !p.lastWasAsked) {
		return askedHeap.top().queues[Urgent].top()
	}
	return best
}

// hasTooManySilent reports that too many processes have not answered: then only an answer or an end lets another one start. As time
// passes, more of them may be displaced.
func (p *pool) hasTooManySilent() bool { return p.maxUnanswered > 0 && p.unanswered >= p.maxUnanswered }

// grantRequest takes a slot for a request and removes the request.
func (p *pool) grantRequest(w *queuedRequest, now time.Time, hold time.Duration) *grant {
	l := w.origin
	p.starts++
	g := &grant{
		server: w.Server, pool: p, origin: l, startedAt: now, expires: now.Add(hold), seq: p.starts, holding: true, spared: w.Spared,
		generation: p.width.generation,
	}
	p.slotsHeld++
	p.unanswered++
	p.lastWasAsked = w.Priority == Urgent
	l.slotsHeld++
	p.holds.push(g)
	p.dropRequest(w)
	for c := range l.queues {
		p.refreshReady(l, c) // the origin may be full now
	}
	return g
}

// releaseSlot gives a slot back, if the grant still holds it.
func (p *pool) releaseSlot(g *grant) {
	if !g.holding {
		return
	}
	g.holding = false
	p.holds.remove(g.index)
	p.slotsHeld--
	g.origin.slotsHeld--
	for c := range g.origin.queues {
		p.refreshReady(g.origin, c) // the origin may have been full
	}
	p.dropIfEmpty(g.origin)
}

// expireSlots takes back the slots that were held for long enough; their processes may be displaced from now on.
func (p *pool) expireSlots(now time.Time) {
	for !p.holds.isEmpty() && !p.holds.top().expires.After(now) {
		g := p.holds.top()
		p.releaseSlot(g)
		if p.maxUnanswered > 0 && !g.spared {
			p.silent = append(p.silent, g)
		}
	}
}
