//go:build linux || darwin

package ask

import "golang.org/x/sys/unix"

// hideInput stops the terminal s from showing what is typed, until the caller calls show. ok is false if s is no terminal, or
// its mode cannot be changed; the caller must not read a secret then.
func hideInput(s any) (show func(), ok bool) {
	f, ok := s.(interface{ Fd() uintptr })
	if !ok {
		return nil, false
	}
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, false
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, setTermios, &hidden); err != nil {
		return nil, false
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }, true // if this fails the terminal is gone
}
