//go:build !linux && !darwin

package launcher

import (
	"context"
	"errors"
	"os/exec"
	"syscall"

	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// MarkDescriptors does nothing: programs that Go starts here are given the handles that are listed, and no others.
func MarkDescriptors(int) error { return nil }

// StepError is the launcher's message about a step that it could not take.
type StepError struct {
	Step, Path string
	Errno      syscall.Errno
}

// Error implements error.
func (f *StepError) Error() string { return f.Step + ": " + f.Errno.Error() }

// Unwrap gives what the system said.
func (f *StepError) Unwrap() error { return f.Errno }

// ErrNoLauncher is the error of Wrap: nothing is planned for this system that needs one.
var ErrNoLauncher = errors.New("there is no launcher on this system")

// Launch is one start.
type Launch struct{}

// Wrap fails.
func Wrap(*exec.Cmd, isolation.Steps) (*Launch, error) { return nil, ErrNoLauncher }

// Abandon does nothing.
func (l *Launch) Abandon() {}

// Finish fails.
func (l *Launch) Finish(context.Context) error { return ErrNoLauncher }
