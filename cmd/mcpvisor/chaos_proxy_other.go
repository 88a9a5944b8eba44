//go:build !unix

package main

import "syscall"

// dieBySignal gives the exit code that a shell would: there are no signals to die of.
func dieBySignal(s syscall.Signal) error { return &exitError{code: 128 + int(s)} }
