package cli

import (
	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// auditFlags holds the persistent flags about the record of calls, which override the person's files but not the
// organisation's.
type auditFlags struct {
	File string
	Off  bool
}

// addTo adds the flags to the persistent ones of the program.
func (a *auditFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&a.File, "audit", "", "keep the record of calls in this `file`, not in the usual one (see: mcpvisor audit --help)")
	f.BoolVar(&a.Off, "no-audit", false, "keep no record of calls")
}

// CheckConflicts refuses flags that exclude each other, and flags that contradict a managed configuration c (nil: none).
func (a *auditFlags) CheckConflicts(c *config.Audit) error {
	switch {
	case a.Off && a.File != "":
		return exit.With(exit.Usage, "--audit and --no-audit exclude each other")
	case (a.Off || a.File != "") && c != nil && c.Managed:
		return exit.With(exit.Usage, "the managed configuration says where the record of calls is kept: "+
			"--audit and --no-audit have no effect")
	}
	return nil
}
