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

// AcceptTime is when a connection was accepted, in clock ticks since boot; 0 is not known.
type AcceptTime uint64

// Now is the present Moment.
func Now() AcceptTime {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return AcceptTime(uint64(t.Sec)*100 + uint64(t.Nsec)/1e7) // USER_HZ is 100 on every architecture that Go knows
}

// readPeer asks SO_PEERCRED, unix(7): the process that called connect(2). A number is only believed if it is that process's to
// the end of the reading: a descriptor of it tells from Linux 6.5 on, and before it, that it began before the connection.
func readPeer(conn net.Conn, accepted AcceptTime) (p Peer) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{Unsupported: true} // no socket: whoever serves such a connection has made it
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
		} else if err == unix.ESRCH || err == unix.EINVAL { // it had ended when it was asked for
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
	default: // one that began in the tick of the connection may be either: it is believed, a number takes long to come round
		p.Ended = p.Ended || accepted != 0 && p.Chain[0].Start > uint64(accepted)
	}
	if p.Ended { // what was read may be another process's
		p.Chain, p.Leaders, p.Isolation, p.UnknownReason = nil, nil, "", ""
	}
	return p
}

// hasEnded reports whether the process of a descriptor does not run any more.
func hasEnded(process int) bool {
	polled := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
	n, err := unix.Poll(polled, 0)
	return err != nil || n > 0
}

// describeIsolation compares what a process is kept from with what this one is. It reads /proc/PID/status, which everybody may, and
// the namespaces, which are not shown of a process that may not be traced: those are then no mark.
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

// namespaces are the kinds that mark an isolated process.
var namespaces = [...]string{"user", "net"}

type isolation struct {
	noNewPrivileges, filters int
	namespaces               [len(namespaces)]string
}

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

// parseIsolation reads the lines NoNewPrivs, Seccomp and Seccomp_filters of proc_pid_status(5). A kernel before 5.9 does
// not count filters: one mode 2 is one filter there.
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
