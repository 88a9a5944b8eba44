package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// trees are servers that only a guardian can end: each ignores the signals that ask it to end, or stands below a process that
// does not pass them on.
const trees = `{"mcpServers": {
	"shell":    {"command": "sh", "args": ["-c", "trap '' TERM INT; fixture mcp-fixture ignores-signals for=10m; true"]},
	"launcher": {"command": "fixture", "args": ["mcp-fixture", "launcher", "depth=3"]},
	"npx":      {"command": "sh", "args": ["-c",
		"sh -c 'trap \"\" TERM; fixture mcp-fixture grandchild signals=ignore for=10m; true'; true"]},
	"deaf":     {"command": "fixture", "args": ["mcp-fixture", "ignores-signals", "for=10m"]},
	"silent":   {"command": "fixture", "args": ["mcp-fixture", "silent"], "connectTimeout": "5m"}
}}`

// treeProcesses is the number of processes of trees: 2 + 4 + 4 + 1 + 1.
const treeProcesses = 12

// TestKilledLeavesNothing checks invariants P1 and P2: seconds after a mcpvisor is killed, no process of its servers is left,
// and no guardian.
func TestKilledLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		kill func(pid int) error
	}{
		"up":            {[]string{"up", "--config", "c.json"}, killOne},
		"up, its group": {[]string{"up", "--config", "c.json", "--json"}, killGroup},
		"list":          {[]string{"list", "--config", "c.json", "--wait", "5m"}, killOne},
		"call":          {[]string{"call", "silent", "echo", "text=x", "--config", "c.json", "--timeout", "5m"}, killOne},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, trees)
			want := 2 + treeProcesses // mcpvisor and its guardian
			if c.args[0] == "call" {
				want = 2 + 1 // it starts no other server
			}
			r := p.start(c.args...)
			pids := p.grown(want)
			if err := c.kill(r.cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
			if code := r.ends(); code != -1 {
				t.Errorf("exit code %d of a process that was killed", code)
			}
			for deadline := time.Now().Add(patience); len(alive(pids)) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("processes %v of %v are left", alive(pids), pids)
				}
			}
		})
	}
}

// TestUpThatIsNotRead checks that a reader which neither reads the output nor closes it does not keep up from ending.
func TestUpThatIsNotRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t, justOne)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		t.Fatal(err)
	}
	cmd := p.command("up", "--json", "--config", "c.json")
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	p.grown(3)
	for range 4 { // each fills a part of the pipe
		if out, err := p.command("reconnect", "one").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	ended := make(chan int, 1)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- exitCode(cmd.Wait()) }()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Error("it does not end")
	}
}

// killOne kills one process, killGroup its process group.
func killOne(pid int) error   { return syscall.Kill(pid, syscall.SIGKILL) }
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// grown waits until the place has as many processes as wanted, and returns their pids.
func (p *place) grown(want int) []int {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		pids := p.processes()
		if len(pids) >= want {
			return pids
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%d processes, not %d: %q", len(pids), want, marked([]byte("HOME="+p.home+"\x00")))
		}
	}
}

// alive returns the processes that run; a zombie does not.
func alive(pids []int) []int {
	var out []int
	for _, pid := range pids {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if _, rest, ok := strings.Cut(string(stat), ") "); err == nil && ok && !strings.HasPrefix(rest, "Z") {
			out = append(out, pid)
		}
	}
	return out
}
