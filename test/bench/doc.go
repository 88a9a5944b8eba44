// Package bench measures what an agent notices of mcpvisor. Its parts:
//
//	compare   a call beside the same call through other clients, and the floor that none of them can beat
//	scale     what many servers cost: memory, starts, status, churn; how soon calls end when their server dies
//	command   what it costs to start mcpvisor, beside a Go program that only prints
//	run       prints all of them, with what is held against a target
//	profile   where the time of 1,000 callers goes
//
//	make bench                                              # everything, in one run
//	make profile                                            # profiles of a busy manager
//	go test -run '^$' -bench Call ./test/bench              # a call in both eras of the protocol, beside mcp-go's client
//
// Compare only what one run printed: machines differ, and the same machine differs from hour to hour. Benchmarks are
// interleaved by -count; feed the output to benchstat for medians.
package bench
