// Package flood measures what a server that floods costs a healthy one beside it: the time of a healthy server's calls, one
// after the other, quiet and beside each kind of flood, from a child, over HTTP and from a server in this program.
//
//	go run ./test/bench/run -only flood
//
// A flooding process takes its own processor time, which is the kernel's to share out and not ours: the row "a process that only
// computes" shows what any busy neighbour costs on the same machine. Times are those of a call as its caller sees it.
package flood
