//go:build !linux && !darwin && !windows

package procinfo

// Look fails: the error wraps ErrUnknown.
func Look(int) (Process, error) { return Process{}, ErrUnknown }
