// Package allocations tests how much one call allocates in parts of the library: a request over HTTP, a record of the audit.
// These tests stand here and not beside the code, because "make test" runs the library's own tests under the race detector,
// which makes sync.Pool drop entries at random, so that the counts would mean nothing. The allocations of a whole call are
// measured in test/bench/supervision.
package allocations
