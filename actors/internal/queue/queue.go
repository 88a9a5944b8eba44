package queue

// Limits are the two bounds of a queue.
type Limits struct {
	// InFlight is how many may be in flight at once, at least 1. Waiting is how many may wait; 0: none.
	InFlight, Waiting int
}

// Queue holds those who wait, with what their owner gave each of them. The zero value lets nobody in: New makes one. It is
// not safe for concurrent use.
type Queue[V any] struct {
	limits   Limits
	inFlight int
	waiting  int
	lines    map[string]*line[V] // of the keys that have somebody waiting
	nextLine *line[V]            // whose turn is next: one of a ring
}

// line is those of one key, the longest waiting first, in the ring of keys that take turns.
type line[V any] struct {
	key         string
	first, last *Waiter[V]
	length      int
	next, prev  *line[V]
}

// Waiter is one who waits.
type Waiter[V any] struct {
	Value V

	line       *line[V] // nil once it does not wait any more
	next, prev *Waiter[V]
}

// New makes an empty queue.
func New[V any](l Limits) *Queue[V] {
	return &Queue[V]{limits: l.clamped(), lines: map[string]*line[V]{}}
}

func (l Limits) clamped() Limits { return Limits{max(l.InFlight, 1), max(l.Waiting, 0)} }

// InFlight is how many are in flight.
func (q *Queue[V]) InFlight() int { return q.inFlight }

// Waiting is how many wait.
func (q *Queue[V]) Waiting() int { return q.waiting }

// Limits are the bounds in force.
func (q *Queue[V]) Limits() Limits { return q.limits }

// Answer is what Enter says.
type Answer uint8

const (
	// Go: there is room, and it is taken. Leave gives it back.
	Go Answer = iota
	// Wait: it waits, and Leave, Limit or Drop tell when that is over.
	Wait
	// Full: too many wait already.
	Full
)

// Enter asks for room. v is only kept, and made, if it has to wait. displaced, if not nil, is a waiter of another key whose
// place it was given: that one is out, as if it had been told Full.
func (q *Queue[V]) Enter(key string, v func() V) (answer Answer, waiter, displaced *Waiter[V]) {
	if q.inFlight < q.limits.InFlight {
		q.inFlight++
		return Go, nil, nil
	}
	if q.waiting >= q.limits.Waiting {
		if displaced = q.displaceableFor(key); displaced == nil {
			return Full, nil, nil
		}
		q.removeWaiter(displaced)
	}
	waiter = &Waiter[V]{Value: v()}
	q.appendWaiter(key, waiter)
	return Wait, waiter, displaced
}

// displaceableFor is the newest waiter of the longest line, if that is longer by two than the line of the key.
func (q *Queue[V]) displaceableFor(key string) *Waiter[V] {
	if q.nextLine == nil {
		return nil
	}
	own := 0
	if l := q.lines[key]; l != nil {
		own = l.length
	}
	if longest := q.longestLine(); longest.length >= own+2 {
		return longest.last
	}
	return nil
}

// longestLine is the line with the most waiting, of several the one whose turn is soonest. There is one.
func (q *Queue[V]) longestLine() *line[V] {
	longest := q.nextLine
	for l := q.nextLine.next; l != q.nextLine; l = l.next {
		if l.length > longest.length {
			longest = l
		}
	}
	return longest
}

// Leave says that one in flight has ended. next is who goes in its place, nil if nobody waits or if there are still as
// many in flight as there may be.
func (q *Queue[V]) Leave() (next *Waiter[V]) {
	if q.inFlight > 0 {
		q.inFlight--
	}
	return q.admitNext()
}

// Drop takes back a wait. It reports false for one that does not wait any more: it was told to go, and must Leave, or it was
// displaced.
func (q *Queue[V]) Drop(w *Waiter[V]) bool {
	if w.line == nil {
		return false
	}
	q.removeWaiter(w)
	return true
}

// SetLimits changes the bounds. admitted are those who go now, in their order; displaced those for whom there is no place any
// more, the newest of the longest lines.
func (q *Queue[V]) SetLimits(l Limits) (admitted, displaced []*Waiter[V]) {
	q.limits = l.clamped()
	for w := q.admitNext(); w != nil; w = q.admitNext() {
		admitted = append(admitted, w)
	}
	for q.waiting > q.limits.Waiting {
		w := q.longestLine().last
		displaced = append(displaced, w)
		q.removeWaiter(w)
	}
	return admitted, displaced
}

// admitNext gives room to whose turn it is, if there is room.
func (q *Queue[V]) admitNext() *Waiter[V] {
	if q.nextLine == nil || q.inFlight >= q.limits.InFlight {
		return nil
	}
	l := q.nextLine
	q.nextLine = l.next // before the line may go
	w := l.first
	q.removeWaiter(w)
	q.inFlight++
	return w
}

func (q *Queue[V]) appendWaiter(key string, w *Waiter[V]) {
	l := q.lines[key]
	if l == nil {
		l = &line[V]{key: key}
		q.lines[key] = l
		q.joinRing(l)
	}
	w.line, w.prev = l, l.last
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
	l.length++
	q.waiting++
}

// joinRing puts a line at the end of the ring: every other key has its turn before.
func (q *Queue[V]) joinRing(l *line[V]) {
	if q.nextLine == nil {
		l.next, l.prev, q.nextLine = l, l, l
		return
	}
	l.next, l.prev = q.nextLine, q.nextLine.prev
	l.prev.next, l.next.prev = l, l
}

func (q *Queue[V]) removeWaiter(w *Waiter[V]) {
	l := w.line
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.line, w.next, w.prev = nil, nil, nil
	l.length--
	q.waiting--
	if l.length > 0 {
		return
	}
	delete(q.lines, l.key)
	if l.next == l {
		q.nextLine = nil
		return
	}
	if q.nextLine == l {
		q.nextLine = l.next
	}
	l.prev.next, l.next.prev = l.next, l.prev
}
