//go:build !linux

package procinfo

// UsageOf fails: the error is ErrUnknown.
func UsageOf(int) (Usage, error) { return Usage{}, ErrUnknown }
