package live

import (
	"sync/atomic"
	"time"
)

// lagMeter measures how busy the machine is: by how much somebody who only wants to sleep for a moment is late. What the record
// says of times is no more exact than that, for the manager and for the servers alike, and the invariants allow for it.
type lagMeter struct {
	longest atomic.Int64
	stop    chan struct{}
	ended   chan struct{}
}

// nap is how long it sleeps each time.
const nap = 5 * time.Millisecond

func startLagMeter() *lagMeter {
	l := &lagMeter{stop: make(chan struct{}), ended: make(chan struct{})}
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
			if late := time.Since(began) - nap; int64(late) > l.longest.Load() {
				l.longest.Store(int64(late))
			}
		}
	}()
	return l
}

// stopMeasuring stops measuring and gives the longest delay.
func (l *lagMeter) stopMeasuring() time.Duration {
	close(l.stop)
	<-l.ended
	return time.Duration(l.longest.Load())
}
