//go:build !unix

package row

import "time"

// CPU returns false, because this system does not report the processor time of a process.
func CPU() (time.Duration, bool) { return 0, false }
