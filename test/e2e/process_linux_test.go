package e2e_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// process is one process as the system shows it. A zombie is not running, and not gone.
type process struct {
	pid, parent int
	zombie      bool
	command     string // its arguments
}

// listProcesses lists every process of the machine that this one may see.
func listProcesses(t *testing.T) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended since
		}
		// pid (any name) state ppid pgrp …
		_, rest, ok := cutLast(string(raw), ") ")
		f := strings.Fields(rest)
		if !ok || len(f) < 2 {
			continue
		}
		p := process{pid: pid, zombie: f[0] == "Z" || f[0] == "X"}
		p.parent, _ = strconv.Atoi(f[1])
		command, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline") // it may have ended since
		p.command = strings.ReplaceAll(string(command), "\x00", " ")
		all = append(all, p)
	}
	return all
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
