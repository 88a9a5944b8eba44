package launcher

import (
	"math"

	"golang.org/x/sys/unix"
)

// markRange marks every descriptor from first on, and reports whether the kernel could.
func markRange(first int) bool {
	return unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil
}
