package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
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

// auditFile returns where the record is kept and how it is rotated; nil if no record is kept. The order is: --audit or
// --no-audit, then the configuration files, then the state directory.
func (s *setup) auditFile(o *options) *audit.File {
	var c config.Audit
	if s.Audit != nil {
		c = *s.Audit
	}
	if o.audit.off || c.Off && o.audit.file == "" {
		return nil
	}
	f := &audit.File{Path: o.audit.file, MaxSize: c.MaxSize, Keep: c.Keep, KeepFor: time.Duration(c.KeepFor)}
	if f.Path == "" {
		f.Path = c.File
	}
	if f.Path == "" {
		location, err := control.LocationOf(s.ProjectDir)
		if err != nil {
			return nil // openProject reports the same error
		}
		f.Path = location.Audit
	} else if abs, err := filepath.Abs(f.Path); err == nil {
		// A later change of the directory must not move the record.
		f.Path = abs
	}
	return f
}

// auditOptions returns how records are written: with the command's logger, and with arguments as the files say.
func (s *setup) auditOptions(o *options) audit.Options {
	out := audit.Options{Logger: o.newLogger()}
	if s.Audit != nil {
		out.Arguments = audit.Arguments(s.Audit.Arguments)
	}
	return out
}

// enableAudit makes a manager keep the record.
func (s *setup) enableAudit(o *options, cfg *supervisor.Config) {
	if f := s.auditFile(o); f != nil {
		cfg.Audit, cfg.AuditOptions, cfg.AuditProject = f, s.auditOptions(o), s.ProjectDir
	}
}

// recordApprovals adds an approval to the record for each name. If that fails the approval holds all the same, and the failure
// is reported.
func recordApprovals(s *setup, o *options, names []string) {
	var all []audit.Record
	for _, name := range names {
		all = append(all, audit.Record{Change: "approve", Server: name, Detail: startTextOf(s, name) + " from " + s.Specs[name].Source})
	}
	s.writeRecords(o, all)
}

// recordChanges adds to the record what this command changed in a file. It reads the setup to find the record; if that fails,
// nothing is recorded, and the change stands.
func recordChanges(o *options, file string, all ...audit.Record) {
	s, _ := loadSetup(o)
	if s == nil {
		return
	}
	for i := range all {
		all[i].Kind, all[i].Detail = audit.KindChange, strings.TrimSpace(all[i].Detail+" in "+file)
	}
	s.writeRecords(o, all)
}

// writeRecords appends records as this person's; a record without a kind is an approval. It waits up to five seconds until they
// are on disk.
func (s *setup) writeRecords(o *options, all []audit.Record) {
	f := s.auditFile(o)
	if f == nil || len(all) == 0 {
		return
	}
	l := audit.New(f, s.auditOptions(o))
	for _, r := range all {
		if r.Kind == "" {
			r.Kind = audit.KindApproval
		}
		r.Who, r.Via = audit.User(), "command"
		l.Add(r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		o.warnFailure(err)
	}
}
