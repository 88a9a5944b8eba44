//go:build unix

package row

import (
	"syscall"
	"time"
)

// CPU returns the processor time that this process has used on all its threads; false if the system does not report it. Other
// processes on a noisy machine lengthen it much less than the time on the clock.
func CPU() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
