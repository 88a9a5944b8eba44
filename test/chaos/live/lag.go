package live

import (
	"sync/atomic"
	"time"
)

// lag measures how busy the machine is: by how much somebody who only wants to sleep for a moment is late. What the record
// says of times is no more exact than that, for the manager and for the servers alike, and the invariants allow for it.
type lag struct {
	most  atomic.Int64
	stop  chan struct{}
	ended chan struct{}
}

// nap is how long it sleeps each time.
const nap = 5 * time.Millisecond

func startLag() *lag {
	l := &lag{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		t := time.NewTimer(nap)
		defer t.Stop()
		for began := time.Now(); ; began = time.Now() {
			t.Reset(nap)
			select {
			case <-t.C:
			case <-l.stop:
				return
			}
			if late := time.Since(began) - nap; int64(late) > l.most.Load() {
				l.most.Store(int64(late))
			}
		}
	}()
	return l
}

// end stops measuring and gives the longest delay.
func (l *lag) end() time.Duration {
	close(l.stop)
	<-l.ended
	return time.Duration(l.most.Load())
}
