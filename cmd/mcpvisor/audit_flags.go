package main

import (
	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// auditFlags holds the persistent flags about the record of calls, which override the person's files but not the
// organisation's.
type auditFlags struct {
	file string
	off  bool
}

// addTo adds the flags to the persistent ones of the program.
func (a *auditFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&a.file, "audit", "", "keep the record of calls in this `file`, not in the usual one (see: mcpvisor audit --help)")
	f.BoolVar(&a.off, "no-audit", false, "keep no record of calls")
}

// checkConflicts refuses flags that exclude each other, and flags that contradict a managed configuration c (nil: none).
func (a *auditFlags) checkConflicts(c *config.Audit) error {
	switch {
	case a.off && a.file != "":
		return exitWith(exitUsage, "--audit and --no-audit exclude each other")
	case (a.off || a.file != "") && c != nil && c.Managed:
		return exitWith(exitUsage, "the managed configuration says where the record of calls is kept: "+
			"--audit and --no-audit have no effect")
	}
	return nil
}
