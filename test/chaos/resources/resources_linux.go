package resources

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Supported says what can be counted on this system.
var Supported = Capabilities{Processes: true, Descriptors: true}

// countDescriptors counts the open files, without the one that it opens to count.
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

// listProcesses reads /proc once. A process that ends meanwhile is left out.
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
	// Ids are reused while this reads, so that the parents may form a circle; the bound ends it.
	for range len(all) {
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

// readStat parses /proc/PID/stat. The second field is the program's name in parentheses and may hold any bytes, so the further
// fields are counted from the last parenthesis.
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

// readArguments reads the arguments of a process; a zombie has none.
func readArguments(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
}
