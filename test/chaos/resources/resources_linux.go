package resources

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Supported is what can be seen here.
var Supported = Capabilities{Processes: true, Descriptors: true}

// countDescriptors counts the open files, without the one that counts them.
func countDescriptors() int {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0
	}
	return len(names) - 1
}

// listProcesses reads /proc once. What ended meanwhile is not there.
func listProcesses(mark string) []Process {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	all := map[int]Process{}
	for _, file := range files {
		if p, ok := readStat(file); ok {
			all[p.PID] = p
		}
	}
	self := os.Getpid()
	var found []Process
	for pid, p := range all {
		if pid == self {
			continue
		}
		ours := isDescendant(all, p, self)
		if !ours && mark == "" {
			continue
		}
		full := readArguments(pid)
		if !ours && !strings.Contains(full, mark) {
			continue
		}
		if full != "" {
			p.Command = messages.Line(full, 200)
		}
		found = append(found, p)
	}
	return found
}

// isDescendant reports whether a process was started by ancestor or its descendants.
func isDescendant(all map[int]Process, p Process, ancestor int) bool {
	for range len(all) { // numbers are given anew: a circle is possible while we read
		if p.Parent == ancestor {
			return true
		}
		next, ok := all[p.Parent]
		if !ok {
			return false
		}
		p = next
	}
	return false
}

// readStat parses /proc/PID/stat. The second field is the program's name in parentheses and may hold anything, so the fields
// are counted from the last parenthesis.
func readStat(file string) (Process, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Process{}, false
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	fields := bytes.Fields(b[end+1:])
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:open])))
	if err != nil || len(fields) < 2 {
		return Process{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return Process{PID: pid, Parent: parent, State: fields[0][0], Command: messages.Line(string(b[open+1:end]), 40)}, err == nil
}

func readArguments(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
}
