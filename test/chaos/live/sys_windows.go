package live

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// ownSession takes a child out of the process group of its parent. It stays in the job object, which there is no way
// out of.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// dieBySignal ends this process with the code that the system gives to a killed one: there are no signals.
func dieBySignal(string) { os.Exit(1) }

// stopProcess and resume do nothing: the system has no signal for them.
func stopProcess(int)   {}
func resumeProcess(int) {}

func killProcess(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

// isProcessGone reports whether a process has ended.
func isProcessGone(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid)) //nolint:gosec // process ids are positive
	if err != nil {
		return true
	}
	defer func() { _ = windows.CloseHandle(h) }()
	s, err := windows.WaitForSingleObject(h, 0)
	return err == nil && s == windows.WAIT_OBJECT_0
}

// isSessionLeader reports whether a process has left its group. There is no way out of a job object.
func isSessionLeader(int) bool { return false }

// exhaustDescriptors does nothing: the system has no such limit.
func exhaustDescriptors() (restore func()) { return func() {} }
