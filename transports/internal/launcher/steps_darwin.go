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

func ownProgram() (string, error) { return os.Executable() }

func addNamespaces(*syscall.SysProcAttr) {}

func mapUser(int) error { return unix.ENOSYS } // no plan for this system asks for it

// performSteps refuses what is not planned for this system.
func performSteps(s *isolation.Steps, _ string) *StepError {
	if s.Loopback || s.NoNewPrivileges || s.Files != nil || s.Filter != nil {
		return newStepError("isolation", "", unix.ENOSYS)
	}
	return nil
}
