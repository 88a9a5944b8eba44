package live_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/live"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// doomedArgument is the argument with which the test binary becomes a harness that will be killed.
const doomedArgument = "live-doomed"

// markVariable is in the environment of the doomed harness, and of everything that it starts: peers are started with PATH
// and a few more, so the mark is in PATH.
const markVariable = "PATH"

// runDoomed runs servers, some of which have children in sessions of their own, ignore SIGTERM or are stopped, until the
// process is killed. It says when all are connected.
func runDoomed() {
	s := scenario.Scenario{
		Name: "doomed", Duration: messages.Duration(10 * time.Minute),
		Servers: []scenario.Group{{Name: "s", Count: 8}},
		Faults: []scenario.Fault{
			{Fault: "grandchild", On: scenario.Selector{"s-000"}},
			{Fault: "grandchild", With: map[string]string{"own-session": "true"}, On: scenario.Selector{"s-001"}},
			{Fault: "ignore-eof", On: scenario.Selector{"s-002"}},
			{Fault: "ignore-term", On: scenario.Selector{"s-003"}},
			{Fault: "stop", On: scenario.Selector{"s-004"}, At: messages.Duration(2 * time.Second)},
			{Fault: "stderr-flood", On: scenario.Selector{"s-005"}},
		},
	}
	plan, err := s.Plan(1, scenario.Real)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	said := false
	_, err = live.Run(context.Background(), plan, live.Options{Progress: func(p live.Progress) {
		if p.Connected == p.Servers && p.At > 3*time.Second && !said {
			said = true
			fmt.Println("connected")
		}
	}})
	fmt.Println("it ended by itself:", err)
	os.Exit(1)
}

// TestNothingOutlivesAKilledHarness kills the harness with SIGKILL in the middle of a run. No process is left that could end its
// servers, and no process of them is left a moment later.
func TestNothingOutlivesAKilledHarness(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "mark")
	cmd := exec.Command(self, doomedArgument)
	cmd.Env = append(os.Environ(), markVariable+"="+os.Getenv(markVariable)+":"+mark)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "connected\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	// The harness, 8 servers, 2 children of servers.
	if n := len(markedProcesses(mark)); n < 11 {
		t.Errorf("%d processes before the kill: %q", n, markedProcesses(mark))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed, and says so
	for deadline := time.Now().Add(30 * time.Second); len(markedProcesses(mark)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still there: %q", markedProcesses(mark))
		}
	}
}

// markedProcesses are the processes with the mark in their environment.
func markedProcesses(mark string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(mark)) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, filepath.Base(filepath.Dir(file))+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}
