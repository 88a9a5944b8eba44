package discover

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

// Configuration is the whole configuration of a directory.
type Configuration struct {
	config.Set
	// ProjectDir is the directory of the project: the one that holds .git, or where the search began.
	ProjectDir string
	// Approvals is the store, for Approve.
	Approvals *Approvals
	// Snapshot holds the files as they were read, for a caller that follows them from here on.
	Snapshot Snapshot
}

// Load finds, reads, merges and checks the configuration, and holds back what the person did not approve. Faults of
// files and servers stand in Set.Problems. The error is a wrong value of Options, which the caller typed: Dir, Servers.
func Load(o Options) (Configuration, error) {
	r, err := Read(o)
	if err != nil {
		return Configuration{}, err
	}
	var parsed []config.Parsed
	for _, f := range r.Files {
		parsed = append(parsed, r.Parse(f))
	}
	found := Configuration{ProjectDir: r.ProjectDir, Snapshot: r}
	found.Set, found.Approvals = r.applyApprovals(config.Merge(append(parsed, r.Fixed...), r.Context))
	return found, nil
}

// Parse reads one file: in our own form, or, if it was named, in that of any program that we know.
func (r Snapshot) Parse(f config.File) config.Parsed {
	if f.Scope == messages.ScopeDynamic {
		return foreign.Parse(f, foreign.Context{Dir: r.options.Dir})
	}
	return config.Parse(f)
}
