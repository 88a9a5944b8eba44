package fence

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// sioAFUnixGetPeerPID is SIO_AF_UNIX_GETPEERPID of <afunix.h>: _WSAIOR(IOC_VENDOR, 256).
const sioAFUnixGetPeerPID = 0x58000100

// Moment is when a connection was accepted, in units of 100 ns since 1601.
type Moment uint64

// Now is the present Moment.
func Now() Moment {
	var t windows.Filetime
	windows.GetSystemTimeAsFileTime(&t)
	return Moment(uint64(t.HighDateTime)<<32 | uint64(t.LowDateTime))
}

// look asks SIO_AF_UNIX_GETPEERPID. There are no sessions of processes here, and isolation cannot be seen. A Windows that
// does not know the request tells nothing.
func look(conn net.Conn, accepted Moment) (p Peer) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{Silent: true} // no socket: whoever serves such a connection has made it
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{Unseen: "its connection has ended"}
	}
	var pid, size uint32
	var asked error
	if err := raw.Control(func(fd uintptr) {
		asked = windows.WSAIoctl(windows.Handle(fd), sioAFUnixGetPeerPID, nil, 0, (*byte)(unsafe.Pointer(&pid)),
			uint32(unsafe.Sizeof(pid)), &size, nil, 0)
	}); err != nil || asked != nil || pid == 0 {
		return Peer{Silent: true}
	}
	p.follow(int(pid))
	if len(p.Chain) > 0 && accepted != 0 && p.Chain[0].Start > uint64(accepted) {
		return Peer{Ended: true}
	}
	return p
}
