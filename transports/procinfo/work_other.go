//go:build !linux

package procinfo

// Worked fails: the error is ErrUnknown.
func Worked(int) (Work, error) { return Work{}, ErrUnknown }
