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
	ordersAt = 3
	reportAt = 4
)

func init() {
	if len(os.Args) == 1 && os.Args[0] == Name && isPipe(ordersAt) && isPipe(reportAt) &&
		unix.Getuid() == unix.Geteuid() && unix.Getgid() == unix.Getegid() {
		launch()
	}
}

func isPipe(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// launch does not return. Everything happens in one thread, because most of what is done counts for a thread alone, and
// exec ends all others.
func launch() {
	runtime.LockOSThread()
	marked := MarkDescriptors(ordersAt)
	orders, report := os.NewFile(ordersAt, "orders"), os.NewFile(reportAt, "report")
	if _, err := report.WriteString(ready); err != nil {
		os.Exit(exitFailed)
	}
	var j job
	if err := json.NewDecoder(orders).Decode(&j); err != nil {
		os.Exit(exitFailed) // the process that started this one has died
	}
	failed := fail("descriptors", "", marked)
	if failed == nil {
		failed = j.run()
	}
	if failed != nil {
		_ = json.NewEncoder(report).Encode(failed)
		os.Exit(exitFailed)
	}
	os.Exit(0)
}

const exitFailed = 126

// run takes the steps and becomes the program. It returns nil only if there is none.
func (j *job) run() *Failed {
	if failed := take(&j.Steps, j.Path); failed != nil {
		return failed
	}
	// The limits come last: they are meant for the program, and this one may need more.
	for _, l := range j.Steps.Limits {
		if failed := limit(l.Key, l.Most); failed != nil {
			return failed
		}
	}
	if j.Path == "" {
		return nil
	}
	return fail("exec", "", syscall.Exec(j.Path, j.Args, j.Env))
}

// limit sets a resource limit that nothing may raise again. One that is lower already stays.
func limit(key string, most uint64) *Failed {
	resource, known := resources[key]
	if !known {
		return fail(key, "", unix.EINVAL)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(resource, &old); err != nil {
		return fail(key, "", err)
	}
	most = min(most, old.Max)
	return fail(key, "", unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}))
}

// fail is an error of a step; nil for nil.
func fail(step, path string, err error) *Failed {
	if err == nil {
		return nil
	}
	errno := unix.EINVAL
	errors.As(err, &errno)
	return &Failed{step, path, errno}
}
