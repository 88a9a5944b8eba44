package serial

import (
	"testing"
	"testing/synctest"
)

// Items that a Queue has run do not count against its bounds, whether they waited alone or with others.
func TestALaneForgetsWhatItHasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Queue{Spawn: func(f func()) bool { go f(); return true }, MaxItems: 10, MaxBytes: 1000}
		l.Open()
		for range 20 {
			done := make(chan struct{})
			l.Put(300, false, func() { <-done })
			synctest.Wait() // it runs, and what follows waits
			l.Put(300, false, func() {})
			l.Put(300, false, func() {})
			close(done)
			synctest.Wait()
		}
		if n := l.DroppedCount(); n != 0 {
			t.Errorf("%d of 60 were dropped, of which no more than two waited at once", n)
		}
	})
}
