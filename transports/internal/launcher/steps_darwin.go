package launcher

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// resources maps keys of isolation.Limit to limits. macOS does not enforce a limit of memory.
var resources = map[string]int{
	"fileSize": unix.RLIMIT_FSIZE, "files": unix.RLIMIT_NOFILE, "cpuTime": unix.RLIMIT_CPU,
}

// ownProgram returns the path of this program.
func ownProgram() (string, error) { return os.Executable() }

// addNamespaces has nothing to add: no plan for this system asks for it.
func addNamespaces(*syscall.SysProcAttr) {}

// mapUser is not called, because no plan for this system asks for it.
func mapUser(int) error { return unix.ENOSYS }

// performSteps refuses every step that no plan for this system has.
func performSteps(s *isolation.Steps, _ string) *StepError {
	if s.Loopback || s.NoNewPrivileges || s.Files != nil || s.Filter != nil {
		return newStepError("isolation", "", unix.ENOSYS)
	}
	return nil
}
