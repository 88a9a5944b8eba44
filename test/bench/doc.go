// Package bench measures what an agent notices of mcpvisor. Its parts:
//
//	compare      a call beside the same call through other clients, and the floor that none of them can beat
//	supervision  a call through the facade beside one straight to a session
//	lists        a large list of tools until it can be used, beside other clients
//	flood        the calls of a healthy server beside one that floods
//	scale        what many servers cost: memory, starts, status, churn; how soon calls end when their server dies
//	command      the start of mcpvisor, beside a Go program that only prints
//	run          prints all of them, with what is held against a target
//	pairs        this tree against an older commit, in alternating runs
//	profile      where the time of 1,000 callers goes
//
//	make bench                                              # everything, in one run
//	make profile                                            # profiles of a busy manager
//	go test -run '^$' -bench Call ./test/bench              # a call in both eras of the protocol, beside mcp-go's client
//
// Compare only what one run printed: machines differ, and the same machine differs from hour to hour. The option -count
// interleaves benchmarks; benchstat computes medians of the output.
//
// # How it fits
//
// Each part measures and returns rows (package row); command run chooses the parts, prints their tables, and compares the rows that
// have a target. The parts use the library as a program does, and servers of package test/servers or of their own. Nothing of the
// product imports them.
//
// Not promised: the same numbers on two machines. A target is a ratio to another client, or to the floor of the same run.
package bench
