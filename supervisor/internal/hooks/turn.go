package hooks

import (
	"sync/atomic"
	"time"
)

// turnWait is how long an actor waits in its turn for a function of the program, which is long on the busiest machine.
const turnWait = time.Second

// A Turn runs one function of the program that gives values to actors, in a goroutine of its own: the actor would be held with a function
// that does not return, and what the actor does for others with it. The zero value is ready to use, by several goroutines.
type Turn struct{ late atomic.Int64 }

// Get returns what f returned. ok is false if f panicked, ended its goroutine or did not return within a second, and at once while an earlier
// f of the turn that was late has not returned. What f returns too late is forgotten.
func Get[T any](t *Turn, f func() T) (v T, ok bool) {
	if t.late.Load() > 0 {
		return v, false
	}
	type result struct {
		value T
		ok    bool
	}
	results := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if recover() != nil {
				r.ok = false
			}
			results <- r // it has room
		}()
		r.value = f()
		r.ok = true
	}()
	timer := time.NewTimer(turnWait)
	defer timer.Stop()
	select {
	case r := <-results:
		return r.value, r.ok
	case <-timer.C:
	}
	t.late.Add(1)
	go func() {
		<-results
		t.late.Add(-1)
	}()
	return v, false
}
