package calltimeout

import (
	"context"
	"time"
)

// WaitFor waits for d and reports false if ctx ended first.
func WaitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
