//go:build unix

package conformance

import (
	"os/exec"
	"syscall"
	"time"
)

// runGroup runs a command in a process group of its own and ends the group with it. left says that something of the
// group was alive when the command had ended. When the suite gives a client up, it kills the shell that it started it
// with, which is not always the client.
func runGroup(cmd *exec.Cmd) (survived bool, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return false, err
	}
	err = cmd.Wait()
	survived = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil
	return survived, err
}
