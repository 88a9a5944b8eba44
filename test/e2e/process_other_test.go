//go:build unix && !linux

package e2e_test

import (
	"os/exec"
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

// listProcesses lists every process of the machine that this one may see, itself excepted: ps is a child of it.
func listProcesses(t *testing.T) []process {
	t.Helper()
	cmd := exec.Command("ps", "-axo", "pid=,ppid=,stat=,command=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []process
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		var p process
		p.pid, _ = strconv.Atoi(f[0])
		p.parent, _ = strconv.Atoi(f[1])
		p.zombie = strings.HasPrefix(f[2], "Z")
		p.command = strings.Join(f[3:], " ")
		if p.pid != cmd.Process.Pid {
			all = append(all, p)
		}
	}
	return all
}
