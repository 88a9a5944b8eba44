//go:build linux || darwin

package launcher

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// MarkDescriptors marks every open descriptor of this process from first on close-on-exec: they stay open here, and no executed
// program gets them. Closing them instead would take the runtime's own (its poller) and files that this process is to read
// (/dev/fd/63 of a shell). Descriptors that were marked already stay so.
func MarkDescriptors(first int) error {
	if markRange(first) {
		return nil
	}
	// close_range(2) came with Linux 5.11, and a sandbox may refuse it: mark one by one.
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd) // an error means that it is closed already
		}
	}
	return nil
}
