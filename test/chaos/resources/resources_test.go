package resources_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/resources"
)

// sleeper is the argument with which the test binary becomes a process that only waits for the end of its input.
const sleeper = "house-sleeper"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sleeper {
		fmt.Println("here")
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		return
	}
	os.Exit(m.Run())
}

// startSleeper runs a sleeper, with its mark among the arguments. stop ends it without taking its status.
func startSleeper(t *testing.T, mark string) (cmd *exec.Cmd, stop func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self, sleeper, mark)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd, func() { _ = in.Close() }
}

func findProcess(pid int, o resources.Options) (resources.Process, bool) {
	for _, p := range resources.Processes(o) {
		if p.PID == pid {
			return p, true
		}
	}
	return resources.Process{}, false
}

func TestAChildIsCountedUntilItIsReaped(t *testing.T) {
	if !resources.Supported.Processes {
		t.Skip("processes cannot be seen here")
	}
	before := resources.Count(resources.Options{})
	cmd, stop := startSleeper(t, "mark-of-a-child")
	pid := cmd.Process.Pid
	if n := resources.Count(resources.Options{}).Processes; n != before.Processes+1 {
		t.Errorf("%d processes with one more than %d", n, before.Processes)
	}
	if p, ok := findProcess(pid, resources.Options{}); !ok || p.Parent != os.Getpid() || !strings.Contains(p.Command, "mark-of-a-child") {
		t.Errorf("the child is %+v, %v", p, ok)
	}
	if _, ok := findProcess(pid, resources.Options{Known: map[int]bool{pid: true}}); ok {
		t.Error("a process that was there before counts")
	}
	if !strings.Contains(resources.Arguments(pid), sleeper) {
		t.Errorf("its arguments are %q", resources.Arguments(pid))
	}
	stop()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if p, ok := findProcess(pid, resources.Options{}); ok && p.State == 'Z' {
			if !strings.HasSuffix(p.String(), "a zombie") {
				t.Errorf("it reads %q", p)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it never was a zombie")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if p, ok := findProcess(pid, resources.Options{}); ok {
		t.Errorf("it is reaped and still there: %s", p)
	}
}

// TestTheMarkFindsStrangers: a process that is no descendant is found by its arguments.
func TestTheMarkFindsStrangers(t *testing.T) {
	if !resources.Supported.Processes {
		t.Skip("processes cannot be seen here")
	}
	cmd, stop := startSleeper(t, "mark-of-a-stranger")
	defer func() { stop(); _ = cmd.Wait() }()
	self, parent := os.Getpid(), os.Getppid()
	for _, p := range resources.Processes(resources.Options{Mark: "mark-of-a-stranger"}) {
		if p.PID == self || p.PID == parent {
			t.Errorf("this process and its parent are not left: %s", p)
		}
	}
	// The first argument of our own parent is in its command line, and it is no descendant of ours.
	if words := strings.Fields(resources.Arguments(parent)); len(words) > 0 {
		if _, ok := findProcess(parent, resources.Options{Mark: words[0]}); !ok {
			t.Errorf("the parent runs %q, and the mark does not find it", words)
		}
	}
}

func TestDescriptorsAndGoroutines(t *testing.T) {
	before := resources.Count(resources.Options{})
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	go func() { <-release }()
	after := resources.Count(resources.Options{Heap: true})
	if resources.Supported.Descriptors && after.Descriptors != before.Descriptors+1 {
		t.Errorf("%d descriptors with one more than %d", after.Descriptors, before.Descriptors)
	}
	if after.Goroutines != before.Goroutines+1 {
		t.Errorf("%d goroutines with one more than %d", after.Goroutines, before.Goroutines)
	}
	if !slices.ContainsFunc(resources.Goroutines(100), func(s string) bool {
		return strings.Contains(s, "TestDescriptorsAndGoroutines")
	}) {
		t.Errorf("the goroutine is not among %q", resources.Goroutines(100))
	}
	if after.Heap <= 0 {
		t.Error("no heap")
	}
	close(release)
	_ = f.Close()
	runtime.KeepAlive(f)
}

func ExampleCount() {
	before := resources.Count(resources.Options{})
	done := make(chan struct{})
	go func() { <-done }()
	now := resources.Count(resources.Options{})
	fmt.Println(now.Goroutines-before.Goroutines, "goroutine more")
	close(done)
	// Output: 1 goroutine more
}
