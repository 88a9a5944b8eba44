// Package queue decides which call may run next where only so many may run at once: a pure value without a lock, a clock or a
// goroutine. Package actors puts one, with a lock around it, before the gate of each server that has a bound.
//
//	answer, waiter, displaced := q.Enter(key, newValue)   // Go, Wait or Full; newValue makes what a waiter carries
//	…
//	next := q.Leave()                                     // a running call has ended: the one to admit, or nil
//	waited := q.Drop(waiter)                              // a waiting call gives up
//
// Callers have keys. Calls with the same key are admitted in the order in which they came; keys take turns, one call each.
//
// Guarantees, which Check tests and the random walks of the tests rely on:
//
//	Q1  Never more calls run than the limit, unless the limit was lowered while more did.
//	Q2  No call waits while there is room.
//	Q3  Never more calls wait than the bound, unless the bound was lowered while more did.
//	Q4  Of one key the call that has waited longest is admitted first.
//	Q5  Between two turns of a key that keeps waiting, and before its first one, every other key has at most one turn.
//	Q6  Every call that waits is answered once: admitted, or displaced by a call of another key.
//	Q7  When all places for waiting are taken, a key with many of them gives up its newest one to a key that has at least two
//	    fewer. So a key that waits with a thousand calls keeps no other key from waiting as well.
//
// Not promised: a share of the running calls. One key alone may take all slots, and the next key waits until a call ends.
package queue
