package transports

import (
	"time"

	"golang.org/x/sys/unix"
)

// rxtConnDropTime is TCP_RXT_CONNDROPTIME of netinet/tcp.h, in seconds.
const rxtConnDropTime = 0x80

// setUnackedTimeout bounds how long bytes may go without an acknowledgement.
func setUnackedTimeout(fd uintptr, d time.Duration) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, rxtConnDropTime, int(d.Seconds()))
}
