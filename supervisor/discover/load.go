package discover

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

// Configuration is the whole configuration of a directory, the result of [Load].
type Configuration struct {
	config.Set
	// ProjectDir is the directory of the project: the one that holds .git, or the one where the search began.
	ProjectDir string
	// Approvals is the store as it was read, on which the caller can call Approve.
	Approvals *Approvals
	// Snapshot holds the files as they were read. A caller that follows the files compares later readings with it.
	Snapshot Snapshot
}

// Load finds, reads, merges and checks the configuration, and holds back servers that the person did not approve.
// Faults of files and servers stand in Set.Problems. The error concerns a wrong value of Options, which the caller
// typed: Dir or Servers.
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
	parsed = append(parsed, r.Fixed...)
	found.Set, found.Approvals = r.applyApprovals(config.Merge(parsed, r.Context))
	r.Omit(parsed, found.Specs)
	return found, nil
}

// Parse reads one file: a named one in the form of any known program, a found one in mcpvisor's own form only.
func (r Snapshot) Parse(f config.File) config.Parsed {
	if f.Scope == messages.ScopeDynamic {
		return foreign.Parse(f, foreign.Context{Dir: r.options.Dir})
	}
	return config.Parse(f)
}
