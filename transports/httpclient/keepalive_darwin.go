package httpclient

import (
	"time"

	"golang.org/x/sys/unix"
)

// rxtConnDropTime is TCP_RXT_CONNDROPTIME of netinet/tcp.h, in seconds.
const rxtConnDropTime = 0x80

// setUnackedTimeout bounds how long written bytes may stay without an acknowledgement, in whole seconds.
func setUnackedTimeout(fd uintptr, d time.Duration) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, rxtConnDropTime, int(d.Seconds()))
}
