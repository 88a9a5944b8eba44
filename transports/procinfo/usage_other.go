//go:build !linux

package procinfo

// UsageOf returns ErrUnknown.
func UsageOf(int) (Usage, error) { return Usage{}, ErrUnknown }
