// Package procinfo reads what the system tells of a process: who started it, which session and group it belongs to, and
// when it began, by which it can be told from a later process of the same number.
package procinfo

import "errors"

// Process holds what the system tells of one process. Zero values are not known.
type Process struct {
	PID, Parent, Group, Session int
	// Start is when the process began, in the system's own unit: clock ticks since boot on Linux, microseconds since 1970
	// on macOS, 100 ns since 1601 on Windows. Of two processes with one number it differs.
	Start uint64
	// Name is the last element of the program's path where that can be read, and otherwise what the process calls itself.
	// It may hold any byte but zero.
	Name string
}

// ErrUnknown is wrapped by the error of Look where the system tells nothing of processes.
var ErrUnknown = errors.New("this system tells nothing of processes")

// Chain reads a process and those it descends from, itself first, at most 64 of them. It ends where there is no parent,
// and where the next one cannot be seen. A parent that ends meanwhile hands its children on: the chain is then read again
// from there, so that it holds each process that was the parent at some moment of the reading.
//
// The error is that of the first process.
func Chain(pid int) ([]Process, error) { return chainWith(pid, Find) }

// maxChain bounds a chain: a process cannot make reading its parents costly by descending from thousands.
const maxChain = 64

func chainWith(pid int, find func(int) (Process, error)) ([]Process, error) {
	first, err := find(pid)
	if err != nil {
		return nil, err
	}
	out := []Process{first}
	for len(out) < maxChain {
		parent, seen := parentOf(&out[len(out)-1], find)
		if !seen {
			break
		}
		out = append(out, parent)
	}
	return out, nil
}

// parentOf looks for the parent of a process, and corrects the number if the process was handed on meanwhile.
func parentOf(child *Process, find func(int) (Process, error)) (parent Process, seen bool) {
	for range 8 {
		if child.Parent <= 0 || child.Parent == child.PID {
			return Process{}, false
		}
		parent, err := find(child.Parent)
		if err == nil && (parent.Start == 0 || child.Start == 0 || parent.Start <= child.Start) {
			return parent, true
		}
		// It has ended (its number may be another's now), or cannot be seen.
		now, err := find(child.PID)
		if err != nil || now.Start != child.Start || now.Parent == child.Parent {
			return Process{}, false
		}
		child.Parent = now.Parent
	}
	return Process{}, false
}
