//go:build !unix

package ask

import "os/exec"

// detachProcess does nothing on this system, which has no sessions.
func detachProcess(*exec.Cmd) {}

// isForeground returns true, because this system has no job control.
func isForeground(any) bool { return true }
