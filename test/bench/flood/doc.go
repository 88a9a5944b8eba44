// Package flood measures how much a server that floods slows down a healthy one beside it: the time of a healthy server's
// calls, one after the other, alone and beside each kind of flood, from a child, over HTTP and from a server in this program.
//
//	go run ./test/bench/run -only flood
//
// A flooding process also uses processor time of its own, which the kernel shares out: the row "computing" shows what any busy
// process costs on the same machine. Times are those of a call as its caller sees it.
package flood
