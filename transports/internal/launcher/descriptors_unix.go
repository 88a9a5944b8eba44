//go:build linux || darwin

package launcher

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// MarkDescriptors marks every open descriptor of this process from first on close-on-exec: they go on working here, and no
// program that is executed has them. Closing them instead would take the runtime's own (its poller) and what this process
// is to read (/dev/fd/63 of a shell). It does not say which were marked already.
func MarkDescriptors(first int) error {
	if markRange(first) {
		return nil
	}
	// A system without close_range(2), which came with Linux 5.11, or one that forbids it: one by one.
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd) // one that is not open any more is as good
		}
	}
	return nil
}
