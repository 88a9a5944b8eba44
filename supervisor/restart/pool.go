package restart

import "time"

// pool is one of the three kinds of slots with everything that waits for it.
//
// The order of the gate changes while time passes, because waiting raises the class. Nothing has to be moved for that:
// of all requests that were made in one class, the oldest is always the best, so only the four oldest are compared.
// What waits for one origin stands in a lane of its own, because a full origin must not hold up the others.
//
// In a stampede everything has risen to the highest class after a while. What a person asks for then would be the last
// of a thousand if the class alone counted, and the thousand would never start if a person always came first. So the
// two take turns.
type pool struct {
	limit     int
	width     width // of limit
	perOrigin int   // 0: origins do not count
	slotsHeld int
	// unanswered counts what has neither answered nor closed; at maxUnanswered nothing starts. 0 is no limit.
	unanswered, maxUnanswered int
	installing                int // not among unanswered, and never more than maxUnanswered
	dueRequests               int // requests in all lanes
	eager                     int // those of them that may displace
	displaced                 int // grants that were displaced and have not ended
	// silent are the grants that gave up their slot and may be displaced, in the order in which they gave it up. It is kept
	// only where maxUnanswered is, and is never longer than that.
	silent       []*grant
	byOrigin     map[string]*originQueue
	ready        [classes]indexedHeap[*originQueue] // lanes with a free slot and a request of the class, by that request
	lastWasAsked bool                               // the last grant was one that was asked for
	starts       uint64                             // numbers the grants
	holds        indexedHeap[*grant]                // those that hold a slot, by their expiry
}

// originQueue is what waits for one origin, and how many slots it holds.
type originQueue struct {
	origin     string
	slotsHeld  int
	queues     [classes]indexedHeap[*queuedRequest]
	readyIndex [classes]int // where it stands in the pool's ready piles, -1 if it does not
}

// queuedRequest is a request with its place in the order.
type queuedRequest struct {
	Request
	since  time.Time // when waiting begins: the Ask or NotBefore, whichever is later
	seq    uint64
	pool   *pool
	heap   *indexedHeap[*queuedRequest] // the pile in which it stands: of the future, or of its lane; nil while its server is starting
	origin *originQueue                 // set while it stands in a lane
	index  int
}

// before is the order inside a class.
func (w *queuedRequest) before(o *queuedRequest) bool {
	if !w.since.Equal(o.since) {
		return w.since.Before(o.since)
	}
	return w.seq < o.seq
}

// agedClass is the request's class after waiting until now.
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
	expires   time.Time
	seq       uint64 // of the pool's grants
	index     int    // in the pool's holds
	holding   bool
	// generation is the width's when it began; told is whether it has had its part in widening.
	generation int
	easedOnce  bool
	// spared is never displaced; displaced was.
	spared, displaced bool
	// installing was told to be; apart is counted in the pool's installing instead of unanswered.
	installing, apart bool
}

// before is the order in which slots expire.
func (g *grant) before(o *grant) bool {
	if !g.expires.Equal(o.expires) {
		return g.expires.Before(o.expires)
	}
	return g.seq < o.seq
}

func newRequestHeap() indexedHeap[*queuedRequest] {
	return indexedHeap[*queuedRequest]{less: (*queuedRequest).before, setIndex: func(w *queuedRequest, i int) { w.index = i }}
}

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

// addRequest puts a request into the lane of its origin.
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

// dropRequest takes a request out of its lane.
func (p *pool) dropRequest(w *queuedRequest) {
	l, c := w.origin, int(w.Priority)
	// The lane leaves the ready pile first: the pile compares by the lane's first request, which may be this one.
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

func (p *pool) isOriginFull(l *originQueue) bool {
	return p.perOrigin > 0 && l.origin != "" && l.slotsHeld >= p.perOrigin
}

// refreshReady puts the lane where it belongs in the ready pile of a class.
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

// dropIfEmpty forgets a lane that holds nothing, so that origins which are gone cost nothing.
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

// nextRequest is the request that starts next, nil if none can.
func (p *pool) nextRequest(now time.Time, age time.Duration) *queuedRequest {
	if p.slotsHeld >= p.width.now || p.hasTooManySilent() {
		return nil
	}
	var best *queuedRequest
	var class Priority
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

// hasTooManySilent reports that too many have not answered: only an answer or an end can help. Time does not, but that more of
// them may be displaced as it passes.
func (p *pool) hasTooManySilent() bool { return p.maxUnanswered > 0 && p.unanswered >= p.maxUnanswered }

// grantRequest takes a slot for a request that waits in a lane.
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
		p.refreshReady(l, c) // its origin may be full now
	}
	return g
}

// releaseSlot gives a slot back, if it is still held.
func (p *pool) releaseSlot(g *grant) {
	if !g.holding {
		return
	}
	g.holding = false
	p.holds.remove(g.index)
	p.slotsHeld--
	g.origin.slotsHeld--
	for c := range g.origin.queues {
		p.refreshReady(g.origin, c) // its origin may have been full
	}
	p.dropIfEmpty(g.origin)
}

// expireSlots gives back the slots that were held for long enough.
func (p *pool) expireSlots(now time.Time) {
	for !p.holds.isEmpty() && !p.holds.top().expires.After(now) {
		g := p.holds.top()
		p.releaseSlot(g)
		if p.maxUnanswered > 0 && !g.spared {
			p.silent = append(p.silent, g)
		}
	}
}
