package fence

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// sioAFUnixGetPeerPID is SIO_AF_UNIX_GETPEERPID of <afunix.h>: _WSAIOR(IOC_VENDOR, 256).
const sioAFUnixGetPeerPID = 0x58000100

// AcceptTime is the time at which a connection was accepted, in units of 100 ns since 1601.
type AcceptTime uint64

// Now returns the present AcceptTime.
func Now() AcceptTime {
	var t windows.Filetime
	windows.GetSystemTimeAsFileTime(&t)
	return AcceptTime(uint64(t.HighDateTime)<<32 | uint64(t.LowDateTime))
}

// readPeer asks for SIO_AF_UNIX_GETPEERPID. This system has no sessions of processes and does not show isolation. A
// Windows that does not know the request gives no information at all.
func readPeer(conn net.Conn, accepted AcceptTime) (p Peer) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{Unsupported: true} // not a socket: the program made this connection itself
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{UnknownReason: "its connection has ended"}
	}
	var pid, size uint32
	var queryErr error
	if err := raw.Control(func(fd uintptr) {
		queryErr = windows.WSAIoctl(windows.Handle(fd), sioAFUnixGetPeerPID, nil, 0, (*byte)(unsafe.Pointer(&pid)),
			uint32(unsafe.Sizeof(pid)), &size, nil, 0)
	}); err != nil || queryErr != nil || pid == 0 {
		return Peer{Unsupported: true}
	}
	p.readAncestry(int(pid))
	// A process that began after the connection has the number of one that has ended.
	if len(p.Chain) > 0 && accepted != 0 && p.Chain[0].Start > uint64(accepted) {
		return Peer{Ended: true}
	}
	return p
}
