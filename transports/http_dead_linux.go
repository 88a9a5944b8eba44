package transports

import (
	"time"

	"golang.org/x/sys/unix"
)

// giveUpAfter bounds how long bytes may go without an acknowledgement.
func giveUpAfter(fd uintptr, d time.Duration) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
}
