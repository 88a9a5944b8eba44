//go:build !linux && !darwin && !windows

package transports

import "time"

// setUnackedTimeout does nothing: the system's own bound counts here.
func setUnackedTimeout(uintptr, time.Duration) {}
