// Package resources counts what this process holds, so that a run can show that it left nothing behind.
//
//	before := resources.Count(resources.Options{})
//	…
//	after := resources.Count(resources.Options{Mark: mark})
//	for _, p := range resources.Processes(resources.Options{Mark: mark}) { … }
//
// # How it fits
//
// Package live counts before the manager starts and after it has closed, and writes both counts into the history, where the
// invariant about clean-up compares them; soak tests and benchmarks count while a manager runs. The package reads /proc and the
// runtime, and changes nothing.
//
// # What is counted
//
//   - Processes: every living descendant of this process, and every process on the machine that has Mark in its arguments. The
//     mark finds processes that are no descendants any more: one whose parent has ended is adopted by the first process of the
//     machine. Zombies count, because their parent should have waited for them.
//   - Descriptors: the open files of this process, sockets and pipes included.
//   - Goroutines, and bytes of the heap after a collection.
//
// # Where
//
// Linux shows all of it in /proc. On other Unixes /dev/fd shows descriptors, and processes cannot be seen; on Windows neither
// can. What cannot be counted is 0, and [Supported] says what can: without it a zero means nothing.
//
// # Not promised
//
// The numbers are not of one moment: a process that starts or ends meanwhile may be counted or not. A caller should count while
// nothing changes, or repeat until the number is as expected.
package resources

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// Options say what to count.
type Options struct {
	// Mark is a text in the arguments of processes that belong to the run; empty counts descendants only.
	Mark string
	// Known holds the ids of processes that do not count, because they existed before.
	Known map[int]bool
	// Heap makes Count collect garbage and measure the heap, which stops the process for some milliseconds.
	Heap bool
}

// Capabilities says what can be counted on this system.
type Capabilities struct{ Processes, Descriptors bool }

// Process describes one process.
type Process struct {
	PID, Parent int
	// State is the letter of /proc/PID/stat: Z is a zombie, T is stopped.
	State byte
	// Command holds its arguments, at most 200 printable characters; of a zombie only the name is known.
	Command string
}

// String describes the process for a list of leftovers.
func (p Process) String() string {
	text := fmt.Sprintf("process %d (parent %d): %s", p.PID, p.Parent, p.Command)
	switch p.State {
	case 'Z':
		return text + ", a zombie"
	case 'T':
		return text + ", stopped"
	}
	return text
}

// Count counts. It reads all of /proc, so that it takes some milliseconds.
func Count(o Options) history.ResourceUsage {
	h := history.ResourceUsage{
		Processes: len(Processes(o)), Descriptors: countDescriptors(), Goroutines: runtime.NumGoroutine(),
	}
	if o.Heap {
		h.Heap = Heap()
	}
	return h
}

// Heap returns the bytes of heap in use after a collection.
func Heap() int64 {
	// The first collection queues finalizers; the second frees what they held.
	debug.FreeOSMemory()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap has 8 EiB
}

// Processes returns every process of the run: descendants of this one, and those with the mark, without the known ones.
func Processes(o Options) []Process {
	return slices.DeleteFunc(listProcesses(o.Mark), func(p Process) bool { return o.Known[p.PID] })
}

// Arguments returns the arguments of a process, separated by spaces, empty if they cannot be read.
func Arguments(pid int) string { return readArguments(pid) }

// Goroutines returns the places at which goroutines of this process were created, with their numbers, at most n. It describes
// what was left.
func Goroutines(n int) []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	count := map[string]int{}
	var order []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		_, made, ok := strings.Cut(g, "created by ")
		if !ok {
			// The main goroutine and those of the runtime have no creator.
			continue
		}
		made, _, _ = strings.Cut(made, "\n")
		made, _, _ = strings.Cut(made, " in goroutine")
		if count[made]++; count[made] == 1 {
			order = append(order, made)
		}
	}
	var out []string
	for _, made := range order {
		if len(out) == n {
			break
		}
		out = append(out, fmt.Sprintf("goroutine: %d of %s", count[made], made))
	}
	return out
}
