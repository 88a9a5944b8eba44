// Package serial lets one thing happen after the other: a [Queue] runs functions in order on one goroutine that exists only
// while there is something to run, a [CoalescedCall] makes one function of several events, and a [Mutex] lets callers take turns
// whose wait ends with their context.
//
//	queue := serial.Queue{Spawn: spawn, MaxItems: 256, MaxBytes: 1 << 20}
//	queue.Open()
//	queue.Put(len(params), false, func() { … })
//
// A Queue is bounded: an item that does not fit, or finds no memory in the queue's account, is dropped and counted, so that Put
// never blocks. The owner gives Spawn, and with it answers for the goroutine and its panics. Package session has one Queue for
// what it writes unasked and one for the callbacks of its owner.
//
// Locks: the mutex of a Queue is taken after a [Mutex] and before Session.mu; Spawn is called while it is held, so that Spawn must
// not put anything into the queue. An item runs without any lock.
//
// Not promised: that an item runs. After the session has ended Spawn refuses, and what is queued is forgotten; an item that panics
// ends the session.
package serial
