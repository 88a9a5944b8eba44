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

// launchOrder is the parent's message to the launcher: the program, and the steps before it.
type launchOrder struct {
	// Path is the program; if it is empty, the launcher performs the steps and exits with success.
	Path  string          `json:"path"`
	Args  []string        `json:"args"`
	Env   []string        `json:"env"`
	Steps isolation.Steps `json:"steps"`
}

// StepError is the launcher's report about a step that it could not perform.
type StepError struct {
	// Step is a key of the configuration, or "exec" for the start of the program itself.
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

// Unwrap returns the error of the system, so that errors.Is finds it.
func (f *StepError) Unwrap() error { return f.Errno }

// ErrNoLauncher is wrapped by the error of Finish if the started process does not behave as a launcher. The commonest reason is
// that this package was loaded into a program that is not written in Go, which does not run this package's init.
var ErrNoLauncher = errors.New("this program cannot be started as a launcher of its servers")

// Launch is one start. The goroutine that calls Wrap owns it.
type Launch struct {
	// job is sent by Finish; cmd starts the launcher.
	job            launchOrder
	cmd            *exec.Cmd
	orders, report *os.File   // this process's ends of the pipes
	childFiles     []*os.File // the launcher's ends
}

// Wrap makes cmd start the launcher, which becomes the program that cmd describes now. cmd.Env must be set, and cmd.ExtraFiles
// must not. After Wrap has returned nil, the caller must call Finish if cmd was started, else Abandon.
func Wrap(cmd *exec.Cmd, steps isolation.Steps) (*Launch, error) {
	l := &Launch{job: launchOrder{cmd.Path, cmd.Args, cmd.Env, steps}, cmd: cmd}
	// The launcher is this very file: another version of it might not understand the order.
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

// launcherEnv returns the variables of this process that the launcher gets: those that the system's loader and Go's runtime read.
// Every program of the user can read the launcher's environment while it runs, so that no secret may be in it.
func launcherEnv(own []string) []string {
	return slices.DeleteFunc(slices.Clone(own), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(neededVariables, name)
	})
}

// neededVariables are the names that launcherEnv passes on: search paths of the loader, and variables that Go's runtime reads.
var neededVariables = []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
	"GODEBUG", "GOMAXPROCS", "GOMEMLIMIT", "GOCOVERDIR", "GORACE"}

// Abandon closes the pipes that Wrap has opened. It may be called after Finish, which calls it, too.
func (l *Launch) Abandon() {
	for _, f := range append(l.childFiles, l.orders, l.report) {
		_ = f.Close()
	}
}

// readyMessage is the launcher's first message. It proves that init has run, before the parent sends anything secret.
const readyMessage = "launcher\n"

// readyTimeout bounds the wait for readyMessage. A launcher needs a few milliseconds, a busy machine more.
const readyTimeout = 20 * time.Second

// Finish sends the order to the launcher, and returns when the program runs or cannot. The error is a *StepError, wraps
// ErrNoLauncher, or is that of ctx. After an error the caller must end the process and wait for it.
func (l *Launch) Finish(ctx context.Context) error {
	// This process must not hold the launcher's ends, or it would not see them closed.
	defer l.Abandon()
	for _, f := range l.childFiles {
		_ = f.Close()
	}
	// Deadlines in the past end the reads and writes below when ctx ends.
	over := time.Unix(1, 0)
	stop := context.AfterFunc(ctx, func() {
		_ = l.orders.SetDeadline(over)
		_ = l.report.SetDeadline(over)
	})
	defer stop()
	_ = l.report.SetReadDeadline(time.Now().Add(readyTimeout))
	// Nothing of the program is sent before the other side has shown that it is a launcher.
	greeting := make([]byte, len(readyMessage))
	if _, err := io.ReadFull(l.report, greeting); err != nil || string(greeting) != readyMessage {
		return l.finishError(ctx, err)
	}
	if _ = l.report.SetReadDeadline(time.Time{}); ctx.Err() != nil { // the end of ctx may have set the deadline that this has cleared
		return ctx.Err()
	}
	// The launcher waits for its order, and needs the mapping of its user before it may switch the loopback on.
	if l.job.Steps.Loopback {
		if err := mapUser(l.cmd.Process.Pid); err != nil {
			return newStepError("network", "", err)
		}
	}
	if err := json.NewEncoder(l.orders).Encode(l.job); err != nil {
		return l.finishError(ctx, err)
	}
	_ = l.orders.Close()
	// The pipe ends when the program is executed, because it is close-on-exec. A report is far shorter than the limit.
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

// finishError is the error for a launcher that broke the conversation; the end of ctx counts first.
func (l *Launch) finishError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ErrNoLauncher, errors.Join(err))
}

// Try performs the steps in a process that exits then, and returns the step that failed. Package
// stdio/internal/process finds out so whether namespaces are allowed.
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
