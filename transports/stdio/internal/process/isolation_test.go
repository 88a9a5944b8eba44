package process

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// A machine that cannot do what was asked for starts nothing and leaves nothing, unless that is allowed.
func TestAMachineThatCannotIsolateStartsNothing(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	t.Setenv("TMP", base)
	cannot := func(messages.Isolation) isolation.Capabilities {
		return isolation.Capabilities{System: "linux", Arch: "amd64", Kernel: "Linux 4.9", NoLandlock: "it has no Landlock"}
	}
	want := &messages.Isolation{PrivateTemp: true, Write: []string{}}
	kept, failed := planIsolation(want, cannot)
	var no *isolation.UnsupportedError
	if kept != nil || failed == nil || failed.Class != messages.ClassConfig || !errors.As(failed, &no) || no.Key != "write" ||
		!strings.Contains(failed.Error(), "isolation.write cannot be enforced on this machine: it has no Landlock; ") ||
		!strings.Contains(failed.Fix, `"bestEffort": true`) {
		t.Errorf("%v, %v", kept, failed)
	}
	if left, err := os.ReadDir(base); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}

	want.BestEffort = true
	kept, failed = planIsolation(want, cannot)
	if failed != nil {
		t.Fatal(failed)
	}
	if got := kept.enforcedParts().String(); got != "private temp, no new privileges, fewer system calls; "+
		"not in force: write (it has no Landlock), no look into other processes (it has no Landlock)" {
		t.Error(got)
	}
	env := kept.withTempEnv([]string{"A=b", "TMPDIR=/elsewhere", "TEMP=/elsewhere"})
	if want := []string{"A=b", "TMPDIR=" + kept.tempDir, "TMP=" + kept.tempDir, "TEMP=" + kept.tempDir}; !slices.Equal(env, want) {
		t.Error(env)
	}
	kept.releaseTemp()
	if left, err := os.ReadDir(base); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// What no machine could do is refused before a machine is asked.
func TestAnIsolationThatIsWrongIsConfig(t *testing.T) {
	_, failed := planIsolation(&messages.Isolation{Files: 1, BestEffort: true}, nil)
	if failed == nil || failed.Class != messages.ClassConfig || !strings.Contains(failed.Text, "isolation.files") {
		t.Error(failed)
	}
}

// Folders of several children of one process share a home, which goes with the last of them.
func TestPrivateFoldersShareAHome(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	t.Setenv("TMP", base)
	var h tempDir
	for range 2 { // a home that is gone is made again
		one, removeOne, err := h.makeChildDir()
		if err != nil {
			t.Fatal(err)
		}
		two, removeTwo, err := h.makeChildDir()
		if err != nil || one == two {
			t.Fatal(one, two, err)
		}
		removeStaleTemps(base) // as another process of this user, which must leave alone what is in use
		removeOne()
		if _, err := os.Stat(two); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(one); err == nil {
			t.Error("the first is left")
		}
		removeTwo()
		if left, err := os.ReadDir(base); err != nil || len(left) != 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}
