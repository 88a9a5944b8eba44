package fence

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// AcceptTime is the time at which a connection was accepted, in microseconds since 1970; 0 is unknown.
type AcceptTime uint64

// Now returns the present AcceptTime.
func Now() AcceptTime {
	var t unix.Timeval
	if unix.Gettimeofday(&t) != nil {
		return 0
	}
	return AcceptTime(uint64(t.Sec)*1e6 + uint64(t.Usec))
}

// readPeer asks for LOCAL_PEERPID, <sys/un.h>. This system does not show whether a process is isolated.
func readPeer(conn net.Conn, accepted AcceptTime) (p Peer) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{Unsupported: true} // not a socket: the program made this connection itself
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{UnknownReason: "its connection has ended"}
	}
	pid, queryErr := 0, error(nil)
	if err := raw.Control(func(fd uintptr) {
		pid, queryErr = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	}); err != nil || queryErr != nil || pid <= 0 {
		return Peer{UnknownReason: "the system does not say who it is"}
	}
	p.readAncestry(pid)
	if len(p.Chain) == 0 {
		return p
	}
	// If the process began after the connection, the number belonged to another process, which has ended.
	if accepted != 0 && p.Chain[0].Start > uint64(accepted) {
		return Peer{Ended: true}
	}
	return p
}
