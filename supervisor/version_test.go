package supervisor

import (
	"runtime/debug"
	"testing"
)

func TestTheVersionIsThatOfTheSourceAndTheCommit(t *testing.T) {
	ours := debug.Module{Path: modulePath, Version: "v0.0.0-20261123010101-2047bc5d1f0a"}
	other := debug.Module{Path: "example.com/agent", Version: "v9.9.9"}
	commit := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "2047bc5d1f0aaaaabbbb"}}
	modified := append(commit[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for _, c := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"nothing is known", nil, release},
		{"this module, without version control", &debug.BuildInfo{Main: ours}, release},
		{"this module at a commit", &debug.BuildInfo{Main: ours, Settings: commit}, release + "+2047bc5d1f0a"},
		{"this module with changed files", &debug.BuildInfo{Main: ours, Settings: modified}, release + "+2047bc5d1f0a.modified"},
		{"a release in another program, whose own commit is not ours",
			&debug.BuildInfo{Main: other, Settings: commit, Deps: []*debug.Module{{Path: modulePath, Version: "v0.1.0"}}}, "v0.1.0"},
		{"a checkout in another program",
			&debug.BuildInfo{Main: other, Deps: []*debug.Module{{Path: modulePath, Version: "v0.1.0", Replace: &debug.Module{Path: "../mcpvisor"}}}}, release},
	} {
		if got := versionOf(c.info); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
