//go:build !windows

package servers_test

import (
	"os"
	"syscall"
	"testing"
)

// interrupt asks a process to end, and reports whether this system can ask.
func interrupt(t *testing.T, p *os.Process) bool {
	t.Helper()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return true
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func sameGroup(a, b int) bool {
	x, errX := syscall.Getpgid(a)
	y, errY := syscall.Getpgid(b)
	return errX == nil && errY == nil && x == y
}
