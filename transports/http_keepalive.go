package transports

import (
	"net"
	"net/http"
	"syscall"
	"time"
)

// DefaultDeadAfter is how long a client of NewClient believes in a connection that gives no sign of life.
const DefaultDeadAfter = time.Minute

// SetDeadAfter changes DefaultDeadAfter for a client that NewClient or NewTLSClient made, before its first use. d is
// at least 4 s; a shorter one costs a packet per connection more often (each d/4, while nothing else is sent), and ends
// exchanges with a network that pauses.
//
// What has no sign of life: a connection whose other end, or the way to it, vanished without a word. Bytes that no peer
// acknowledges (Linux, macOS, Windows; elsewhere the system's own bound, minutes), probes of an idle connection that
// remain unanswered, and over HTTP/2 a ping without an answer, for which 3/4 of d are enough. On Linux a server that
// lives, and takes nothing of a message that is larger than the buffers on the way, counts as dead after d as well.
//
// Who stands in between and is alive (a proxy, a balancer) hides over HTTP/1.1 that what is behind it is dead. Then
// only the context of the Send ends it.
func SetDeadAfter(c *http.Client, d time.Duration) {
	t, ok := c.Transport.(*http.Transport)
	if !ok {
		return
	}
	t.DialContext = newDialer(d).DialContext
	t.HTTP2 = pingConfig(d)
}

// keepaliveParts is into how many parts the time until a connection counts as dead is cut: a silence, and then probes.
const keepaliveParts = 4

func newDialer(dead time.Duration) *net.Dialer {
	pause := max(dead/keepaliveParts, time.Second)
	return &net.Dialer{
		Timeout: 15 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: pause, Interval: pause, Count: keepaliveParts - 1,
		},
		// Probes are sent while nothing is under way. For what is under way, a system may repeat itself for a quarter of
		// an hour.
		Control: func(_, _ string, c syscall.RawConn) error {
			_ = c.Control(func(fd uintptr) { setUnackedTimeout(fd, max(dead, keepaliveParts*time.Second)) }) // a wish: it works without
			return nil
		},
	}
}

func pingConfig(dead time.Duration) *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: dead / 2, PingTimeout: dead / 4}
}
