//go:build unix

package e2e_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childrenOf is the process ids of a process's own children, zombies among them.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	var pids []int
	for _, p := range listProcesses(t) {
		if p.parent == pid {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// roleProcesses is the processes that this test binary plays, wherever they have gone.
func roleProcesses(t *testing.T) []int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range listProcesses(t) {
		if p.pid != os.Getpid() && !p.zombie && strings.HasPrefix(p.command, self+" ") {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// descendants is everything below a process.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	all := listProcesses(t)
	below := []int{pid}
	for i := 0; i < len(below); i++ {
		for _, p := range all {
			if p.parent == below[i] && !slices.Contains(below, p.pid) {
				below = append(below, p.pid)
			}
		}
	}
	return below[1:]
}

// runningProcesses is those of the process ids that run. A zombie does not.
func runningProcesses(t *testing.T, pids ...int) []int {
	t.Helper()
	var alive []int
	for _, p := range listProcesses(t) {
		if !p.zombie && slices.Contains(pids, p.pid) {
			alive = append(alive, p.pid)
		}
	}
	return alive
}

// awaitEnded waits until none of the processes runs.
func awaitEnded(t *testing.T, d time.Duration, pids ...int) {
	t.Helper()
	if !isEventually(d, func() bool { return len(runningProcesses(t, pids...)) == 0 }) {
		t.Errorf("processes %v of %v are left after %v", runningProcesses(t, pids...), pids, d)
	}
}

// openDescriptors returns the file descriptors of this process, with what each leads to.
func openDescriptors(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	open := make([]string, len(entries))
	for i, e := range entries {
		target, _ := os.Readlink("/dev/fd/" + e.Name()) // that of the folder itself is closed already
		open[i] = e.Name() + " " + target
	}
	return open
}

func kill9(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("no process to kill: %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill -9 %d: %v", pid, err)
	}
}

// ownGroup makes cmd the first of a process group, and killGroup ends the group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
