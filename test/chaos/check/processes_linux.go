package check

import (
	"bytes"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// countsTree says whether this system shows which processes a process has started.
const countsTree = true

// readStat reads /proc/PID/stat. The second field is the program's name in parentheses and may hold any bytes, so the further
// fields are counted from the last parenthesis. ok is false if the process does not exist.
func readStat(pid int) (p process, parent int, state byte, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, 0, 0, false
	}
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from {
		return p, 0, 0, false
	}
	f := bytes.Fields(b[to+1:])
	if len(f) < 20 {
		return p, 0, 0, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	start, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	return process{pid, string(b[from+1 : to]), start}, parent, f[0][0], err1 == nil && err2 == nil
}

// processTree returns a process and all its descendants, without zombies.
func processTree(root int) (tree []process) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, parent, state, ok := readStat(pid); ok && state != 'Z' && state != 'X' {
			children[parent] = append(children[parent], p)
			if pid == root {
				tree = append(tree, p)
			}
		}
	}
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		for _, p := range children[todo[0]] {
			tree = append(tree, p)
			todo = append(todo, p.pid)
		}
	}
	return slices.Clip(tree)
}

// isRunning reports whether this process still runs. The start time tells it from a later process with the same id.
func (p process) isRunning() bool {
	now, _, state, ok := readStat(p.pid)
	return ok && now.start == p.start && state != 'Z' && state != 'X'
}

// kill kills the process, if it still runs.
func (p process) kill() {
	if p.isRunning() {
		// The process may have ended since the check.
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
}
