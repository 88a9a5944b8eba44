package process

import (
	"bytes"
	"os"
	"strconv"
)

// Identify reads when a process was started (in clock ticks since boot) and its session. It works for a zombie, too. The
// zero value means that there is no such process.
func Identify(pid int) Identity {
	f, ok := statFields(pid)
	if !ok {
		return Identity{}
	}
	return Identity{Start: f.start, Session: f.session}
}

// walkGroupMembers calls f for each member of a group until f reports false. It reads all of /proc, which is slow on a machine
// with many processes.
func walkGroupMembers(pgid int, f func(procStat) bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		// /proc also has folders that are no processes.
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, ok := statFields(pid); ok && s.group == pgid && !f(s) {
				return
			}
		}
	}
}

// memberSessions lists the sessions of the members of a group, one for each member.
func memberSessions(pgid int) (sessions []int) {
	walkGroupMembers(pgid, func(s procStat) bool {
		sessions = append(sessions, s.session)
		return true
	})
	return sessions
}

// hasLivingMember reports whether a group has a member that is neither a zombie nor dead.
func hasLivingMember(pgid int) (found bool) {
	walkGroupMembers(pgid, func(s procStat) bool {
		found = s.state != 'Z' && s.state != 'X'
		return !found
	})
	return found
}

// procStat has the fields of /proc/PID/stat that are used here.
type procStat struct {
	state          byte
	group, session int
	// start is in clock ticks since boot.
	start uint64
}

// statFields reads /proc/PID/stat. The second field is the program's name in parentheses and may hold anything, spaces and
// parentheses among them, so that the fields are counted from the last parenthesis.
func statFields(pid int) (procStat, bool) {
	// A process that ends between listing and reading has no file any more, and is not there.
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// After the name come state (f[0], the third field of proc_pid_stat(5)), parent, group (f[2]), session (f[3]) … start (f[19]).
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	// Every kernel since 2.6 gives more fields than these.
	if len(f) < 20 {
		return procStat{}, false
	}
	group, err1 := strconv.Atoi(string(f[2]))
	session, err2 := strconv.Atoi(string(f[3]))
	start, err3 := strconv.ParseUint(string(f[19]), 10, 64)
	ok := err1 == nil && err2 == nil && err3 == nil
	return procStat{state: f[0][0], group: group, session: session, start: start}, ok
}
