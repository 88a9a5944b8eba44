package sim

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// manualGC says that the collector of garbage comes only when it is called.
var manualGC atomic.Bool

// EnableExactRuns makes the runs of this process repeat byte for byte: it takes one processor and switches the collector of garbage
// off, which stops goroutines where they are and so changes their order. From then on each run collects by hand when
// nothing moves. It is for a process that does nothing else; memory that is given up between runs is not collected.
func EnableExactRuns() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	manualGC.Store(true)
}

// collector collects garbage by hand, when the heap has grown.
type collector struct {
	calls     int
	heapLimit uint64
}

const (
	collectEvery = 512       // sleeps between two looks at the heap
	collectAbove = 128 << 20 // bytes of heap in use, at first
)

func (c *collector) collectGarbage() {
	c.calls++
	if c.calls%collectEvery != 0 || !manualGC.Load() {
		return
	}
	if c.heapLimit == 0 {
		c.heapLimit = collectAbove
	}
	if heapInUse() > c.heapLimit {
		runtime.GC()
		c.heapLimit = max(collectAbove, 2*heapInUse())
	}
}

func heapInUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
