//go:build !unix

package main

import "syscall"

// dieBySignal returns an error with the exit code that a shell would give, since this system has no signals to die of.
func dieBySignal(s syscall.Signal) error { return &exitError{code: 128 + int(s)} }
