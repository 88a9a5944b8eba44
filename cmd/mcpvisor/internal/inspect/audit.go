package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// auditQuery holds the flags of the command audit.
type auditQuery struct {
	servers, tools, outcomes, who, kinds []string
	since                                string
	// last is the number of records to show at the end; 0 shows all.
	last                int
	json, follow, stats bool
}

// NewAudit returns the command "audit", which runs showAudit. It only reads the record, and talks to a running up for --stats
// alone.
func NewAudit(o *cli.Options) *cobra.Command {
	var q auditQuery
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show the record of calls, reads, answers, approvals and changes",
		Long: `Shows what was done with servers, oldest first: each call with who made it, how it ended and which rule decided
about it, each read of a resource or a prompt, what was answered when a rule asked, each change of a server's phase, of the configuration and of what is
approved. Where records are missing, because they could not be written, stands how many and of what kind.

Every command that starts servers keeps the record, in audit.jsonl in the state directory of the user, which all projects
share; at 10 MiB it is put aside, five times. In a file of yours, or of the organisation:

  "audit": {"file": "/PATH/audit.jsonl", "arguments": "hash", "maxSize": 10485760, "keep": 5, "keepFor": "720h"}     or false

Of arguments it holds a hash; "redacted" adds them without secrets and cut, "full" as they are but for the secrets that
servers were given, "none" leaves out the hash too. --audit FILE reads, and writes, another file.

Exit codes: 0 whatever it shows · 2 usage, or a record that cannot be read · 130 interrupted.`,
		Example: `  mcpvisor audit --since 1h --kind call
  mcpvisor audit --server github --outcome not-sent
  mcpvisor audit --follow --json | jq -c 'select(.kind == "approval")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return showAudit(o, cmd, q) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&q.servers, "server", nil, "only what is about this `server` (repeatable)")
	f.StringSliceVar(&q.tools, "tool", nil, "only calls of this `tool` (repeatable)")
	f.StringSliceVar(&q.outcomes, "outcome", nil, "only calls and reads that ended with this `outcome`: "+outcomeWords()+" (repeatable)")
	f.StringSliceVar(&q.who, "who", nil, "only what was done on behalf of this `name` (repeatable)")
	f.StringSliceVar(&q.kinds, "kind", nil, "only records of this `kind`: "+kindWords()+" (repeatable)")
	f.StringVar(&q.since, "since", "", "only from this `time` on: 30m or 24h ago, or 2006-01-02T15:04:05Z, or 2006-01-02")
	f.IntVarP(&q.last, "last", "n", 0, "only the last so `many`")
	f.BoolVarP(&q.json, "json", "j", false, "print each record as it is, one JSON object a line")
	f.BoolVarP(&q.follow, "follow", "f", false, "go on with what is added, until Ctrl-C")
	f.BoolVar(&q.stats, "stats", false, "only count: records by kind, what is missing, and how a running mcpvisor up fares")
	return cmd
}

// auditOutcomes lists the words of --outcome: how a call can end.
var auditOutcomes = []messages.Outcome{messages.OutcomeResult, messages.OutcomeToolError, messages.OutcomeRejected,
	messages.OutcomeNotSent, messages.OutcomeUnknown}

// outcomeWords joins the words of --outcome for help and errors.
func outcomeWords() string {
	var words []string
	for _, o := range auditOutcomes {
		words = append(words, string(o))
	}
	return strings.Join(words, ", ")
}

// kindWords joins the words of --kind for help and errors.
func kindWords() string {
	var words []string
	for _, k := range audit.Kinds {
		words = append(words, string(k))
	}
	return strings.Join(words, ", ")
}

// auditFilter decides which records are shown. A record of a gap passes all filters but the time and the kind, because the lost
// records may have matched.
type auditFilter struct {
	auditQuery
	// from is the earliest time that passes; zero for all.
	from time.Time
}

// parseFilter checks the query and converts its words. Every error is a usage error. A time without a zone is local.
func (q auditQuery) parseFilter(cmd *cobra.Command, now time.Time) (f auditFilter, err error) {
	f.auditQuery = q
	for _, k := range q.kinds {
		if !slices.Contains(audit.Kinds, audit.Kind(k)) {
			return f, exit.UsageError(cmd, "--kind: %q is none; there are %s", messages.Line(k, 40), kindWords())
		}
	}
	for _, w := range q.outcomes {
		if !slices.Contains(auditOutcomes, messages.Outcome(w)) {
			return f, exit.UsageError(cmd, "--outcome: %q is none; there are %s", messages.Line(w, 40), outcomeWords())
		}
	}
	if q.last < 0 || q.last > 0 && q.follow {
		return f, exit.UsageError(cmd, "--last takes a number from 1 on, and excludes --follow")
	}
	if q.stats && (q.follow || q.last > 0) {
		return f, exit.UsageError(cmd, "--stats excludes --follow and --last")
	}
	if q.since == "" {
		return f, nil
	}
	// A duration counts back from now.
	if d, err := time.ParseDuration(q.since); err == nil && d >= 0 {
		f.from = now.Add(-d)
		return f, nil
	}
	// The forms that the record itself shows can be typed back; without a zone they are of this machine's.
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, q.since, time.Local); err == nil {
			f.from = t
			return f, nil
		}
	}
	return f, exit.UsageError(cmd, "--since: %q is no time; write 30m, 24h, or 2006-01-02T15:04:05Z", messages.Line(q.since, 40))
}

// matchesRecord reports whether a record passes. Different flags must all match, and of a repeated flag one value.
func (f *auditFilter) matchesRecord(r *audit.Record) bool {
	if r.Time.Before(f.from) {
		return false
	}
	// A gap matches --kind if records of that kind are among the lost.
	if r.Kind == audit.KindLost {
		return len(f.kinds) == 0 || slices.Contains(f.kinds, string(r.Kind)) ||
			slices.ContainsFunc(f.kinds, func(k string) bool { return r.Lost != nil && r.Lost.Kinds[audit.Kind(k)] > 0 })
	}
	among := func(list []string, word string) bool { return len(list) == 0 || slices.Contains(list, word) }
	// A change of the configuration concerns every server that it added, removed or adjusted.
	about := func(server string) bool {
		return among(f.servers, server) || slices.ContainsFunc(slices.Concat(r.Added, r.Removed, r.Adjusted), func(s string) bool {
			return slices.Contains(f.servers, s)
		})
	}
	return about(r.Server) && among(f.tools, r.Tool) && among(f.who, r.Who) && among(f.kinds, string(r.Kind)) &&
		among(f.outcomes, string(r.Outcome))
}

// showAudit prints the records that match, their counts, or with --follow also those that are added later.
func showAudit(o *cli.Options, cmd *cobra.Command, q auditQuery) error {
	f, err := q.parseFilter(cmd, time.Now())
	if err != nil {
		return err
	}
	s, err := project.LoadSetup(o)
	if s == nil {
		return err
	}
	// The record is found as the commands that write it find it.
	file := s.AuditFile(o)
	if file == nil {
		return exit.With(exit.Usage, "no record is kept here; name one with --audit FILE")
	}
	if q.stats {
		return printAuditStats(cmd.Context(), o, f, file.Path)
	}
	// ReadFiles and Follow call addRecord for each record, in order and from one goroutine.
	a := &auditReader{options: o, auditFilter: f}
	if q.follow {
		a.torn, err = audit.Follow(cmd.Context(), file.Path, a.addRecord)
	} else {
		a.torn, err = audit.ReadFiles(file.Path, func(r audit.Record) bool { return cmd.Context().Err() == nil && a.addRecord(r) })
	}
	if err != nil {
		return exit.With(exit.Usage, err.Error())
	}
	// After an interrupt the summary still says what is missing of the records that were shown.
	a.printSummary(file.Path)
	return exit.InterruptedError(cmd.Context())
}

// auditReader prints the records that pass, and counts what is missing for the summary.
type auditReader struct {
	options *cli.Options
	auditFilter
	// shown counts the records printed, newer those of them that a newer program wrote, torn the lines that are no whole record,
	// lost the records that could not be written.
	shown, newer, torn int
	lost               uint64
	// kept holds at most the last records of --last; they are printed at the end.
	kept []audit.Record
}

// addRecord takes the next record of the file. It returns false to end the reading, when standard output is closed.
func (a *auditReader) addRecord(r audit.Record) bool {
	// Lost records count although the filter may hide their gap: any of them might have matched.
	if r.Lost != nil && !r.Time.Before(a.from) {
		a.lost += r.Lost.Records
	}
	if !a.matchesRecord(&r) {
		return true
	}
	if a.last > 0 {
		if a.kept = append(a.kept, r); len(a.kept) > a.last {
			a.kept = slices.Delete(a.kept, 0, 1)
		}
		return true
	}
	return a.printRecord(&r)
}

// printRecord prints a record, and reports whether the reader of standard output still accepts it.
func (a *auditReader) printRecord(r *audit.Record) bool {
	a.shown++
	if r.IsNewer() {
		a.newer++
	}
	var err error
	if a.options.JSON {
		// In a pipe the line goes out byte for byte as it stands in the file, so that hashes over lines stay valid.
		text := string(r.Line)
		if terminal.IsTerminal(a.options.Out) {
			text = terminal.EscapeUnsafe(text)
		}
		_, err = fmt.Fprintln(a.options.Out, text)
		return err == nil
	}
	_, err = fmt.Fprintln(a.options.Out, auditLine(r))
	return err == nil
}

// printSummary prints the records of --last, and warns on standard error about a file that others may read or change, and about
// records that are missing or torn.
func (a *auditReader) printSummary(path string) {
	for i := range a.kept {
		a.printRecord(&a.kept[i])
	}
	if mode := audit.OpenTo(path); mode != "" {
		fmt.Fprintln(a.options.Err, "mcpvisor: warning: "+messages.Line(path, 0)+": "+mode+"; chmod 600 it")
	}
	if a.shown == 0 && !a.follow && !a.options.JSON {
		fmt.Fprintln(a.options.Err, "mcpvisor: nothing in "+messages.Line(path, 0)+" is such")
	}
	if a.lost > 0 {
		fmt.Fprintf(a.options.Err, "mcpvisor: %d records are missing where the record says so: they could not be written\n", a.lost)
	}
	if a.newer > 0 {
		fmt.Fprintf(a.options.Err, "mcpvisor: warning: %s: a newer mcpvisor wrote %s of these, which are shown as far as this one knows them; "+
			"upgrade mcpvisor\n", messages.Line(path, 0), terminal.CountOf(a.newer, "record"))
	}
	if a.torn > 0 {
		fmt.Fprintf(a.options.Err, "mcpvisor: %s of %s left out: no whole record\n", terminal.CountOf(a.torn, "line"), messages.Line(path, 0))
	}
}

// auditLine formats a record for people: when, what, and how it ended. Columns are wide enough for most values and cut none;
// each value is bounded to 200 runes and escaped, because servers and peers wrote some of them.
func auditLine(r *audit.Record) string {
	line := func(s string) string { return messages.Line(s, 200) }
	parts := []string{r.Time.Local().Format("2006-01-02 15:04:05.000"), fmt.Sprintf("%-8s", line(string(r.Kind)))}
	about := line(r.Server)
	if r.Tool != "" {
		about = strings.TrimPrefix(about+":"+line(r.Tool), ":")
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	text := func(label, s string) {
		if s != "" {
			add("%s%s", label, line(s))
		}
	}
	if about != "" {
		add("%-24s", about)
	}
	switch r.Kind {
	case audit.KindCall, audit.KindRead, audit.KindPrompt:
		add("%-10s", line(string(r.Outcome)))
		add("%s", (time.Duration(r.Millis * float64(time.Millisecond))).Round(100*time.Microsecond))
		if r.Attempts > 1 {
			add("sent %d times", r.Attempts)
		}
		text("", r.URI)
		text("prompt ", r.Prompt)
	case audit.KindPhase:
		add("%s → %s", line(string(r.Was)), line(string(r.Phase)))
		text("", r.Reason)
	case audit.KindLost:
		if l := r.Lost; l != nil {
			var kinds []string
			for _, k := range audit.Kinds {
				if n := l.Kinds[k]; n > 0 {
					kinds = append(kinds, fmt.Sprintf("%d %s", n, k))
				}
			}
			add("%d records of %s: %s", l.Records, l.Until.Sub(l.Since).Round(time.Millisecond), strings.Join(kinds, ", "))
			text("because ", l.Why)
		}
	case audit.KindStart:
		text("", r.Program)
		add("pid %d", r.PID)
		text("", r.Project)
	case audit.KindChange, audit.KindApproval, audit.KindAnswer, audit.KindEnd:
		text("", r.Change)
		text("", r.Detail)
		for _, list := range []struct {
			word  string
			names []string
		}{{"added", r.Added}, {"removed", r.Removed}, {"adjusted", r.Adjusted}} {
			if len(list.names) > 0 {
				add("%s %s", list.word, terminal.JoinNames(list.names))
			}
		}
	}
	// "allow" by default is the normal case, and not worth a column; "allow" by a rule is.
	if r.Decision != "" && (r.Decision != "allow" || r.Rule != "") {
		text("", strings.TrimSpace(r.Decision+" "+r.Rule))
	}
	text("answer ", r.Answer)
	if r.Outcome != messages.OutcomeToolError {
		text("", r.Error)
	}
	text("by ", r.Who)
	text("from ", r.From)
	if r.PeerPID != 0 {
		add("pid %d", r.PeerPID)
	}
	text("", messages.Escaped(r.PeerProgram))
	if len(r.Args) > 0 {
		text("", string(r.Args))
	}
	return strings.TrimRight(strings.Join(parts, "  "), " ")
}
