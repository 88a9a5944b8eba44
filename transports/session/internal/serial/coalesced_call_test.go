package serial

import (
	"testing"
	"testing/synctest"
)

// Events that come before the call are one call with it, and one that comes during the call is another call: it was lost once the flag was
// cleared only after the call.
func TestACoalescedCallLosesNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Queue{Spawn: func(f func()) bool { go f(); return true }, MaxItems: 10, MaxBytes: 1000}
		l.Open()
		var n CoalescedCall
		var calls int
		during := make(chan struct{})
		call := func() {
			calls++
			<-during
		}
		n.Schedule(&l, call)
		synctest.Wait() // the call has begun
		n.Schedule(&l, call)
		n.Schedule(&l, call)
		close(during)
		synctest.Wait()
		if calls != 2 {
			t.Errorf("it was called %d times, want 2: for the first event, and for those that came during the call", calls)
		}
	})
}
