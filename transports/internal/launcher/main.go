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

// Name is the only argument of a launcher, in place of the program's name. Process lists show it for some milliseconds.
const Name = "mcpvisor-launcher"

// The descriptors of a launcher besides the three of every program.
const (
	ordersFD = 3
	reportFD = 4
)

// init turns a process that Wrap has prepared into the launcher, before main and any of its flags.
func init() {
	if len(os.Args) == 1 && os.Args[0] == Name && isPipe(ordersFD) && isPipe(reportFD) &&
		unix.Getuid() == unix.Geteuid() && unix.Getgid() == unix.Getegid() {
		runLauncher()
	}
}

// isPipe reports whether a descriptor is a pipe, and not one that a shell has left open by chance.
func isPipe(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// runLauncher does not return. It stays on one thread, because most steps count for a single thread, and exec ends all others.
func runLauncher() {
	runtime.LockOSThread()
	// The descriptors of the parent are marked first, so that no program ever gets one. The result is reported below.
	marked := MarkDescriptors(ordersFD)
	orders, report := os.NewFile(ordersFD, "orders"), os.NewFile(reportFD, "report")
	if _, err := report.WriteString(readyMessage); err != nil {
		os.Exit(exitFailed)
	}
	var j launchOrder
	if err := json.NewDecoder(orders).Decode(&j); err != nil {
		// The parent has died: there is no program to start.
		os.Exit(exitFailed)
	}
	// The error of marking is reported like one of a step.
	failed := newStepError("descriptors", "", marked)
	if failed == nil {
		failed = j.becomeProgram()
	}
	if failed != nil {
		_ = json.NewEncoder(report).Encode(failed)
		os.Exit(exitFailed)
	}
	// Only Try's order gets here: its steps were performed and there is no program.
	os.Exit(0)
}

// exitFailed is the exit status of a launcher that became no program, as shells use it for a program that cannot be executed.
const exitFailed = 126

// becomeProgram performs the steps and executes the program. It returns nil only if the order names no program, for Try.
func (j *launchOrder) becomeProgram() *StepError {
	if failed := performSteps(&j.Steps, j.Path); failed != nil {
		return failed
	}
	// The limits come last, because they are meant for the program, and the launcher itself may need more.
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

// setLimit sets a resource limit that the program cannot raise again. A limit that is lower already stays.
func setLimit(key string, most uint64) *StepError {
	resource, known := resources[key]
	if !known {
		return newStepError(key, "", unix.EINVAL)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(resource, &old); err != nil {
		return newStepError(key, "", err)
	}
	// A process without rights may not raise the hard limit, so that a lower one is kept.
	most = min(most, old.Max)
	return newStepError(key, "", unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}))
}

// newStepError makes the report about a failed step; nil for a nil err. An error without a number of the system becomes EINVAL.
func newStepError(step, path string, err error) *StepError {
	if err == nil {
		return nil
	}
	errno := unix.EINVAL
	errors.As(err, &errno)
	return &StepError{step, path, errno}
}
