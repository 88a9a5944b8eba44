// Package scale measures the cost of many servers in one process: the memory of an idle one, the start of hundreds through the
// gate beside the least that their start can cost, the status of ten thousand, churn, and three absolute figures that a person
// notices: how soon one server is connected, what a call costs beyond its answer, and how soon calls end when their server
// dies.
//
//	go run ./test/bench/run -only 'memory|start'   # some sections
//	go test ./test/bench/scale                     # what holds on every machine: bytes, goroutines, growth
//
// Memory is the growth of this process by a number of servers, after a garbage collection, divided by their number: heap and
// stacks, with everything that the servers need in this process. The cost of a manager without servers is a separate figure
// (2.9 MB, nearly all of it protoactor's table of names), and so is the cost of servers in other processes there. An in-process
// server includes its own side, whose goroutine is counted too.
//
// Not promised: times of two runs cannot be compared, only ratios within one run.
package scale
