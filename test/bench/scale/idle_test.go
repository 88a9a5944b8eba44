package scale

import (
	"bytes"
	"fmt"
	"math"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// What one idle server in process may hold, in bytes: on the heap, where it held 10,500 of 1,000 where it was measured, and as
// stacks. It has one goroutine of its own, but the runtime begins a stack at the average size of those that it found at its last
// collection, and keeps freed ones: on a busy machine the stacks were 3,000 to 5,900 bytes for the same goroutines.
const (
	idleHeap  = 11 << 10
	idleStack = 8 << 10
)

func TestAnIdleServerInProcessHoldsLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector keeps memory of its own")
	}
	idle, err := MeasureIdle(bounded(t), "in process", 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.0f bytes: %.0f of heap in %.0f objects, %.0f of stacks", idle.Bytes(), idle.Heap, idle.Objects, idle.Stack)
	if idle.Heap > idleHeap {
		t.Errorf("an idle server holds %.0f bytes of heap, at most %d are allowed", idle.Heap, idleHeap)
	}
	if idle.Stack > idleStack {
		t.Errorf("an idle server holds %.0f bytes of stacks, at most %d are allowed", idle.Stack, idleStack)
	}
}

// An idle server has as many goroutines as it has things that only a goroutine can wait for. A connection that the HTTP
// client keeps is no server's: all share them, and net/http has two goroutines for each.
func TestGoroutinesOfIdleServers(t *testing.T) {
	web, err := NewWeb()
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	for _, c := range []struct {
		kind string
		n    int
		want float64
		what string
	}{
		{"in process", 100, 1, "its own serve function"},
		{"stdio", 10, 3, "its output, its standard error, its end"},
		{"http", 20, 0, "nothing"},
		{"http with a stream", 20, 1, "the stream"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			ctx := bounded(t)
			m, err := startManager(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer closeWithin(m, &err)
			before := own(t)
			if _, err := m.SetServers(ctx, serverSpecs(c.kind, c.n, web)); err != nil {
				t.Fatal(err)
			}
			if err := awaitConnected(ctx, m); err != nil {
				t.Fatal(err)
			}
			var got float64
			for range 100 { // what ends is given the time to end
				time.Sleep(50 * time.Millisecond)
				// The slack is for what all share: the thread that starts processes.
				if got = float64(own(t)-before) / float64(c.n); math.Abs(got-c.want) < 0.2 {
					return
				}
			}
			t.Errorf("%.2f goroutines for each server, want %g: %s", got, c.want, c.what)
		})
	}
}

// own counts the goroutines that are not those of a connection of net/http.
func own(t *testing.T) (n int) {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		t.Fatal(err)
	}
	for group := range strings.SplitSeq(all.String(), "\n\n") {
		var count int
		if strings.HasPrefix(group, "goroutine profile") {
			_, group, _ = strings.Cut(group, "\n")
		}
		if _, err := fmt.Sscanf(group, "%d @", &count); err == nil && !strings.Contains(group, "net/http.(*persistConn).readLoop") &&
			!strings.Contains(group, "net/http.(*persistConn).writeLoop") {
			n += count
		}
	}
	return n
}
