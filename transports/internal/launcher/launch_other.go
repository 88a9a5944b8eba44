//go:build !linux && !darwin

package launcher

import (
	"context"
	"errors"
	"os/exec"
	"syscall"

	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// MarkDescriptors does nothing: programs that Go starts here get the handles that are listed, and no others.
func MarkDescriptors(int) error { return nil }

// StepError is the launcher's report about a failed step; there is none on this system.
type StepError struct {
	Step, Path string
	Errno      syscall.Errno
}

// Error implements error.
func (f *StepError) Error() string { return f.Step + ": " + f.Errno.Error() }

// Unwrap returns the error of the system.
func (f *StepError) Unwrap() error { return f.Errno }

// ErrNoLauncher is the error of Wrap: no plan for this system needs a launcher.
var ErrNoLauncher = errors.New("there is no launcher on this system")

// Launch is one start; there is none on this system.
type Launch struct{}

// Wrap returns ErrNoLauncher.
func Wrap(*exec.Cmd, isolation.Steps) (*Launch, error) { return nil, ErrNoLauncher }

// Abandon has nothing to release.
func (l *Launch) Abandon() {}

// Finish returns ErrNoLauncher.
func (l *Launch) Finish(context.Context) error { return ErrNoLauncher }
