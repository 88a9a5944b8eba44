// Package queue decides whose turn it is where only so many calls may be in flight at once: a pure value without a lock, a
// clock or a goroutine.
//
//	answer, waiter, displaced := q.Enter(key, newValue)   // Go, Wait or Full
//	…
//	next := q.Leave()                                     // one in flight has ended: who goes now, nil if nobody waits
//	waited := q.Drop(waiter)                              // one does not want to wait any more
//
// Callers have keys. Those with the same key are served in the order in which they came; keys take turns, one call each.
//
// Guarantees, which Check tests and the random walks of the tests rely on:
//
//	Q1  Never more are in flight than the limit, unless the limit was lowered while more were.
//	Q2  Nobody waits while there is room.
//	Q3  Never more wait than the bound says, unless the bound was lowered while more did.
//	Q4  Of one key the longest waiting goes first.
//	Q5  Between two turns of a key that goes on waiting, and before its first one, every other key has at most one turn.
//	Q6  Whoever entered is told once: go, full, or that somebody else has been given the place where it waited.
//	Q7  When the places for waiting are taken, a key with many of them gives its newest one to a key that has at least two
//	    less. So a key that waits with a thousand calls keeps no other key from waiting as well.
//
// Not promised: a share of what is in flight. A key alone may fill it, and the next key waits until one of those ends.
package queue
