// Package allocations holds what one call allocates in parts of the library: a request over HTTP, a record of the audit.
// These tests stand here and not beside the code because the library's own tests run under the race detector (make test),
// which makes pools forget at random, so that the counts would say nothing. What a whole call allocates stands in
// test/bench/supervision.
package allocations
