package servers_test

import (
	"os"
	"testing"
)

// interrupt does nothing: Windows cannot ask a process to end.
func interrupt(*testing.T, *os.Process) bool { return false }

func alive(pid int) bool {
	_, err := os.FindProcess(pid)
	return err == nil
}

// sameGroup is always false: Windows has no process groups that could be compared.
func sameGroup(int, int) bool { return false }
