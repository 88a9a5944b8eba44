package httpclient

import (
	"testing"
	"time"
)

// A peer that has vanished counts as dead after the time that was asked for, and after four seconds at the earliest: one part of silence, and a
// probe in each part after it.
func TestAfterWhichSilenceAConnectionIsDead(t *testing.T) {
	for dead, want := range map[time.Duration]time.Duration{
		0: 4 * time.Second, time.Second: 4 * time.Second, 4 * time.Second: 4 * time.Second, 20 * time.Second: 20 * time.Second,
		time.Minute: time.Minute, time.Hour: time.Hour,
	} {
		c := newDialer(dead).KeepAliveConfig
		if got := c.Idle + time.Duration(c.Count)*c.Interval; !c.Enable || got != want {
			t.Errorf("%v: dead after %v (%v, then %d probes, %v apart), not %v", dead, got, c.Idle, c.Count, c.Interval, want)
		}
	}
}
