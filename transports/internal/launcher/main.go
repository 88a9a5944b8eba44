//go:build linux || darwin

package launcher

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Name is the only argument of a launcher, in the place of the program's name.
const Name = "mcpvisor-launcher"

// The descriptors of a launcher besides the three of every program.
const (
	ordersFD = 3
	reportFD = 4
)

func init() {
	if len(os.Args) == 1 && os.Args[0] == Name && isPipe(ordersFD) && isPipe(reportFD) &&
		unix.Getuid() == unix.Geteuid() && unix.Getgid() == unix.Getegid() {
		runLauncher()
	}
}

func isPipe(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// runLauncher does not return. Everything happens in one thread, because most of what is done counts for a thread alone, and
// exec ends all others.
func runLauncher() {
	runtime.LockOSThread()
	marked := MarkDescriptors(ordersFD)
	orders, report := os.NewFile(ordersFD, "orders"), os.NewFile(reportFD, "report")
	if _, err := report.WriteString(readyMessage); err != nil {
		os.Exit(exitFailed)
	}
	var j launchOrder
	if err := json.NewDecoder(orders).Decode(&j); err != nil {
		os.Exit(exitFailed) // the process that started this one has died
	}
	failed := newStepError("descriptors", "", marked)
	if failed == nil {
		failed = j.becomeProgram()
	}
	if failed != nil {
		_ = json.NewEncoder(report).Encode(failed)
		os.Exit(exitFailed)
	}
	os.Exit(0)
}

const exitFailed = 126

// becomeProgram takes the steps and becomes the program. It returns nil only if there is none.
func (j *launchOrder) becomeProgram() *StepError {
	if failed := performSteps(&j.Steps, j.Path); failed != nil {
		return failed
	}
	// The limits come last: they are meant for the program, and this one may need more.
	for _, l := range j.Steps.Limits {
		if failed := setLimit(l.Key, l.Most); failed != nil {
			return failed
		}
	}
	if j.Path == "" {
		return nil
	}
	return newStepError("exec", "", syscall.Exec(j.Path, j.Args, j.Env))
}

// setLimit sets a resource limit that nothing may raise again. One that is lower already stays.
func setLimit(key string, most uint64) *StepError {
	resource, known := resources[key]
	if !known {
		return newStepError(key, "", unix.EINVAL)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(resource, &old); err != nil {
		return newStepError(key, "", err)
	}
	most = min(most, old.Max)
	return newStepError(key, "", unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}))
}

// newStepError is an error of a step; nil for nil.
func newStepError(step, path string, err error) *StepError {
	if err == nil {
		return nil
	}
	errno := unix.EINVAL
	errors.As(err, &errno)
	return &StepError{step, path, errno}
}
