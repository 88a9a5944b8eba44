// Package procinfo reads what the system records of a process: its parent, its session and group, and when it began, which tells
// it from a later process of the same number.
//
// # How it fits
//
// Package stdio/children notes by it when a child began, and package stdio reads the processor time of a server's processes
// ([UsageOf]), by which the server's actor tells a slow start from one that hangs. The control socket reads the ancestors of a
// caller ([Chain]) to find out whether a server's child calls. The package reads at each call and keeps nothing.
//
// Public for the control socket: what it exports may change without notice.
//
// # Guarantees
//
// A process is told by its number and the time of its start together, so that a number which was given away again is not taken for
// the old process. What a system does not say is ErrUnknown and never a guess.
//
// # Not promised
//
// The answer is old when it is read: the process may have ended since. Systems other than Linux, macOS and Windows answer ErrUnknown,
// and the processor time is known on Linux alone.
package procinfo

import (
	"errors"
	"syscall"
)

// Process describes one process at the moment of reading. A zero field is not known.
type Process struct {
	PID, Parent, Group, Session int
	// Start is the time at which the process began, in the system's own unit: clock ticks since boot on Linux, microseconds since
	// 1970 on macOS, 100 ns since 1601 on Windows. Two processes with one number differ in it.
	Start uint64
	// Name is the last element of the program's path where that can be read, and otherwise the name that the process has given
	// itself. It may hold any byte but zero, so escape it before you show it.
	Name string
}

// ErrUnknown is wrapped by the error of Find on systems where this package cannot read processes.
var ErrUnknown = errors.New("this system tells nothing of processes")

// Chain reads a process and its ancestors, itself first, at most 64 of them. It ends where there is no parent, and where the next
// one cannot be read. If a parent ends during the reading, its children get another one: Chain then reads on from there, so that
// it has every process that was a parent at some moment of the reading.
//
// The error is that of the first process, or says that there are no descriptors to read with (IsExhausted): the ancestors that are missing then
// may be those that a decision is about.
func Chain(pid int) ([]Process, error) { return chainWith(pid, Find) }

// maxChain bounds a chain, so that a process cannot make the reading costly by descending from thousands.
const maxChain = 64

// chainWith does the work of Chain with another way to read a process, for tests.
func chainWith(pid int, find func(int) (Process, error)) ([]Process, error) {
	var exhausted error
	read := func(pid int) (Process, error) {
		p, err := find(pid)
		if IsExhausted(err) {
			exhausted = err
		}
		return p, err
	}
	first, err := read(pid)
	if err != nil {
		return nil, err
	}
	out := []Process{first}
	// Each step may correct the process before it, which is why it gets a pointer.
	for len(out) < maxChain {
		parent, seen := parentOf(&out[len(out)-1], read)
		if exhausted != nil {
			return nil, exhausted
		}
		if !seen {
			break
		}
		out = append(out, parent)
	}
	return out, nil
}

// IsExhausted reports whether an error of this package says that this process, or the system, has no descriptors left.
func IsExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// parentOf reads the parent of a process. If the process was given another parent meanwhile, it corrects child.Parent and reads
// that. It tries 8 times, because a chain of parents can end one after the other.
func parentOf(child *Process, find func(int) (Process, error)) (parent Process, seen bool) {
	for range 8 {
		// The first process of a system has no parent, or itself.
		if child.Parent <= 0 || child.Parent == child.PID {
			return Process{}, false
		}
		parent, err := find(child.Parent)
		// A process that began after its child is not its parent: the number was given away again.
		if err == nil && (parent.Start == 0 || child.Start == 0 || parent.Start <= child.Start) {
			return parent, true
		}
		// The parent has ended (its number may be another process's now), or cannot be read.
		now, err := find(child.PID)
		// The process has ended, its number is another's, or its parent cannot be read: the chain ends here.
		if err != nil || now.Start != child.Start || now.Parent == child.Parent {
			return Process{}, false
		}
		child.Parent = now.Parent
	}
	return Process{}, false
}
