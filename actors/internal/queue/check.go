package queue

import "fmt"

// Check returns an error if the queue's own bookkeeping is wrong or Q2 does not hold. It walks over everything: for tests.
func (q *Queue[V]) Check() error {
	if q.waiting > 0 && q.inFlight < q.limits.InFlight {
		return fmt.Errorf("Q2: %d wait while %d of %d are in flight", q.waiting, q.inFlight, q.limits.InFlight)
	}
	// The ring is walked once; every line and every waiter in it must agree with the counters.
	sum, lines := 0, 0
	if q.nextLine != nil {
		for l := q.nextLine; ; l = l.next {
			length := 0
			for w := l.first; w != nil; w = w.next {
				if length++; w.line != l {
					return fmt.Errorf("a waiter of %q is in another line", l.key)
				}
				if w.next == nil && l.last != w {
					return fmt.Errorf("the line of %q ends elsewhere", l.key)
				}
			}
			switch {
			case length == 0 || length != l.length:
				return fmt.Errorf("the line of %q has %d waiters and says %d", l.key, length, l.length)
			case q.lines[l.key] != l:
				return fmt.Errorf("the line of %q is not found", l.key)
			case l.next.prev != l:
				return fmt.Errorf("the ring is broken after %q", l.key)
			}
			sum, lines = sum+length, lines+1
			if l.next == q.nextLine {
				break
			}
		}
	}
	if sum != q.waiting || lines != len(q.lines) {
		return fmt.Errorf("%d wait in %d lines, and the queue says %d in %d", sum, lines, q.waiting, len(q.lines))
	}
	return nil
}
