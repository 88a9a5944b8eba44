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
	held      int
	// unanswered counts what has neither answered nor closed; at maxUnanswered nothing starts. 0 is no limit.
	unanswered, maxUnanswered int
	installing                int // not among unanswered, and never more than maxUnanswered
	due                       int // requests in all lanes
	eager                     int // those of them that may displace
	displaced                 int // grants that were displaced and have not ended
	// silent are the grants that gave up their slot and may be displaced, in the order in which they gave it up. It is kept
	// only where maxUnanswered is, and is never longer than that.
	silent []*grant
	lanes  map[string]*lane
	ready  [classes]pile[*lane] // lanes with a free slot and a request of the class, by that request
	asked  bool                 // the last grant was one that was asked for
	starts uint64               // numbers the grants
	holds  pile[*grant]         // those that hold a slot, by their expiry
}

// lane is what waits for one origin, and how many slots it holds.
type lane struct {
	origin string
	held   int
	queues [classes]pile[*waiting]
	at     [classes]int // where it stands in the pool's ready piles, -1 if it does not
}

// waiting is a request with its place in the order.
type waiting struct {
	Request
	since time.Time // when waiting begins: the Ask or NotBefore, whichever is later
	seq   uint64
	pool  *pool
	pile  *pile[*waiting] // the pile in which it stands: of the future, or of its lane; nil while its server is starting
	lane  *lane           // set while it stands in a lane
	index int
}

// before is the order inside a class.
func (w *waiting) before(o *waiting) bool {
	if !w.since.Equal(o.since) {
		return w.since.Before(o.since)
	}
	return w.seq < o.seq
}

// class is the request's class after waiting until now.
func (w *waiting) class(now time.Time, age time.Duration) Priority {
	risen := now.Sub(w.since) / age
	return Priority(min(time.Duration(w.Priority)+max(risen, 0), time.Duration(Asked)))
}

// grant is a start that has neither answered nor closed.
type grant struct {
	server  string
	pool    *pool
	lane    *lane
	begun   time.Time
	expires time.Time
	seq     uint64 // of the pool's grants
	index   int    // in the pool's holds
	holding bool
	// generation is the width's when it began; told is whether it has had its part in widening.
	generation int
	told       bool
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

func newPile() pile[*waiting] {
	return pile[*waiting]{less: (*waiting).before, moved: func(w *waiting, i int) { w.index = i }}
}

func newPool(limit, perOrigin, maxUnanswered int) *pool {
	p := &pool{
		limit: limit, width: newWidth(limit), perOrigin: perOrigin, maxUnanswered: maxUnanswered, lanes: map[string]*lane{},
		holds: pile[*grant]{less: (*grant).before, moved: func(g *grant, i int) { g.index = i }},
	}
	for c := range p.ready {
		p.ready[c] = pile[*lane]{
			less:  func(a, b *lane) bool { return a.queues[c].top().before(b.queues[c].top()) },
			moved: func(l *lane, i int) { l.at[c] = i },
		}
	}
	return p
}

// add puts a request into the lane of its origin.
func (p *pool) add(w *waiting) {
	origin := ""
	if p.perOrigin > 0 {
		origin = w.Origin
	}
	l := p.lanes[origin]
	if l == nil {
		l = &lane{origin: origin, at: [classes]int{-1, -1, -1, -1}}
		for c := range l.queues {
			l.queues[c] = newPile()
		}
		p.lanes[origin] = l
	}
	w.lane, w.pile = l, &l.queues[w.Priority]
	w.pile.push(w)
	p.due++
	if w.Displaces {
		p.eager++
	}
	p.refresh(l, int(w.Priority))
}

// drop takes a request out of its lane.
func (p *pool) drop(w *waiting) {
	l, c := w.lane, int(w.Priority)
	// The lane leaves the ready pile first: the pile compares by the lane's first request, which may be this one.
	if l.at[c] >= 0 {
		p.ready[c].remove(l.at[c])
	}
	w.pile.remove(w.index)
	w.lane, w.pile = nil, nil
	p.due--
	if w.Displaces {
		p.eager--
	}
	p.refresh(l, c)
	p.tidy(l)
}

func (p *pool) full(l *lane) bool { return p.perOrigin > 0 && l.origin != "" && l.held >= p.perOrigin }

// refresh puts the lane where it belongs in the ready pile of a class.
func (p *pool) refresh(l *lane, c int) {
	ready := &p.ready[c]
	switch wanted, at := !l.queues[c].empty() && !p.full(l), l.at[c]; {
	case wanted && at < 0:
		ready.push(l)
	case wanted:
		ready.fix(at)
	case at >= 0:
		ready.remove(at)
	}
}

// tidy forgets a lane that holds nothing, so that origins which are gone cost nothing.
func (p *pool) tidy(l *lane) {
	if l.held > 0 {
		return
	}
	for c := range l.queues {
		if !l.queues[c].empty() {
			return
		}
	}
	delete(p.lanes, l.origin)
}

// best is the request that starts next, nil if none can.
func (p *pool) best(now time.Time, age time.Duration) *waiting {
	if p.held >= p.width.now || p.stuffed() {
		return nil
	}
	var best *waiting
	var class Priority
	for c := range Asked {
		if p.ready[c].empty() {
			continue
		}
		w := p.ready[c].top().queues[c].top()
		if k := w.class(now, age); best == nil || k > class || k == class && w.before(best) {
			best, class = w, k
		}
	}
	if asked := &p.ready[Asked]; !asked.empty() && (best == nil || class < Asked || !p.asked) {
		return asked.top().queues[Asked].top()
	}
	return best
}

// stuffed reports that too many have not answered: only an answer or an end can help. Time does not, but that more of
// them may be displaced as it passes.
func (p *pool) stuffed() bool { return p.maxUnanswered > 0 && p.unanswered >= p.maxUnanswered }

// start takes a slot for a request that waits in a lane.
func (p *pool) start(w *waiting, now time.Time, hold time.Duration) *grant {
	l := w.lane
	p.starts++
	g := &grant{
		server: w.Server, pool: p, lane: l, begun: now, expires: now.Add(hold), seq: p.starts, holding: true, spared: w.Spared,
		generation: p.width.generation,
	}
	p.held++
	p.unanswered++
	p.asked = w.Priority == Asked
	l.held++
	p.holds.push(g)
	p.drop(w)
	for c := range l.queues {
		p.refresh(l, c) // its origin may be full now
	}
	return g
}

// release gives a slot back, if it is still held.
func (p *pool) release(g *grant) {
	if !g.holding {
		return
	}
	g.holding = false
	p.holds.remove(g.index)
	p.held--
	g.lane.held--
	for c := range g.lane.queues {
		p.refresh(g.lane, c) // its origin may have been full
	}
	p.tidy(g.lane)
}

// expire gives back the slots that were held for long enough.
func (p *pool) expire(now time.Time) {
	for !p.holds.empty() && !p.holds.top().expires.After(now) {
		g := p.holds.top()
		p.release(g)
		if p.maxUnanswered > 0 && !g.spared {
			p.silent = append(p.silent, g)
		}
	}
}
