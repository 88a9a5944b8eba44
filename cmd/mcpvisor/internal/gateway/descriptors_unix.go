//go:build unix

package gateway

import "golang.org/x/sys/unix"

// maxConnections returns how many connections of agents there may be: half of what the process may have open, so that servers can be
// started and files written whatever agents do. 0 leaves the default.
func maxConnections() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > 40_000 {
		return 0
	}
	return max(int(limit.Cur)/2, 16)
}
