package client

import (
	"errors"
	"syscall"
)

// errShortage is the cause of a refusal by a daemon that has no room just now.
var errShortage = errors.New("the daemon has no descriptors or no memory left")

// IsShortage reports whether an error says that this process, the daemon or the system has no descriptors, no processes or no memory left. What
// is tried again in a moment may succeed.
func IsShortage(err error) bool {
	for _, shortage := range []error{errShortage, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EAGAIN} {
		if errors.Is(err, shortage) {
			return true
		}
	}
	return false
}
