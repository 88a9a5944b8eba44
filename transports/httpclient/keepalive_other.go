//go:build !linux && !darwin && !windows

package httpclient

import "time"

// setUnackedTimeout does nothing: the system's own bound counts here.
func setUnackedTimeout(uintptr, time.Duration) {}
