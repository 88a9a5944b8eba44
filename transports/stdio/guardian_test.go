//go:build unix

package stdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// playManager starts servers that do not end by themselves, prints every process id, and lives for ever. It runs in a
// process of its own, which the test kills.
func init() { roles["manager"] = playManager }

func playManager(arg string) {
	must := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(97)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=guardian")
	guardian, err := stdio.StartGuardian(cmd)
	must(err)
	pids := []int{cmd.Process.Pid}
	for _, role := range []string{"deaf", "launcher:deaf", "launcher:launcher:deaf", "stubborn", "script"} {
		cfg := asRole(role)
		cfg.Guard = guardian
		r := &transporttest.Recorder{}
		c, err := stdio.New(cfg).Dial(context.Background(), r)
		must(err)
		pids = append(pids, c.Info().PID)
		if child, launched := strings.CutPrefix(role, "launcher:"); launched {
			n := 1 + strings.Count(child, "launcher")
			for len(children(r)) < n {
				time.Sleep(5 * time.Millisecond)
			}
			pids = append(pids, children(r)...)
		}
	}
	fmt.Println("pids", strings.Trim(fmt.Sprint(pids), "[]"))
	if arg == "exits" {
		os.Exit(0) // without closing anything
	}
	time.Sleep(5 * time.Minute) // not for ever: a test that fails may leave it
}

// children are the process ids that launchers have printed.
func children(r *transporttest.Recorder) (pids []int) {
	for _, m := range r.Messages() {
		var line struct{ Child int }
		if json.Unmarshal(m, &line) == nil && line.Child > 0 {
			pids = append(pids, line.Child)
		}
	}
	return pids
}

// startManager starts a manager in a process group of its own and returns the process ids of the guardian and of all
// its servers and their children.
func startManager(t *testing.T, arg string) (cmd *exec.Cmd, pids []int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVariable+"=manager:"+arg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "pids ") {
		t.Fatalf("the manager said %q, %v", line, err)
	}
	for _, f := range strings.Fields(line)[1:] {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatalf("the manager said %q", line)
		}
		pids = append(pids, pid)
	}
	return cmd, pids
}

// running reports whether a process runs. A zombie does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err) || syscall.Kill(pid, 0) != syscall.ESRCH
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func waitGone(t *testing.T, bound time.Duration, pids ...int) {
	t.Helper()
	deadline := time.Now().Add(bound)
	for {
		var left []int
		for _, pid := range pids {
			if running(pid) {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes %v of %v are left after %v", left, pids, bound)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// P1, P2: a manager that is killed leaves no process behind, not even those that its servers have started and that
// ignore every request to end. The guardian ends too.
func TestGuardianEndsWhatAKilledManagerLeaves(t *testing.T) {
	t.Parallel() // it waits most of the time
	for name, kill := range map[string]func(*exec.Cmd) error{
		"kill -9":              func(c *exec.Cmd) error { return c.Process.Kill() },
		"kill -9 of the group": func(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) },
		"Ctrl-C":               func(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGINT) },
		"hang-up":              func(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGHUP) },
		"a crash":              func(c *exec.Cmd) error { return c.Process.Signal(syscall.SIGABRT) },
		"it exits and forgets": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "hang-up" && signal.Ignored(syscall.SIGHUP) {
				t.Skip("this process ignores SIGHUP (nohup), and so does what it starts")
			}
			arg := "stays"
			if kill == nil {
				arg = "exits"
			}
			cmd, pids := startManager(t, arg)
			if kill != nil {
				for _, pid := range pids {
					if !running(pid) {
						t.Fatalf("process %d of %v does not run", pid, pids)
					}
				}
				if err := kill(cmd); err != nil {
					t.Fatal(err)
				}
			}
			waitGone(t, time.Minute, pids...)
		})
	}
}

// A guardian that gets the signals of a terminal, or of a shutdown, goes on guarding.
func TestGuardianIgnoresSignals(t *testing.T) {
	t.Parallel() // it waits most of the time
	cmd, pids := startManager(t, "stays")
	guardian := pids[0]
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE} {
		deadline := time.Now().Add(childBound)
		// It may not have come as far as ignoring them.
		for !ignoresSignal(guardian, s) {
			if time.Now().After(deadline) {
				t.Fatalf("the guardian does not ignore %v", s)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := syscall.Kill(guardian, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitGone(t, childBound, pids...)
}

// ignoresSignal reads the mask of ignored signals, where the system shows it.
func ignoresSignal(pid int, s syscall.Signal) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		time.Sleep(500 * time.Millisecond)
		return true
	}
	_, rest, ok := strings.Cut(string(b), "SigIgn:\t")
	if !ok {
		return false
	}
	mask, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	return err == nil && mask&(1<<(uint(s)-1)) != 0
}

// startGuardian starts a guardian of this process.
func startGuardian(t *testing.T) (*stdio.Guardian, *exec.Cmd) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVariable+"=guardian")
	g, err := stdio.StartGuardian(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g, cmd
}

// startStranger starts a process in a group of its own that nothing of ours has started.
func startStranger(t *testing.T) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVariable+"=deaf")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestGuardianLeavesReleasedGroupsAlone(t *testing.T) {
	t.Parallel() // it waits most of the time
	g, _ := startGuardian(t)
	kept, ended := startStranger(t), startStranger(t)
	release := g.Watch(kept.Process.Pid)
	release()
	release() // harmless
	g.Watch(ended.Process.Pid)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatalf("the second Close: %v", err)
	}
	_ = ended.Wait()
	if running(ended.Process.Pid) {
		t.Error("a group that was watched is left")
	}
	if !running(kept.Process.Pid) {
		t.Error("a group that was released was ended")
	}
}

// A guardian that was killed is noticed, and costs the servers nothing.
func TestGuardianThatDiedIsNoticed(t *testing.T) {
	g, cmd := startGuardian(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-g.Done():
	case <-time.After(childBound):
		t.Fatal("Done is not closed")
	}
	release := g.Watch(startStranger(t).Process.Pid)
	release()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestGuardianThatCannotStart(t *testing.T) {
	g, err := stdio.StartGuardian(exec.Command("/no/such/guardian"))
	if err == nil {
		_ = g.Close()
		t.Fatal("no error")
	}
	t.Log(err)
}
