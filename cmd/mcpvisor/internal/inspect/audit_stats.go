package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// auditStats is the report of audit --stats. Its keys are those of the JSON form.
type auditStats struct {
	File string `json:"file"`
	// Kinds counts the records that match the query; From and To are the times of the first and the last.
	Kinds map[audit.Kind]int `json:"kinds"`
	From  *time.Time         `json:"from,omitempty"`
	To    *time.Time         `json:"to,omitempty"`
	// Missing counts records that could not be written, Gaps the places where they are missing, Torn the lines that are no
	// record. Newer counts the records that a newer program wrote.
	Missing uint64 `json:"missing"`
	Gaps    int    `json:"gaps"`
	Torn    int    `json:"torn"`
	Newer   int    `json:"newer,omitempty"`
	// Mode says who else may read or write the file; empty if only its owner may.
	Mode string `json:"mode,omitempty"`
	// Running holds the counts that the running mcpvisor up keeps of its own records; nil if none runs.
	Running *runningStats `json:"running,omitempty"`
}

// runningStats holds the counts of the writer in another process.
type runningStats struct {
	// PID is the process of the running mcpvisor up.
	PID int `json:"pid"`
	audit.Stats
}

// countRecord adds a record to the counts. Records of several processes are not strictly in the order of time.
func (a *auditStats) countRecord(r audit.Record) {
	a.Kinds[r.Kind]++
	if r.IsNewer() {
		a.Newer++
	}
	if a.From == nil || r.Time.Before(*a.From) {
		a.From = &r.Time
	}
	if a.To == nil || r.Time.After(*a.To) {
		a.To = &r.Time
	}
	if r.Lost != nil {
		a.Missing += r.Lost.Records
		a.Gaps++
	}
}

// printAuditStats counts the records that match, asks a running up for the state of its writer, and prints both.
func printAuditStats(ctx context.Context, o *cli.Options, f auditFilter, path string) error {
	// The file is read whole, also what was put aside, because From should be the first record that is left.
	out := auditStats{File: path, Kinds: map[audit.Kind]int{}}
	var err error
	out.Torn, err = audit.ReadFiles(path, func(r audit.Record) bool {
		if f.matchesRecord(&r) {
			out.countRecord(r)
		}
		return ctx.Err() == nil
	})
	if err != nil {
		return exit.With(exit.Usage, err.Error())
	}
	if err := exit.InterruptedError(ctx); err != nil {
		return err
	}
	out.Mode = audit.OpenTo(path)
	// The project is opened only to ask up, and its remarks would stand among the statistics.
	quiet := *o
	quiet.Err = io.Discard
	if p, err := project.Open(ctx, &quiet); err == nil { // without a project there is no up that could be asked
		if p.Up != nil && p.Up.Audit != nil {
			out.Running = &runningStats{p.Up.PID, *p.Up.Audit}
		}
		p.Close()
	}
	if f.json {
		return terminal.PrintJSON(o.Out, out)
	}
	for _, line := range out.textLines() {
		fmt.Fprintln(o.Out, messages.Line(line, 0))
	}
	return nil
}

// textLines returns the statistics for people, one fact a line, and leaves out what is as it should be.
func (a *auditStats) textLines() []string {
	// A record that nothing has written yet is no fault: the file comes with its first line.
	lines := []string{"file: " + a.File}
	if _, err := os.Stat(a.File); err != nil {
		lines[0] += " (not there)"
	}
	if a.Mode != "" {
		lines = append(lines, "open to others: "+a.Mode+"; chmod 600 it")
	}
	var kinds []string
	total := 0
	for _, k := range slices.Sorted(maps.Keys(a.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", a.Kinds[k], k))
		total += a.Kinds[k]
	}
	records := "records: " + fmt.Sprint(total)
	if total > 0 {
		records += " (" + strings.Join(kinds, ", ") + ")"
	}
	lines = append(lines, records)
	if a.From != nil {
		lines = append(lines, "from "+a.From.Local().Format(time.DateTime)+" to "+a.To.Local().Format(time.DateTime))
	}
	if a.Gaps > 0 {
		lines = append(lines, fmt.Sprintf("missing: %d in %s: they could not be written", a.Missing, terminal.CountOf(a.Gaps, "place")))
	}
	if a.Torn > 0 {
		lines = append(lines, terminal.CountOf(a.Torn, "line")+" left out: no whole record")
	}
	if a.Newer > 0 {
		lines = append(lines, terminal.CountOf(a.Newer, "record")+" of a newer mcpvisor, counted as far as this one knows them")
	}
	if r := a.Running; r != nil {
		lines = append(lines, fmt.Sprintf("running (pid %d): %d written, %d waiting, %d lost", r.PID, r.Written, r.Waiting, r.Lost))
		if r.Failing != "" {
			lines = append(lines, "it cannot write since "+r.Since.Local().Format(time.DateTime)+": "+r.Failing)
		}
	}
	return lines
}

// AuditTrouble says in one sentence that records are lost or cannot be written; "" if all is well.
func AuditTrouble(s audit.Stats) string {
	switch {
	case s.Failing != "" && s.Lost > 0:
		return fmt.Sprintf("the record of calls cannot be written, and %d are lost: %s", s.Lost, s.Failing)
	case s.Failing != "":
		return fmt.Sprintf("the record of calls cannot be written, %d wait: %s", s.Waiting, s.Failing)
	case s.Lost > 0:
		return fmt.Sprintf("%d of the record of calls are lost; mcpvisor audit --kind lost shows where", s.Lost)
	}
	return ""
}

// reportAuditTrouble warns about trouble with the record of a running up. It does not end the command, which did its work.
func reportAuditTrouble(o *cli.Options, up *control.Hello) {
	if up == nil || up.Audit == nil {
		return
	}
	if text := AuditTrouble(*up.Audit); text != "" {
		o.WarnFailure(errors.New(text))
	}
}
