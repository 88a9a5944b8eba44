package starved_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// newGroup makes a control group with a quota, of version 2 or 1, whichever has the controller. What else runs on the machine is
// given less than the group, so that the group has its quota. Writing a process id to the file puts the process into it.
func newGroup(percent int) (procs string, end func(), err error) {
	const period = 100_000 // µs
	name := fmt.Sprintf("mcpvisor-starved-%d", os.Getpid())
	var errs []string
	quota := strconv.Itoa(percent * period / 100)
	two := map[string]string{"cpu.max": quota + " " + strconv.Itoa(period), "cpu.weight": "10000"}
	one := map[string]string{"cpu.cfs_quota_us": quota, "cpu.shares": "262144"}
	for _, v := range []struct {
		root  string
		files map[string]string
	}{
		{"/sys/fs/cgroup", two}, {"/sys/fs/cgroup/unified", two}, {"/sys/fs/cgroup/cpu", one}, {"/sys/fs/cgroup/cpu,cpuacct", one},
	} {
		dir := filepath.Join(v.root, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			errs = append(errs, err.Error())
			continue
		}
		var bad error
		for file, text := range v.files {
			bad = errors.Join(bad, tell(filepath.Join(dir, file), text))
		}
		if bad != nil {
			errs = append(errs, bad.Error())
			_ = syscall.Rmdir(dir)
			continue
		}
		return filepath.Join(dir, "cgroup.procs"), func() {
			for range 100 { // until the last process of it is reaped
				if syscall.Rmdir(dir) == nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}, nil
	}
	return "", nil, fmt.Errorf("%s", strings.Join(errs, "; "))
}

// tell writes to a file that the kernel has made. Where it is not there, none is made: a folder may be of no group at all.
func tell(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
