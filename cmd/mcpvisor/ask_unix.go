//go:build unix

package main

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// detachProcess keeps a Ctrl-C at our terminal from a program that we start.
func detachProcess(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// isForeground reports whether what is read from the terminal s would reach us: a process in the background is stopped
// when it tries.
func isForeground(s any) bool {
	f, ok := s.(interface{ Fd() uintptr })
	if !ok {
		return true
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
