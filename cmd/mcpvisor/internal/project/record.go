package project

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// AuditFile returns where the record is kept and how it is rotated; nil if no record is kept. The order is: --audit or
// --no-audit, then the configuration files, then the state directory.
func (s *Setup) AuditFile(o *cli.Options) *audit.File {
	var c config.Audit
	if s.Audit != nil {
		c = *s.Audit
	}
	if o.Audit.Off || c.Off && o.Audit.File == "" {
		return nil
	}
	f := &audit.File{Path: o.Audit.File, MaxSize: c.MaxSize, Keep: c.Keep, KeepFor: time.Duration(c.KeepFor)}
	if f.Path == "" {
		f.Path = c.File
	}
	if f.Path == "" {
		location, err := control.LocationOf(s.ProjectDir)
		if err != nil {
			return nil // Open reports the same error
		}
		f.Path = location.Audit
	} else if abs, err := filepath.Abs(f.Path); err == nil {
		// A later change of the directory must not move the record.
		f.Path = abs
	}
	return f
}

// auditOptions returns how records are written: with the command's logger, and with arguments as the files say.
func (s *Setup) auditOptions(o *cli.Options) audit.Options {
	out := audit.Options{Logger: o.NewLogger()}
	if s.Audit != nil {
		out.Arguments = audit.Arguments(s.Audit.Arguments)
	}
	return out
}

// enableAudit makes a manager keep the record.
func (s *Setup) enableAudit(o *cli.Options, cfg *supervisor.Config) {
	if f := s.AuditFile(o); f != nil {
		cfg.Audit, cfg.AuditOptions, cfg.AuditProject = f, s.auditOptions(o), s.ProjectDir
	}
}

// WriteRecords appends records as this person's; a record without a kind is an approval. It waits up to five seconds until they
// are on disk.
func (s *Setup) WriteRecords(o *cli.Options, all []audit.Record) {
	f := s.AuditFile(o)
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
		o.WarnFailure(err)
	}
}

// RecordChanges adds to the record what this command changed in a file. It reads the setup to find the record; if that fails,
// nothing is recorded, and the change stands.
func RecordChanges(o *cli.Options, file string, all ...audit.Record) {
	s, _ := LoadSetup(o)
	if s == nil {
		return
	}
	for i := range all {
		all[i].Kind, all[i].Detail = audit.KindChange, strings.TrimSpace(all[i].Detail+" in "+file)
	}
	s.WriteRecords(o, all)
}
