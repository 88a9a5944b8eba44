package httpclient

import (
	"time"

	"golang.org/x/sys/unix"
)

// setUnackedTimeout bounds how long written bytes may stay without an acknowledgement.
func setUnackedTimeout(fd uintptr, d time.Duration) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
}
