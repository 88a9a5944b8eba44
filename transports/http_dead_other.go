//go:build !linux && !darwin && !windows

package transports

import "time"

// giveUpAfter is left to the system.
func giveUpAfter(uintptr, time.Duration) {}
