//go:build unix

package check

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canSignal says whether this system can ask a process to end (SIGTERM).
const canSignal = true

// ownGroup starts a process in its own group, so that killGroup reaches what it starts.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a process group. An error means that no process of it is left.
func killGroup(pgid int) { _ = unix.Kill(-pgid, unix.SIGKILL) }
