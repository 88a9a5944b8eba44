//go:build unix

package client

import "syscall"

// ownSession starts a process in a session of its own, which the end of a terminal or of an agent does not reach.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
