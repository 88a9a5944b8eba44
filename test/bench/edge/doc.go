// Package edge measures the gateway: a call through it beside a call through a bare edge, which is an http.Handler that does nothing
// but decode the call, make it, and write its result, without any duty of a gateway; the memory of sessions; what they leave; how
// soon a thousand of them know of a killed server; and agents that use "mcpvisor connect": fifty at once, one that finds no daemon, and one
// whose daemon is killed.
//
//	go run ./test/bench/run -only gateway
//	go run ./test/bench/run -only agents
//
// How it fits: its sections are rows of command run. The bounds that are no times are held by its tests: go test ./test/bench/edge, with
// -sessions 10000 -abandoned 1000000 for the full numbers (make gateway).
package edge
