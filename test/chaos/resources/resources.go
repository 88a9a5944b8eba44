// Package resources counts what this process holds, so that a run can show that it left nothing behind.
//
//	before := resources.Count(resources.Options{})
//	…
//	after := resources.Count(resources.Options{Mark: mark})
//	for _, p := range resources.Processes(resources.Options{Mark: mark}) { … }
//
// # What is counted
//
//   - Processes: every living descendant of this process, and every process on the machine that has Mark in its arguments.
//     The second finds those that have left: a process whose parent has ended belongs to the first process of the
//     machine, and one in a session of its own to nobody's group. Zombies count: somebody should have waited for them.
//   - Descriptors: the open files of this process, sockets and pipes among them.
//   - Goroutines, and bytes of the heap after a collection.
//
// # Where
//
// All of it on Linux, by /proc. On other Unixes descriptors are counted by /dev/fd, and processes cannot be seen; on
// Windows neither can. What cannot be counted is 0, and Seen says what can: a zero says nothing then.
//
// # Not promised
//
// That the numbers are of one moment: a process that starts or ends meanwhile may be in them or not. Count when nothing
// moves, or count until it is what it should be.
package resources

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// Options say what to look for.
type Options struct {
	// Mark is a text in the arguments of processes that belong to the run, wherever they are; empty looks only at
	// descendants.
	Mark string
	// Known are processes that do not count, by id: those that were there before.
	Known map[int]bool
	// Heap collects garbage and reads the heap, which stops the process for some milliseconds.
	Heap bool
}

// Capabilities says what can be seen on this system.
type Capabilities struct{ Processes, Descriptors bool }

// Process is one process.
type Process struct {
	PID, Parent int
	// State is the letter of /proc/PID/stat: Z is a zombie, T is stopped.
	State byte
	// Command is its arguments, at most 200 characters, neutralised; of a zombie only its name is known.
	Command string
}

// String is for a list of what is left.
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

// Count counts. It reads all of /proc.
func Count(o Options) history.ResourceUsage {
	h := history.ResourceUsage{
		Processes: len(Processes(o)), Descriptors: countDescriptors(), Goroutines: runtime.NumGoroutine(),
	}
	if o.Heap {
		h.Heap = Heap()
	}
	return h
}

// Heap is the bytes in use, after a collection.
func Heap() int64 {
	debug.FreeOSMemory() // collects, and lets finalizers be queued
	runtime.GC()         // collects what they held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap has 8 EiB
}

// Processes is every process of the run: descendants of this one, and those with the mark.
func Processes(o Options) []Process {
	return slices.DeleteFunc(listProcesses(o.Mark), func(p Process) bool { return o.Known[p.PID] })
}

// Arguments are the arguments of a process, separated by spaces; empty if they cannot be read.
func Arguments(pid int) string { return readArguments(pid) }

// Goroutines is what most goroutines of this process wait for, each "goroutine: " with where it was created, at most n. It
// is for saying what was left.
func Goroutines(n int) []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	count := map[string]int{}
	var order []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		_, made, ok := strings.Cut(g, "created by ")
		if !ok {
			continue // the main goroutine, and those of the runtime
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
