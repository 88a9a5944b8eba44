//go:build unix

package chaos

import (
	"os"
	"strconv"
	"syscall"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
)

// dieBySignal ends this program by a signal, as the server behind the proxy has ended, so that the agent sees the same. It
// replaces this process by a shell that kills itself, because Go's runtime handles SIGSEGV and its like and would print a
// stack. If there is no shell it returns an error with the exit code that a shell would give.
func dieBySignal(s syscall.Signal) error {
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -" + strconv.Itoa(int(s)) + " $$"}, os.Environ()) // it returns only if it fails
	return &exit.Error{Code: 128 + int(s)}
}
