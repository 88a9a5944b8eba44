package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

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
