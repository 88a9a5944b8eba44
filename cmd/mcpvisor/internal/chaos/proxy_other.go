//go:build !unix

package chaos

import (
	"syscall"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
)

// dieBySignal returns an error with the exit code that a shell would give, since this system has no signals to die of.
func dieBySignal(s syscall.Signal) error { return &exit.Error{Code: 128 + int(s)} }
