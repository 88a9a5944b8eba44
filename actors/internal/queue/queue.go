package queue

// Limits are the two bounds of a queue; values below the least count as the least.
type Limits struct {
	// InFlight bounds the calls that run at once, at least 1. Waiting bounds those that wait; 0: none.
	InFlight, Waiting int
}

// Queue holds the waiting calls, with a value of its owner for each. The zero value admits no call: New makes a usable one. It is
// not safe for concurrent use.
type Queue[V any] struct {
	// inFlight and waiting count all keys.
	limits   Limits
	inFlight int
	waiting  int
	lines    map[string]*line[V] // by key; only keys with a waiting call
	nextLine *line[V]            // the line whose turn is next, in a ring; nil if no call waits
}

// line has the waiting calls of one key, the oldest first. The lines form a ring in the order of their turns.
type line[V any] struct {
	key         string
	first, last *Waiter[V]
	length      int
	next, prev  *line[V]
}

// Waiter is one waiting call. Value is its owner's.
type Waiter[V any] struct {
	Value V

	line       *line[V] // nil once it was admitted, dropped or displaced
	next, prev *Waiter[V]
}

// New makes an empty queue.
func New[V any](l Limits) *Queue[V] {
	return &Queue[V]{limits: l.clamped(), lines: map[string]*line[V]{}}
}

// clamped raises limits to the least that the queue works with.
func (l Limits) clamped() Limits { return Limits{max(l.InFlight, 1), max(l.Waiting, 0)} }

// InFlight returns how many calls run.
func (q *Queue[V]) InFlight() int { return q.inFlight }

// Waiting returns how many calls wait.
func (q *Queue[V]) Waiting() int { return q.waiting }

// Limits returns the bounds in force.
func (q *Queue[V]) Limits() Limits { return q.limits }

// Answer is the outcome of Enter.
type Answer uint8

const (
	// Go: there was room, and the call has it. Leave gives it back.
	Go Answer = iota
	// Wait: the call waits, until Leave or SetLimits returns its Waiter, or Enter displaces it.
	Wait
	// Full: too many calls wait already.
	Full
)

// Enter asks for room. v is called, and its value kept, only if the call has to wait. displaced, if not nil, is a waiter of another
// key whose place the call took: the owner must end that one as if it had been answered Full.
func (q *Queue[V]) Enter(key string, v func() V) (answer Answer, waiter, displaced *Waiter[V]) {
	if q.inFlight < q.limits.InFlight {
		q.inFlight++
		return Go, nil, nil
	}
	// No place: a key with many waiters may have to give one up.
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

// displaceableFor returns the newest waiter of the longest line, if that is longer by two than the line of the key: with a
// difference of one, two keys would displace each other in turn.
func (q *Queue[V]) displaceableFor(key string) *Waiter[V] {
	if q.nextLine == nil {
		return nil
	}
	// A key without waiters has a line of length zero.
	own := 0
	if l := q.lines[key]; l != nil {
		own = l.length
	}
	if longest := q.longestLine(); longest.length >= own+2 {
		return longest.last
	}
	return nil
}

// longestLine returns the line with the most waiters, of several the one whose turn comes first. At least one must exist.
func (q *Queue[V]) longestLine() *line[V] {
	longest := q.nextLine
	for l := q.nextLine.next; l != q.nextLine; l = l.next {
		if l.length > longest.length {
			longest = l
		}
	}
	return longest
}

// Leave records that a running call has ended. next is the waiter to admit in its place; nil if none waits, or if after a lowered
// limit still too many run.
func (q *Queue[V]) Leave() (next *Waiter[V]) {
	if q.inFlight > 0 {
		q.inFlight--
	}
	return q.admitNext()
}

// Drop takes back a wait. It reports false for a waiter that no longer waits: it was admitted, and its owner must call Leave, or it
// was displaced.
func (q *Queue[V]) Drop(w *Waiter[V]) bool {
	if w.line == nil {
		return false
	}
	q.removeWaiter(w)
	return true
}

// SetLimits changes the bounds. admitted are the waiters that now have room, in order; displaced those that lose their place, the
// newest of the longest lines.
func (q *Queue[V]) SetLimits(l Limits) (admitted, displaced []*Waiter[V]) {
	// First those who now have room, then those who no longer have a place.
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

// admitNext admits the waiter whose turn it is, if there is room; nil otherwise.
func (q *Queue[V]) admitNext() *Waiter[V] {
	if q.nextLine == nil || q.inFlight >= q.limits.InFlight {
		return nil
	}
	l := q.nextLine
	// The turn passes on before removeWaiter may take the line out of the ring.
	q.nextLine = l.next
	w := l.first
	q.removeWaiter(w)
	q.inFlight++
	return w
}

// appendWaiter puts a waiter at the end of its key's line, and a new line at the end of the ring.
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

// joinRing puts a line at the end of the ring: every other key has a turn before it.
func (q *Queue[V]) joinRing(l *line[V]) {
	if q.nextLine == nil {
		l.next, l.prev, q.nextLine = l, l, l
		return
	}
	l.next, l.prev = q.nextLine, q.nextLine.prev
	l.prev.next, l.next.prev = l, l
}

// removeWaiter takes a waiter out of its line, wherever it stands, and an empty line out of the ring. It costs no search, because
// both are linked lists.
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
	// An empty line is forgotten, so that keys which never return cost nothing.
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
