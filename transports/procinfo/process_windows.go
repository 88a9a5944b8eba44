package procinfo

import (
	"errors"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Find looks a process up in a snapshot of all, and asks when it was created. Windows has no process groups, and its sessions are
// those of users, so that both fields stay 0. The parent is the number of the process that created it, which may be another
// process's by now: Chain compares the times.
func Find(pid int) (Process, error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return Process{}, os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer func() { _ = windows.CloseHandle(snapshot) }()
	// The API checks the size before it fills the structure.
	e := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &e); err == nil; err = windows.Process32Next(snapshot, &e) {
		if int(e.ProcessID) == pid {
			return Process{PID: pid, Parent: int(e.ParentProcessID), Start: creationTime(e.ProcessID),
				Name: filepath.Base(windows.UTF16ToString(e.ExeFile[:]))}, nil
		}
	}
	if errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return Process{}, os.ErrNotExist
	}
	return Process{}, os.NewSyscallError("Process32Next", err)
}

// creationTime returns the time at which a process was created; 0 if this process may not ask.
func creationTime(pid uint32) uint64 {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return 0
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var creation, exit, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &creation, &exit, &kernel, &user) != nil {
		return 0
	}
	return uint64(creation.HighDateTime)<<32 | uint64(creation.LowDateTime)
}
