//go:build !linux && !darwin && !windows

package procinfo

// Find fails: the error wraps ErrUnknown.
func Find(int) (Process, error) { return Process{}, ErrUnknown }
