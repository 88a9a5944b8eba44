// Package bench measures what an agent notices of mcpvisor: a call beside the same call through a bare client library on
// the same server, how soon calls end when their server dies, what an idle server costs in memory, and how fast servers
// start through the gate.
//
//	make bench                                              # everything, in one run
//	go test -run '^$' -bench Call ./test/bench              # one row
//
// Compare only what one run printed: machines differ, and the same machine differs from hour to hour. Benchmarks are
// interleaved by -count; feed the output to benchstat for medians.
package bench
