// Package flood measures how much a server that floods slows down a healthy one beside it: the time of a healthy server's
// calls, one after the other, alone and beside each kind of flood, from a child, over HTTP and from a server in this program.
//
//	go run ./test/bench/run -only flood
//
// A flooding process also uses processor time of its own, which the kernel shares out: the row "computing" shows what any busy
// process costs on the same machine. Times are those of a call as its caller sees it.
//
// How it fits: section.go connects one manager with a healthy child and, for each row, with a server that floods; peer.go is that
// server, as a child, over HTTP and in this program. The healthy calls are made one after the other for the same time, quiet and
// flooded.
//
// Not promised: that no flood costs anything. A row holds if the slowest percent of the healthy calls stays near the quiet one's.
package flood
