package session

import (
	"testing"
	"testing/synctest"
)

// Items that a serialQueue has run do not count against its bounds, whether they waited alone or with others.
func TestALaneForgetsWhatItHasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serialQueue{spawn: func(f func()) bool { go f(); return true }, maxItems: 10, maxBytes: 1000}
		l.open()
		for range 20 {
			done := make(chan struct{})
			l.put(300, false, func() { <-done })
			synctest.Wait() // it runs, and what follows waits
			l.put(300, false, func() {})
			l.put(300, false, func() {})
			close(done)
			synctest.Wait()
		}
		if n := l.droppedCount(); n != 0 {
			t.Errorf("%d of 60 were dropped, of which no more than two waited at once", n)
		}
	})
}
