package procinfo

import "time"

// Usage counts what a process and its descendants have used since they began. The numbers only grow, except that those of a
// process that was not waited for, or that has left the tree, are missing from then on.
type Usage struct {
	// CPU is the time on a processor. CPUWait sums for each process the time in which its busiest thread waited for one, because
	// others ran, or because a quota was used up.
	CPU, CPUWait time.Duration
	// IOBytes are the bytes that were read and written, to files, pipes and sockets.
	IOBytes uint64
}

// The bounds of one call of UsageOf, so that no server makes it costly by starting thousands of processes or threads.
const (
	maxTree    = 64
	maxThreads = 64
)
