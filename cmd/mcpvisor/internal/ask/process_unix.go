//go:build unix

package ask

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// detachProcess gives a program a session of its own, so that a Ctrl-C at our terminal does not reach it.
func detachProcess(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// isForeground reports whether this process is in the foreground of the terminal s. One in the background is stopped by the
// system as soon as it reads. What is no terminal counts as foreground.
func isForeground(s any) bool {
	f, ok := s.(interface{ Fd() uintptr })
	if !ok {
		return true
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
