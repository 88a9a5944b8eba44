// Package e2e tests the library from end to end: real processes, real sockets, and servers of other authors,
// through the public facade and nothing else. The tests of the command stand beside the command.
//
// Its tests run one after the other, because each compares what this process holds before and after it: child
// processes, file descriptors and goroutines. A test that leaves one of them fails.
//
// Bounds in these tests separate "never" from "slowly, on a machine that is busy with something else". They say nothing
// about how long anything takes; what a test measures it prints (go test -v).
//
// The files of testdata/stdio are golden transcripts: what a child process was sent, byte for byte, under the sentences of
// the specification that ask for it (TestStdioTranscripts, -update rewrites them).
//
// With -short, 60 processes start where it are 500 otherwise.
//
// How it fits: the tests start servers of package test/servers and test/peers below a supervisor.Manager, as a program would, and
// look at statuses, events and answers. What a single package decides is tested there; here it counts that the parts meet.
package e2e
