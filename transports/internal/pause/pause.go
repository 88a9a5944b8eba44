// Package pause waits for a time that a context can cut short.
//
// # How it fits
//
// Whoever tries something again calls [For]: connections, sessions, credentials, processes. The timer ends with the wait.
//
// Not promised: how exact the time is.
package pause

import (
	"context"
	"time"
)

// For waits for d and reports false if ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
