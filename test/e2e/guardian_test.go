//go:build unix

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

const (
	managerRole  = "e2e-manager"
	guardianRole = "e2e-guardian"
)

func init() {
	roles[managerRole] = playManager
	roles[guardianRole] = func([]string) int {
		if err := stdio.RunGuardian(os.Stdin); err != nil {
			return 1
		}
		return 0
	}
}

// playManager is a program that embeds the library: it connects the servers of the file that args name, with a guardian
// if asked for one, says so, and never ends by itself.
func playManager(args []string) int {
	fail := func(err error) int {
		fmt.Println("error", err)
		return 1
	}
	var cfg supervisor.Config
	raw, err := os.ReadFile(args[0])
	if err == nil {
		err = json.Unmarshal(raw, &cfg.Servers)
	}
	if err != nil {
		return fail(err)
	}
	if args[1] == guardianRole {
		guardian, err := stdio.StartGuardian(exec.Command(os.Args[0], guardianRole))
		if err != nil {
			return fail(err)
		}
		cfg.Guard = guardian
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return fail(err)
	}
	if err := m.Settled(ctx); err != nil {
		return fail(err)
	}
	if n := len(m.ConnectedServers()); n != len(cfg.Servers) {
		return fail(fmt.Errorf("%d of %d servers are connected: %+v", n, len(cfg.Servers), m.Status()))
	}
	// A call is in flight when the end comes.
	go func() { _, _ = m.CallServerTool(context.Background(), "good", "sleep", map[string]any{"for": "1h"}) }()
	fmt.Println("ready")
	time.Sleep(time.Hour)
	return 0
}

// runManager starts one in a process group of its own and returns when its servers are connected.
func runManager(t *testing.T, specs map[string]supervisor.Spec, guard string) *exec.Cmd {
	t.Helper()
	file := t.TempDir() + "/servers.json"
	if err := os.WriteFile(file, []byte(asJSON(t, specs)), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, managerRole, file, guard)
	cmd.Stderr = t.Output()
	ownGroup(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it usually is dead already
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the manager said %q, %v", line, err)
	}
	return cmd
}

// kill -9 of a program that embeds the library, with a guardian: nothing of its servers is left a few seconds later,
// neither those that ignore every signal and their children, nor the tree under npx, nor the guardian.
func TestAKilledManagerWithAGuardianLeavesNoProcess(t *testing.T) {
	checkLeaks(t)
	command, args := peers.NPM(t).NPX(peers.Everything)
	cmd := runManager(t, map[string]supervisor.Spec{
		"npx": {Command: command, Args: args}, "good": fixtureSpec("good"), "tree": fixtureSpec("launcher", "depth=4"),
		"deaf": fixtureSpec("ignores-signals"), "grandchild": fixtureSpec("grandchild", "signals=ignore", "for=10m"),
	}, guardianRole)
	pids := descendants(t, cmd.Process.Pid)
	if len(pids) < 5+3+1+2 { // five servers, three more in the tree, a grandchild, and at least two under npx
		t.Errorf("only %d processes: %v", len(pids), pids)
	}
	begin := time.Now()
	kill9(t, cmd.Process.Pid)
	awaitEnded(t, bound, pids...)
	t.Logf("all %d processes had ended %v after kill -9 of the manager", len(pids),
		time.Since(begin).Round(time.Millisecond))
}

// Without a guardian the kernel ends the direct children, on Linux; elsewhere those end that mind the end of their
// input.
func TestAKilledManagerWithoutAGuardianLeavesNoDirectChild(t *testing.T) {
	checkLeaks(t)
	specs := map[string]supervisor.Spec{"good": fixtureSpec("good"), "deaf": fixtureSpec("ignores-signals")}
	if runtime.GOOS != "linux" {
		delete(specs, "deaf")
	}
	cmd := runManager(t, specs, "without")
	pids := childrenOf(t, cmd.Process.Pid)
	if len(pids) != len(specs) {
		t.Errorf("%v: children %v", slices.Sorted(maps.Keys(specs)), pids)
	}
	kill9(t, cmd.Process.Pid)
	awaitEnded(t, bound, pids...)
}
