package fence

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// soPeerPIDFD is SO_PEERPIDFD of Linux 6.5, <asm-generic/socket.h>.
const soPeerPIDFD = 77

// AcceptTime is the time at which a connection was accepted, in clock ticks since boot; 0 is unknown.
type AcceptTime uint64

// Now returns the present AcceptTime.
func Now() AcceptTime {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return AcceptTime(uint64(t.Sec)*100 + uint64(t.Nsec)/1e7) // USER_HZ is 100 on every architecture that Go supports
}

// readPeer asks for SO_PEERCRED, unix(7): the process that called connect(2). Its number is believed only if it still
// belongs to that process at the end of the reading: from Linux 6.5 on a descriptor of the process shows that, before
// it that the process began before the connection.
func readPeer(conn net.Conn, accepted AcceptTime) (p Peer) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{Unsupported: true} // not a socket: the program made this connection itself
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{UnknownReason: "its connection has ended"}
	}
	var cred *unix.Ucred
	process, credErr := -1, error(nil)
	if err := raw.Control(func(fd uintptr) {
		if cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); credErr != nil {
			return
		}
		if got, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, soPeerPIDFD); err == nil {
			process = got
			unix.CloseOnExec(got)
		} else if err == unix.ESRCH || err == unix.EINVAL { // the process had ended before this call
			p.Ended = true
		}
	}); err != nil || credErr != nil {
		return Peer{UnknownReason: "the system does not say who it is"}
	}
	if process >= 0 {
		defer unix.Close(process)
	}
	if cred.Pid <= 0 {
		return Peer{UnknownReason: "it lives in another namespace of processes"}
	}
	p.readAncestry(int(cred.Pid))
	if len(p.Chain) > 0 {
		p.Isolation = describeIsolation(int(cred.Pid))
	}
	switch {
	case process >= 0:
		p.Ended = hasEnded(process)
	case len(p.Chain) == 0:
	default: // a process that began in the tick of the connection may be either; it is believed, because numbers are reused only after long
		p.Ended = p.Ended || accepted != 0 && p.Chain[0].Start > uint64(accepted)
	}
	if p.Ended { // the information may be about another process
		p.Chain, p.Leaders, p.Isolation, p.UnknownReason = nil, nil, "", ""
	}
	return p
}

// hasEnded reports whether the process of a descriptor has ended: the descriptor is readable then.
func hasEnded(process int) bool {
	polled := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
	n, err := unix.Poll(polled, 0)
	return err != nil || n > 0
}

// describeIsolation names the restrictions that a process has and this one has not. It reads /proc/PID/status, which
// every process may read, and the namespaces, which are hidden for a process that may not be traced: then they count
// as no sign.
func describeIsolation(pid int) string {
	theirs, ours := readIsolation("/proc/"+strconv.Itoa(pid)), readIsolation("/proc/self")
	var marks []string
	if theirs.noNewPrivileges > ours.noNewPrivileges {
		marks = append(marks, "no_new_privs")
	}
	if theirs.filters > ours.filters {
		marks = append(marks, "a system call filter")
	}
	for i, kind := range namespaces {
		if t, o := theirs.namespaces[i], ours.namespaces[i]; t != "" && o != "" && t != o {
			marks = append(marks, "a "+kind+" namespace of its own")
		}
	}
	return strings.Join(marks, ", ")
}

// namespaces are the kinds that are signs of isolation.
var namespaces = [...]string{"user", "net"}

// isolation holds the signs of one process: its no_new_privs flag, the number of its system call filters, and the ids
// of its namespaces, empty if unknown.
type isolation struct {
	noNewPrivileges, filters int
	namespaces               [len(namespaces)]string
}

// readIsolation reads the signs from a directory of /proc. What cannot be read stays zero.
func readIsolation(dir string) (c isolation) {
	if b, err := os.ReadFile(dir + "/status"); err == nil {
		c.noNewPrivileges, c.filters = parseIsolation(b)
	}
	for i, kind := range namespaces {
		if link, err := os.Readlink(fmt.Sprintf("%s/ns/%s", dir, kind)); err == nil {
			c.namespaces[i] = link
		}
	}
	return c
}

// parseIsolation reads the lines NoNewPrivs, Seccomp and Seccomp_filters of proc_pid_status(5). A kernel before 5.9
// does not count filters: there any mode counts as one filter.
func parseIsolation(b []byte) (noNewPrivileges, filters int) {
	mode, counted := 0, false
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
		if err != nil {
			continue
		}
		switch string(name) {
		case "NoNewPrivs":
			noNewPrivileges = n
		case "Seccomp":
			mode = n
		case "Seccomp_filters":
			filters, counted = n, true
		}
	}
	if mode != 0 && !counted {
		filters = 1
	}
	return noNewPrivileges, filters
}
