//go:build !unix

package check

import "syscall"

// canSignal says whether this system can ask a process to end (SIGTERM).
const canSignal = false

// ownGroup returns nil, because this system has no process groups.
func ownGroup() *syscall.SysProcAttr { return nil }

// killGroup does nothing, because this system has no process groups.
func killGroup(int) {}
