//go:build linux || darwin

package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// launchOrder holds everything that the launcher is told.
type launchOrder struct {
	Path  string          `json:"path"` // empty: take the steps and end well
	Args  []string        `json:"args"`
	Env   []string        `json:"env"`
	Steps isolation.Steps `json:"steps"`
}

// StepError is the launcher's message about a step that it could not take.
type StepError struct {
	// Step is a key of the configuration, or "exec" for the program itself.
	Step string `json:"step"`
	// Path is the file of the step, if it has one.
	Path string `json:"path,omitempty"`
	// Errno is the error of the system.
	Errno syscall.Errno `json:"errno"`
}

// Error implements error.
func (f *StepError) Error() string {
	if f.Path != "" {
		return fmt.Sprintf("%s: %s: %s", f.Step, f.Path, f.Errno.Error())
	}
	return f.Step + ": " + f.Errno.Error()
}

// Unwrap gives what the system said.
func (f *StepError) Unwrap() error { return f.Errno }

// ErrNoLauncher is wrapped by the error of Finish if what was started does not behave as a launcher. The commonest reason is
// that this package was loaded into a program that is not written in Go.
var ErrNoLauncher = errors.New("this program cannot be started as a launcher of its servers")

// Launch is one start.
type Launch struct {
	job            launchOrder
	cmd            *exec.Cmd
	orders, report *os.File   // our ends
	childFiles     []*os.File // the launcher's
}

// Wrap makes cmd start the launcher, which becomes what cmd says now. cmd.Env must be set, and cmd.ExtraFiles must not. After
// Wrap has returned nil, Finish must be called if cmd was started, else Abandon.
func Wrap(cmd *exec.Cmd, steps isolation.Steps) (*Launch, error) {
	l := &Launch{job: launchOrder{cmd.Path, cmd.Args, cmd.Env, steps}, cmd: cmd}
	self, err := ownProgram()
	if err != nil {
		return nil, err
	}
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	report, theirReport, err := os.Pipe()
	if err != nil {
		_, _ = theirOrders.Close(), orders.Close()
		return nil, err
	}
	l.orders, l.report, l.childFiles = orders, report, []*os.File{theirOrders, theirReport}
	cmd.Path, cmd.Args, cmd.Env, cmd.ExtraFiles = self, []string{Name}, launcherEnv(os.Environ()), l.childFiles
	if steps.Loopback {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		addNamespaces(cmd.SysProcAttr)
	}
	return l, nil
}

// launcherEnv returns the variables of this process that the launcher is given: those that the system's loader and Go's runtime need. The launcher
// can be read by every program of the user for as long as it runs, so it gets none of the secrets.
func launcherEnv(own []string) []string {
	return slices.DeleteFunc(slices.Clone(own), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(neededVariables, name)
	})
}

var neededVariables = []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
	"GODEBUG", "GOMAXPROCS", "GOMEMLIMIT", "GOCOVERDIR", "GORACE"}

// Abandon releases what Wrap has opened.
func (l *Launch) Abandon() {
	for _, f := range append(l.childFiles, l.orders, l.report) {
		_ = f.Close()
	}
}

// readyMessage is the first message of the launcher.
const readyMessage = "launcher\n"

// readyTimeout is how long what was started may take to say so. This program needs a few milliseconds.
const readyTimeout = 20 * time.Second

// Finish tells the launcher what to do, and returns when the program runs or cannot. The error is a *Failed, wraps
// ErrNoLauncher, or is that of ctx. After an error the process must be ended and waited for.
func (l *Launch) Finish(ctx context.Context) error {
	defer l.Abandon()
	for _, f := range l.childFiles {
		_ = f.Close()
	}
	over := time.Unix(1, 0)
	stop := context.AfterFunc(ctx, func() {
		_ = l.orders.SetDeadline(over)
		_ = l.report.SetDeadline(over)
	})
	defer stop()
	_ = l.report.SetReadDeadline(time.Now().Add(readyTimeout))
	greeting := make([]byte, len(readyMessage))
	if _, err := io.ReadFull(l.report, greeting); err != nil || string(greeting) != readyMessage {
		return l.finishError(ctx, err)
	}
	if _ = l.report.SetReadDeadline(time.Time{}); ctx.Err() != nil { // which may have set the one that this has cleared
		return ctx.Err()
	}
	if l.job.Steps.Loopback {
		if err := mapUser(l.cmd.Process.Pid); err != nil {
			return newStepError("network", "", err)
		}
	}
	if err := json.NewEncoder(l.orders).Encode(l.job); err != nil {
		return l.finishError(ctx, err)
	}
	_ = l.orders.Close()
	// The pipe ends when the program is executed. A failure is far shorter than the limit.
	reply, err := io.ReadAll(io.LimitReader(l.report, 64<<10))
	switch {
	case err != nil:
		return l.finishError(ctx, err)
	case len(reply) == 0:
		return nil
	}
	var failed StepError
	if err := json.Unmarshal(reply, &failed); err != nil {
		return l.finishError(ctx, err)
	}
	return &failed
}

func (l *Launch) finishError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ErrNoLauncher, errors.Join(err))
}

// Try takes the steps in a process that ends then, and reports what kept it from them.
func Try(ctx context.Context, steps isolation.Steps) error {
	cmd := &exec.Cmd{Env: []string{}}
	l, err := Wrap(cmd, steps)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		l.Abandon()
		return err
	}
	err = l.Finish(ctx)
	_ = cmd.Process.Kill() // it has ended, or is of no use
	_ = cmd.Wait()
	return err
}
