package launcher

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

var resources = map[string]int{
	"fileSize": unix.RLIMIT_FSIZE, "files": unix.RLIMIT_NOFILE, "cpuTime": unix.RLIMIT_CPU,
}

func self() (string, error) { return os.Executable() }

func namespaces(*syscall.SysProcAttr) {}

func mapUser(int) error { return unix.ENOSYS } // no plan for this system asks for it

// take refuses what is not planned for this system.
func take(s *isolation.Steps, _ string) *Failed {
	if s.Loopback || s.NoNewPrivileges || s.Files != nil || s.Filter != nil {
		return fail("isolation", "", unix.ENOSYS)
	}
	return nil
}
