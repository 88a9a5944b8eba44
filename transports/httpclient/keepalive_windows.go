package httpclient

import (
	"time"

	"golang.org/x/sys/windows"
)

// maxRT is TCP_MAXRT of ws2ipdef.h, in seconds.
const maxRT = 5

// setUnackedTimeout bounds how long written bytes may stay without an acknowledgement, in whole seconds.
func setUnackedTimeout(fd uintptr, d time.Duration) {
	_ = windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_TCP, maxRT, int(d.Seconds()))
}
