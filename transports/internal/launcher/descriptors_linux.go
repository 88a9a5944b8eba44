package launcher

import (
	"math"

	"golang.org/x/sys/unix"
)

// markRange marks every descriptor from first on in one call, and reports whether the kernel knows that call.
func markRange(first int) bool {
	return unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil
}
