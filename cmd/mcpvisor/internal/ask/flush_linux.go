package ask

import "golang.org/x/sys/unix"

// flushInput drops what was typed at a terminal and has not been read, so that it cannot answer a question that appears later.
func flushInput(s any) {
	if f, ok := s.(interface{ Fd() uintptr }); ok {
		_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // an error means that it is no terminal, and has nothing to drop
	}
}
