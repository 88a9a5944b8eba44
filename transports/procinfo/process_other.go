//go:build !linux && !darwin && !windows

package procinfo

// Find returns an error that wraps ErrUnknown.
func Find(int) (Process, error) { return Process{}, ErrUnknown }
