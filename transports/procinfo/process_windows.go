package procinfo

import (
	"errors"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Find finds a process in a snapshot of all and asks when it was created. Windows has no process groups, and its sessions
// are those of users. The parent is the number that the process was created by, which may be another's by now: Chain
// compares the times.
func Find(pid int) (Process, error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return Process{}, os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer func() { _ = windows.CloseHandle(snapshot) }()
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

// creationTime is when a process was created; 0 if that is not told.
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
