package sim

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// manualGC is set when the garbage collector runs only by hand.
var manualGC atomic.Bool

// EnableExactRuns makes the runs of this process repeat byte for byte: it limits Go to one processor and switches the garbage
// collector off, because the collector stops goroutines at arbitrary places and so changes their order. From then on each run
// collects garbage itself while every goroutine waits. It is for a process that does nothing else; memory that is freed between
// runs is not collected.
func EnableExactRuns() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	manualGC.Store(true)
}

// collector runs the garbage collector by hand when the heap has grown.
type collector struct {
	calls     int
	heapLimit uint64
}

const (
	// collectEvery is the number of sleeps of the loop between two looks at the heap, collectAbove the first limit in bytes of
	// heap in use.
	collectEvery = 512
	collectAbove = 128 << 20
)

// collectGarbage collects if the heap is above the limit, and doubles the limit with the live heap, as Go's own collector does.
func (c *collector) collectGarbage() {
	c.calls++
	if c.calls%collectEvery != 0 || !manualGC.Load() {
		return
	}
	if c.heapLimit == 0 {
		c.heapLimit = collectAbove
	}
	if HeapInUse() > c.heapLimit {
		runtime.GC()
		c.heapLimit = max(collectAbove, 2*HeapInUse())
	}
}

// HeapInUse returns the bytes of live and not yet swept objects.
func HeapInUse() uint64 { return readMetric("/memory/classes/heap/objects:bytes") }

// readMetric reads a number of package runtime/metrics.
func readMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
