package procinfo

import "time"

// Usage counts what a process and those that descend from it have done since they began. The numbers only grow, but that those of
// a process that was not waited for, or has left the tree, are missing from then on.
type Usage struct {
	// CPU is the time on a processor, Waited the time in which the busiest thread of each process wanted one and had none:
	// because others ran, or because a quota was used up.
	CPU, CPUWait time.Duration
	// IOBytes are the bytes that were read and written, to files and otherwise.
	IOBytes uint64
}

// Bounds of one look, so that no server makes looking costly by starting thousands.
const (
	maxTree    = 64
	maxThreads = 64
)
