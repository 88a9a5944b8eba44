package procinfo

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of /proc/PID/stat: USER_HZ is 100 on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// UsageOf adds up what a process and at most 63 of its descendants have used. A process that ends during the reading is left out.
// The error is that of the first one: it has ended, or cannot be read.
func UsageOf(pid int) (Usage, error) {
	var w Usage
	// The tree is walked breadth first, so that the nearest descendants count when there are too many.
	tree := []int{pid}
	for i := 0; i < len(tree); i++ {
		dir := "/proc/" + strconv.Itoa(tree[i])
		cpu, err := cpuOf(dir)
		if err != nil {
			// Without the first process there is nothing to tell; a missing descendant only makes the sum smaller.
			if i == 0 {
				return Usage{}, err
			}
			continue
		}
		w.CPU += cpu
		w.IOBytes += ioBytesOf(dir)
		waited, children := threadsOf(dir)
		w.CPUWait += waited
		for _, child := range children {
			if len(tree) < maxTree {
				tree = append(tree, child)
			}
		}
	}
	return w, nil
}

// cpuOf returns the time that a process and the children that it has waited for spent on a processor: fields 14 to 17 of stat.
func cpuOf(dir string) (time.Duration, error) {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0, err
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 15 {
		return 0, fmt.Errorf("a process is described with %d fields", len(f))
	}
	var ticks int64
	for _, field := range f[11:15] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// ioBytesOf adds up rchar and wchar of /proc/PID/io; 0 if the file may not be read.
func ioBytesOf(dir string) (sum uint64) {
	b, _ := os.ReadFile(dir + "/io")
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(": "))
		if s := string(name); s == "rchar" || s == "wchar" {
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
			sum += n
		}
	}
	return sum
}

// threadsOf returns the time of the thread that has waited longest for a processor, and the children of all threads. The kernel
// lists the children of each thread apart.
func threadsOf(dir string) (waited time.Duration, children []int) {
	open, err := os.Open(dir + "/task")
	if err != nil {
		return 0, nil
	}
	defer open.Close()
	// A process may have thousands of threads; the first ones suffice.
	threads, _ := open.Readdirnames(maxThreads)
	for _, thread := range threads {
		b, _ := os.ReadFile(dir + "/task/" + thread + "/schedstat") // the times on a processor and waiting for one, and the number of turns
		if f := bytes.Fields(b); len(f) == 3 {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			waited = max(waited, time.Duration(n))
		}
		b, _ = os.ReadFile(dir + "/task/" + thread + "/children")
		for _, f := range bytes.Fields(b) {
			if pid, err := strconv.Atoi(string(f)); err == nil && len(children) < maxTree {
				children = append(children, pid)
			}
		}
	}
	return waited, children
}
