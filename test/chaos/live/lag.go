package live

import (
	"sync/atomic"
	"time"
)

// lagMeter measures how busy the machine is: the longest delay of a goroutine that only wants to sleep for nap. The times of
// the history are no more exact than that delay, so that the invariants allow for it.
type lagMeter struct {
	// longest is in nanoseconds. stop ends the goroutine, which closes ended.
	longest atomic.Int64
	stop    chan struct{}
	ended   chan struct{}
}

// nap is the time of one sleep.
const nap = 5 * time.Millisecond

// startLagMeter starts the goroutine that measures; the caller must end it.
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

// stopMeasuring ends the measurement and returns the longest delay.
func (l *lagMeter) stopMeasuring() time.Duration {
	close(l.stop)
	<-l.ended
	return time.Duration(l.longest.Load())
}
