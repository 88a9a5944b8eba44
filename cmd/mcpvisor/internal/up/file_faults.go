package up

import (
	"bytes"
	"slices"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// fileFaults finds what is wrong with configuration files that another process follows. That process does not report the faults here,
// and a person who changes a file looks at this display.
type fileFaults struct {
	// seen are the files as they were when their faults were last reported, and latest as they were at the last look.
	seen, latest *discover.Snapshot
	reported     []config.Problem
	looks        int
}

// looksPerReading is how many looks at the servers there are for one at the files.
const looksPerReading = 3

// newFileFaults begins with files whose faults have been reported; nil stands for no files.
func newFileFaults(reading *discover.Snapshot) *fileFaults {
	f := &fileFaults{seen: reading, latest: reading}
	if reading != nil {
		f.reported = faultsOf(*reading)
	}
	return f
}

// newFaults returns the faults of files that have changed, once they have been the same at two looks: an editor writes in steps.
func (f *fileFaults) newFaults() []config.Problem {
	if f.looks++; f.seen == nil || f.looks%looksPerReading != 0 {
		return nil
	}
	now := f.latest.Reread()
	stable := sameFiles(now.Files, f.latest.Files)
	f.latest = &now
	if !stable || sameFiles(now.Files, f.seen.Files) {
		return nil
	}
	f.seen = &now
	faults := faultsOf(now)
	isNew := !slices.Equal(faults, f.reported)
	if f.reported = faults; !isNew {
		return nil
	}
	return faults
}

// faultsOf returns the errors of files; warnings are reported by config check.
func faultsOf(r discover.Snapshot) []config.Problem {
	var parsed []config.Parsed
	for _, file := range r.Files {
		parsed = append(parsed, r.Parse(file))
	}
	set := r.HoldUnapproved(config.Merge(parsed, r.Context))
	return slices.DeleteFunc(set.Problems, func(p config.Problem) bool { return p.Warning })
}

// sameFiles reports whether two readings found the same files with the same content.
func sameFiles(a, b []config.File) bool {
	return slices.EqualFunc(a, b, func(x, y config.File) bool {
		return x.Path == y.Path && x.Err == y.Err && bytes.Equal(x.Data, y.Data)
	})
}
