package sim

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// What a run may take of the heap beyond what was in use at its beginning: 2 GiB, 2 MiB for each server, and 2 KiB for each event of a
// history that is judged. A day of a dozen servers takes some tens of MiB.
const (
	memoryPerRun    = 2 << 30
	memoryPerServer = 2 << 20
	memoryPerItem   = 2 << 10
)

// memoryGuard notices that a run takes memory without an end, before it takes that of the whole machine.
type memoryGuard struct {
	// atBegin and growth are in bytes of live heap; allowed is how much it may grow, 0 without a bound.
	atBegin, growth, allowed uint64
}

// newMemoryGuard also lets Go collect garbage by itself, in a process that does not, once half of the allowed growth is used up. To collect
// by hand takes minutes beside a loop that takes memory, if they share one processor.
func newMemoryGuard(servers, items int) memoryGuard {
	m := memoryGuard{atBegin: liveHeap(), allowed: memoryPerRun + uint64(servers)*memoryPerServer + uint64(items)*memoryPerItem}
	if manualGC.Load() {
		debug.SetMemoryLimit(int64(m.atBegin + m.allowed/2)) //nolint:gosec // it is a few GiB
	}
	return m
}

// liveHeap returns the bytes of heap that were live at the last collection.
func liveHeap() uint64 { return readMetric("/gc/heap/live:bytes") }

// isExceeded reports whether the live heap has grown by more than is allowed, or the heap with its garbage by twice as much.
func (m *memoryGuard) isExceeded() bool {
	if m.allowed == 0 {
		return false
	}
	live, all := liveHeap(), HeapInUse()
	if m.growth = live - min(live, m.atBegin); m.growth > m.allowed {
		return true
	}
	if manualGC.Load() && all > m.atBegin+2*m.allowed {
		m.growth = all - m.atBegin
		return true
	}
	return false
}

// describeGrowth says by how much the heap has grown, and where most of what is in use was taken.
func (m *memoryGuard) describeGrowth() string {
	text := fmt.Sprintf("%d MiB more are in use than at its beginning, and it may have %d MiB", m.growth>>20, m.allowed>>20)
	if where := largestUse(m.growth / 2); where != "" {
		text += ". Most of what is in use was taken in " + where
	}
	return text
}

// largestUse names the call of this module that has taken the most memory which is in use, by the samples of Go's memory profile. It is
// empty for less than least: the profile is up to two collections old, and may lack what was taken since.
func largestUse(least uint64) string {
	var all []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, false); !ok; n, ok = runtime.MemProfile(all, false) {
		all = make([]runtime.MemProfileRecord, n+64)
	}
	all = slices.DeleteFunc(all, func(r runtime.MemProfileRecord) bool { return r.InUseBytes() <= int64(least) }) //nolint:gosec // it is a few GiB
	if len(all) == 0 {
		return ""
	}
	largest := slices.MaxFunc(all, func(a, b runtime.MemProfileRecord) int { return int(a.InUseBytes() - b.InUseBytes()) })
	frames := runtime.CallersFrames(largest.Stack())
	for {
		f, more := frames.Next()
		if name, ours := strings.CutPrefix(f.Function, module); ours {
			return frame{function: name, position: fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)}.String()
		}
		if !more {
			return f.Function
		}
	}
}
