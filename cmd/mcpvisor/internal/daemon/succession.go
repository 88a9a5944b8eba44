package daemon

import (
	"os"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// program describes the program of a process: its version, its file, and the time that the file had when the process began.
type program struct {
	version, file string
	built         int64
}

// ownProgram returns the program of this process.
func ownProgram() program {
	file, _ := os.Executable() // without it the version decides
	return program{version: supervisor.Version(), file: file, built: client.FileTime(file)}
}

// givesWayTo reports whether a daemon of this program ends for a bridge: for one of a later version, and of the same version for one whose
// file is later. Package managers give all files of a version one time, or the time at which the version was made, so that the time alone
// does not tell. It also ends for the program that was installed in place of its own file, whatever its age.
func (p program) givesWayTo(h client.Hello) bool {
	if now := client.FileTime(p.file); now != 0 && now != p.built && now == h.Built {
		return true
	}
	if order := semver.Compare(versionOf(h.Version), versionOf(p.version)); order != 0 && h.Version != "" {
		return order > 0
	}
	return p.built != 0 && h.Built > p.built
}

// versionOf returns a version as package semver knows it.
func versionOf(version string) string { return "v" + strings.TrimPrefix(version, "v") }
