package httpclient

import (
	"net"
	"net/http"
	"syscall"
	"time"
)

// DefaultDeadAfter is the time for which a client of [New] keeps a connection whose peer gives no sign of life.
const DefaultDeadAfter = time.Minute

// SetDeadAfter changes DefaultDeadAfter for a client that [New] or [NewTLS] made, before its first use. d is at least 4
// s; a shorter one costs a packet per connection more often (each d/4, while nothing else is sent), and ends exchanges with a
// network that pauses. It has no effect on a client with another kind of Transport.
//
// A connection is dead if its peer, or the way to it, vanished without a word: no peer acknowledges bytes (Linux, macOS, Windows;
// elsewhere the system's own bound counts, minutes), probes of an idle connection remain unanswered, or over HTTP/2 a ping has no
// answer, for which 3/4 of d are enough. On Linux a server that lives, and takes nothing of a message that is larger than the
// buffers on the way, counts as dead after d as well.
//
// A proxy or balancer in between that is alive hides over HTTP/1.1 that the server behind it is dead. Then only the context of
// the Send ends it.
func SetDeadAfter(c *http.Client, d time.Duration) {
	t, ok := c.Transport.(*http.Transport)
	if !ok {
		return
	}
	t.DialContext = newDialer(d).DialContext
	t.HTTP2 = pingConfig(d)
}

// keepaliveParts is into how many parts the time until a connection counts as dead is cut: one of silence, and then a probe each.
const keepaliveParts = 4

// newDialer makes a dialer whose connections count as dead after that time, and which tries to connect for 15 s.
func newDialer(dead time.Duration) *net.Dialer {
	pause := max(dead/keepaliveParts, time.Second)
	return &net.Dialer{
		Timeout: 15 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: pause, Interval: pause, Count: keepaliveParts - 1,
		},
		// The kernel probes only while nothing is under way. For bytes under way it may repeat itself for a quarter of an hour
		// unless this option bounds it.
		Control: func(_, _ string, c syscall.RawConn) error {
			// An error is ignored: without the option, the context of each Send still bounds it.
			_ = c.Control(func(fd uintptr) { setUnackedTimeout(fd, max(dead, keepaliveParts*time.Second)) })
			return nil
		},
	}
}

// pingConfig sets HTTP/2's pings: one after half of the time without a frame, and a quarter for its answer.
func pingConfig(dead time.Duration) *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: dead / 2, PingTimeout: dead / 4}
}
