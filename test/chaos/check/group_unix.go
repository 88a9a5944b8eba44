//go:build unix

package check

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canSignal says that a process can be asked to end, and seen to.
const canSignal = true

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pgid int) { _ = unix.Kill(-pgid, unix.SIGKILL) }
