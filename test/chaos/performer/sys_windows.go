package performer

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// ownSession starts a child outside the process group of its parent. It stays in the job object, which a process cannot leave.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// dieBySignal exits with the code that Windows gives to a killed process, because there are no signals.
func dieBySignal(string) { os.Exit(1) }

// stopProcess and resumeProcess do nothing, because Windows has no signal for them.
func stopProcess(int)   {}
func resumeProcess(int) {}

// isProcessGone reports whether a process has ended. A process that cannot be opened has.
func isProcessGone(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid)) //nolint:gosec // process ids are positive
	if err != nil {
		return true
	}
	defer func() { _ = windows.CloseHandle(h) }()
	s, err := windows.WaitForSingleObject(h, 0)
	return err == nil && s == windows.WAIT_OBJECT_0
}

// isSessionLeader returns false, because a process cannot leave its job object.
func isSessionLeader(int) bool { return false }

// exhaustDescriptors does nothing, because Windows has no such limit.
func exhaustDescriptors() (restore func()) { return func() {} }
