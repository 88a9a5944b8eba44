package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
)

// TestForWhichProgramsADaemonGivesWay: the version decides, and of one version the time of the file; package managers give all files one time.
// What was put in the place of the daemon's own file takes its place whatever its age.
func TestForWhichProgramsADaemonGivesWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcpvisor")
	at := time.Unix(1_000_000, 0)
	put := func(at time.Time) {
		t.Helper()
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, at); err != nil {
			t.Fatal(err)
		}
	}
	put(at)
	own := program{version: "0.2.0", file: file, built: client.FileTime(file)}
	earlier, later := at.Add(-time.Hour).UnixNano(), at.Add(time.Hour).UnixNano()
	for _, c := range []struct {
		name    string
		version string
		built   int64
		want    bool
	}{
		{"itself", "0.2.0", at.UnixNano(), false},
		{"a later file", "0.2.0", later, true},
		{"an earlier file", "0.2.0", earlier, false},
		{"a later version with the same time", "0.3.0", at.UnixNano(), true},
		{"a later version with an earlier time", "0.10.0", earlier, true},
		{"a later version without a time", "0.3.0", 0, true},
		{"an earlier version with a later time", "0.1.9", later, false},
		{"another commit", "0.2.0+abc", later, true},
		{"another commit with the same time", "0.2.0+abc", at.UnixNano(), false},
		{"what is to become this version", "0.2.0-dev", later, false},
		{"no version", "", later, true},
		{"nothing", "", 0, false},
	} {
		if got := own.givesWayTo(client.Hello{Version: c.version, Built: c.built}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	put(at.Add(-time.Hour))
	if !own.givesWayTo(client.Hello{Version: "0.1.0", Built: earlier}) {
		t.Error("it stays although an earlier version was put in its place")
	}
	if own.givesWayTo(client.Hello{Version: "0.1.0", Built: earlier - 1}) {
		t.Error("it gives way to an earlier version from another place")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if own.givesWayTo(client.Hello{Version: "0.2.0", Built: earlier}) || !own.givesWayTo(client.Hello{Version: "0.2.0", Built: later}) {
		t.Error("without its file the rest does not decide")
	}
}
