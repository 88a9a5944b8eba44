package conntest

import "runtime"

// MeasureMemory returns what this process has allocated after a collection of garbage.
func MeasureMemory() (heap, stack uint64) {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}
