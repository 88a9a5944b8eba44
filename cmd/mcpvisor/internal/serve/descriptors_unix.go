//go:build unix

package serve

import "golang.org/x/sys/unix"

// maxConnections returns how many connections of agents there may be: half of what the process may have open, so that servers can be
// started and files written whatever agents do. 0 leaves the default.
func maxConnections() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	most := int64(limit.Cur) // negative is none
	if most < 0 || most > 40_000 {
		return 0
	}
	return max(int(most)/2, 16)
}
