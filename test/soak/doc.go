// Soak keeps a mcpvisor up running with one good server among eleven bad ones, calls the good one all the time, and says what
// that costs: the time of a call through the command and through the control socket, alone and beside the others, and the
// memory, descriptors and processor time of the process that keeps them.
//
//	make soak MINUTES=45
//
// Exit code 1: a call of the good server failed, its slowest percent is far beyond the bound (1.2 × alone + 20 ms), memory or
// descriptors grow, or a process is left. A bound that is missed by little is printed and is no failure: a machine that does
// something else at the same time would decide it.
//
// Everything is on this machine and in one temporary folder, which is removed. Memory, descriptors, processor time and leftover
// processes are told on Linux alone.
//
// # How it fits
//
// setup.go writes the configurations, soak.go runs the ups and makes the calls, judge.go compares, and stats_linux.go reads the
// process. The bad servers are fixtures of package test/servers, which this program plays itself. It drives the built mcpvisor
// from outside, as a person and a script do, and nothing imports it.
//
// Not promised: a judgement on a machine that does something else. Run it where it has the processors for itself.
package main
