//go:build unix

package main

import (
	"os"
	"strconv"
	"syscall"
)

// dieBySignal ends this program by a signal, as the server that it stands for has ended: whoever started it sees the same. A
// shell takes this process over for it, because Go's runtime would take SIGSEGV and its like for its own and tell of them.
// Without a shell the exit code is the one that a shell would give.
func dieBySignal(s syscall.Signal) error {
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -" + strconv.Itoa(int(s)) + " $$"}, os.Environ()) // it returns only if it fails
	return &exitError{code: 128 + int(s)}
}
