package e2e_test

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// Windows lists processes by another interface. What ends them there is the job object, which package stdio tests;
// here only what this process itself holds is compared, and that by its goroutines.

func childrenOf(*testing.T, int) []int { return nil }

func roleProcesses(*testing.T) []int { return nil }

func openDescriptors(*testing.T) []string { return nil }

func descendants(*testing.T, int) []int { return nil }

func awaitEnded(*testing.T, time.Duration, ...int) {}

func kill9(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
