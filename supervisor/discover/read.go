package discover

import (
	"context"
	"os"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports/files"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Snapshot holds the files of a configuration as they are at one moment, before they are merged. It is a value; Reread
// returns a new one.
type Snapshot struct {
	// Files holds those that were found or named, lowest precedence first.
	Files []config.File
	// Fixed holds the entries of the command line, which stand above all files and do not change on a reload.
	Fixed []config.Parsed
	// Context holds everything besides their words that the meaning of entries depends on.
	Context config.Context
	// ProjectDir is the directory of the project.
	ProjectDir string
	// WatchedPaths holds the paths of the files that count, whether they exist or not, and of the store of approvals,
	// in no order.
	WatchedPaths []string

	// options has its defaults filled in.
	options Options
}

// Read finds and reads the files. The error concerns a wrong value of Options, which the caller typed: Dir or Servers.
func Read(o Options) (Snapshot, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Snapshot{}, err
	}
	flags, err := config.Flags(o.Servers)
	if err != nil {
		return Snapshot{}, err
	}
	r := Snapshot{ProjectDir: o.projectDir(), options: o}
	if o.UserOnly {
		r.ProjectDir = ""
	}
	r.Context = config.Context{Lookup: o.Lookup, ProjectDir: r.ProjectDir, HomeDir: o.Paths.Home,
		ReadFile: variablesIn(r.ProjectDir),
		Sums:     func() func(string) (string, bool) { return projectSums(r.ProjectDir) }, AllowedTransports: o.AllowedTransports, Machine: machineCapabilities}
	if len(o.Servers) > 0 {
		r.Fixed = append(r.Fixed, flags)
	}
	r.Files, r.WatchedPaths = o.findFiles()
	return r, nil
}

// machineCapabilities returns what this machine can enforce of an isolation.
func machineCapabilities(want messages.Isolation) isolation.Capabilities {
	return stdio.CapabilitiesFor(context.Background(), want)
}

// Omit removes from the specs of merged files what Options.Omit removes.
func (r Snapshot) Omit(files []config.Parsed, specs map[string]messages.Spec) {
	if r.options.Omit != nil {
		r.options.Omit(files, specs, r.Context)
	}
}

// Reread finds and reads the files anew. The content of standard input and of named pipes, which can be read only once,
// is taken from r.
func (r Snapshot) Reread() Snapshot {
	o := r.options
	var once []config.File
	// findFiles must not open these again: it would block.
	o.Files = slices.DeleteFunc(slices.Clone(o.Files), func(path string) bool {
		f, ok := r.readOnceFile(path)
		if ok {
			once = append(once, f)
		}
		return ok
	})
	r.Files, r.WatchedPaths = o.findFiles()
	// Each goes back to its place among the named files, whose order is their precedence.
	for _, f := range once {
		at := len(r.Files)
		for at > 0 && r.namedRank(r.Files[at-1]) > r.namedRank(f) {
			at--
		}
		r.Files = slices.Insert(r.Files, at, f)
	}
	return r
}

// readOnceFile returns what was read of a named file that cannot be read again, such as standard input; false for any
// other file.
func (r Snapshot) readOnceFile(path string) (config.File, bool) {
	name := displayName(path)
	// A regular file, a directory and a missing file can be looked at again.
	if info, err := os.Stat(path); path != "-" && (err != nil || info.Mode().IsRegular() || info.IsDir()) {
		return config.File{}, false
	}
	at := slices.IndexFunc(r.Files, func(f config.File) bool { return f.Path == name })
	if at < 0 {
		return config.File{}, false
	}
	return r.Files[at], true
}

// namedRank returns the index of a file among those that were named; -1 for one that was found.
func (r Snapshot) namedRank(f config.File) int {
	return slices.IndexFunc(r.options.Files, func(path string) bool { return displayName(path) == f.Path })
}

// HoldUnapproved reads the store of approvals anew and returns the set in which servers wait that the person has not
// approved as they stand.
func (r Snapshot) HoldUnapproved(set config.Set) config.Set {
	set, _ = r.applyApprovals(set)
	return set
}

// applyApprovals applies the store to the set. An unreadable store is a problem only if a server waits because of it.
func (r Snapshot) applyApprovals(set config.Set) (config.Set, *Approvals) {
	store := r.options.Paths.Approvals
	a, err := LoadApprovals(store)
	if r.options.ApproveAll {
		return trustNobody(set), a
	}
	if set = a.Apply(set); err != nil && len(AwaitingApproval(set)) > 0 {
		set.Problems = append(set.Problems, config.Problem{File: store, Text: err.Error(),
			Fix: files.FixFor(err, "it") + ", then approve again"})
	}
	return set, a
}

// ApprovalState returns bytes that change when the store of approvals, or a file of the project that it binds, may have
// changed; nil if there is no store. The reload compares them with the previous ones and does not interpret them.
func (r Snapshot) ApprovalState() []byte {
	if r.options.Paths.Approvals == "" {
		return nil
	}
	b, err := os.ReadFile(r.options.Paths.Approvals)
	if err != nil {
		return []byte(fileErrorText(err))
	}
	a := &Approvals{}
	if a.store, err = parseStore(b); err != nil {
		return b
	}
	return append(b, a.filesSignature(r.ProjectDir)...)
}
