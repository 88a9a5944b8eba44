package procinfo

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// Find asks sysctl(3) for kern.proc.pid, and calls getsid(2). The system keeps 16 bytes of the program's name.
func Find(pid int) (Process, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Process{}, err
	}
	// The call succeeds with an empty structure for a number that is not in use.
	if int(k.Proc.P_pid) != pid {
		return Process{}, os.ErrNotExist
	}
	name := k.Proc.P_comm[:]
	text := make([]byte, 0, len(name))
	for _, c := range name {
		text = append(text, byte(c))
	}
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	p := Process{PID: pid, Parent: int(k.Eproc.Ppid), Group: int(k.Eproc.Pgid), Name: string(text),
		Start: uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec)}
	// The session of another user's process may not be asked for; it stays unknown.
	if p.Session, err = unix.Getsid(pid); err != nil {
		p.Session = 0
	}
	return p, nil
}
