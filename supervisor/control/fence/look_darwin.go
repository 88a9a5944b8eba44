package fence

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Moment is when a connection was accepted, in microseconds since 1970.
type Moment uint64

// Now is the present Moment.
func Now() Moment {
	var t unix.Timeval
	if unix.Gettimeofday(&t) != nil {
		return 0
	}
	return Moment(uint64(t.Sec)*1e6 + uint64(t.Usec))
}

// look asks LOCAL_PEERPID, <sys/un.h>. That a process is isolated cannot be seen here.
func look(conn net.Conn, accepted Moment) (p Peer) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{Silent: true} // no socket: whoever serves such a connection has made it
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{Unseen: "its connection has ended"}
	}
	pid, asked := 0, error(nil)
	if err := raw.Control(func(fd uintptr) {
		pid, asked = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	}); err != nil || asked != nil || pid <= 0 {
		return Peer{Unseen: "the system does not say who it is"}
	}
	p.follow(pid)
	if len(p.Chain) == 0 {
		return p
	}
	// The number may have been given to a later process: that one began after the connection.
	if accepted != 0 && p.Chain[0].Start > uint64(accepted) {
		return Peer{Ended: true}
	}
	return p
}
