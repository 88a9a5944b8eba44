package main

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	times := func(d time.Duration) []time.Duration {
		all := make([]time.Duration, 100)
		for i := range all {
			all[i] = d
		}
		return all
	}
	if f := compareLatency("command", times(40*time.Millisecond), times(60*time.Millisecond)); len(f) > 0 {
		t.Error(f)
	}
	if f := compareLatency("command", times(40*time.Millisecond), times(13*time.Second)); len(f) != 1 {
		t.Errorf("a call that waits for a neighbour: %q", f)
	}
	flat, grows := make([]processStats, 100), make([]processStats, 100)
	for i := range flat {
		flat[i] = processStats{memory: 40 << 20, descriptors: 60}
		grows[i] = processStats{memory: (40 + i) << 20, descriptors: 60 + i}
	}
	if f := checkGrowth(flat); len(f) > 0 {
		t.Error(f)
	}
	if f := checkGrowth(grows); len(f) != 2 {
		t.Errorf("what grows: %q", f)
	}
}
