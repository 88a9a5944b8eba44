//go:build unix

package process

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// The number of a group that is gone can be given to another process. The guardian must notice that.
func TestGuardianTellsGroupsApart(t *testing.T) {
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "60")
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
	one := start()
	pgid := one.Process.Pid
	id := Identify(pgid)
	if id.Start == 0 {
		t.Fatalf("this system does not tell when process %d was started", pgid)
	}
	if !id.matchesGroup(pgid) {
		t.Error("a group is not recognised")
	}
	other := id
	other.Start++
	if other.matchesGroup(pgid) {
		t.Error("a group whose first process was started at another time is taken for ours")
	}
	EndGroups(map[int]Identity{pgid: other}, 50*time.Millisecond)
	if syscall.Kill(pgid, 0) != nil {
		t.Fatal("a stranger's group was ended")
	}

	// The first process goes, a second member stays: only the session is left to compare.
	member := exec.Command("sleep", "60")
	member.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: pgid}
	if err := member.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = member.Wait() }()
	_ = one.Process.Kill()
	_ = one.Wait()
	if !id.matchesGroup(pgid) {
		t.Error("a group without its first process is not recognised")
	}
	other = id
	other.Session++
	if other.matchesGroup(pgid) {
		t.Error("a group in another session is taken for ours")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = member.Wait() // or it stays a zombie, and counts as a member
	}()
	EndGroups(map[int]Identity{pgid: id}, 5*time.Second)
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("our group was not ended")
	}
	if id.matchesGroup(pgid) {
		t.Error("a group without members is taken for ours")
	}
}
