package process

import "golang.org/x/sys/unix"

// Identify reads when a process was started, in microseconds since 1970. The kernel does not give sessions by number here.
func Identify(pid int) Identity {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return Identity{}
	}
	return Identity{Start: uint64(p.Proc.P_starttime.Sec)*1e6 + uint64(p.Proc.P_starttime.Usec)}
}

// memberSessions returns one zero for each member of a group: the session is 0 in every identity here, so that any member
// matches.
func memberSessions(pgid int) []int {
	members, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	if err != nil {
		return nil
	}
	return make([]int, len(members))
}
