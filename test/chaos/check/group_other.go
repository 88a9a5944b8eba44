//go:build !unix

package check

import "syscall"

// canSignal says that a process can be asked to end, and seen to.
const canSignal = false

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(int) {}
