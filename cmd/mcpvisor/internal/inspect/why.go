package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// NewWhy returns the command "why", which runs explainServer.
func NewWhy(o *cli.Options) *cobra.Command {
	var asJSON bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "why SERVER",
		Short: "Tell what happened to a server, in order, and what to do",
		Long: `Tells what happened to a server, in order, with the end of its standard error where it failed, the next
attempt, and what can be done. A running "mcpvisor up" is asked; without one the journal of the last run tells;
and a server that no run has known is connected once, to see.`,
		Example: `  mcpvisor why files
  mcpvisor why files --json | jq -r .advice[]`,
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServer),
		RunE:              func(cmd *cobra.Command, args []string) error { return explainServer(o, cmd, args[0], asJSON, wait) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON object")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect, if it must be tried")
	return cmd
}

// serverHistory is the JSON object that why --json prints.
type serverHistory struct {
	control.History
	// Source is "running" (from up), "journal" (from the last run) or "tried" (connected by this command).
	Source string   `json:"source"`
	Advice []string `json:"advice"`
	// Started and Ended frame the run of a journal. Ended is nil if that run was killed.
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
}

// explainServer finds out what happened to a server and prints it: from the running up, else from the journal of the last run,
// else by connecting the server once. An approval that is missing is shown whole, and counts as shown.
func explainServer(o *cli.Options, cmd *cobra.Command, server string, asJSON bool, wait time.Duration) error {
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	// The journal comes first, because it costs no start; with a running up historyFromJournal knows nothing.
	s, known := historyFromJournal(p, server)
	if !known {
		if err := p.StartServers(ctx, []string{server}, nil); err != nil {
			return err
		}
		s.Source = "running"
		if p.Up == nil {
			s.Source = "tried"
			if _, err := p.AwaitStatus(ctx, wait, server); err != nil {
				return err
			}
		}
		if s.History, err = p.History(ctx, server); err != nil {
			return err
		}
	}
	// The files may say more about approvals than a journal, or an up that has not reloaded.
	all := []messages.Status{s.Status}
	addRemarks(p.Setup, all)
	s.Status = all[0]
	// Advice about a retry makes sense only while an up runs.
	s.Advice = status.Advice(s.lastFailure(), s.Withheld, s.Source == "running")
	if asJSON {
		return terminal.PrintJSON(o.Out, s)
	}
	printHistory(o, s, time.Now())
	// The person sees the whole entry here, so that approve NAME may follow without showing it again.
	if _, waits := p.Setup.Waiting[server]; waits {
		if v, ok := approve.ScreenOf(p.Setup, server); ok {
			fmt.Fprintln(o.Out, "\nWhat waits for your approval:")
			v.PrintTo(o.Out)
			p.Setup.Approvals.MarkShown(p.Setup.Set, server)
		}
	}
	reportAuditTrouble(o, p.Up)
	return nil
}

// lastFailure returns the status with what the server wrote to standard error when it failed last, for the advice. A journal
// keeps that text with its entries and not in the status.
func (s serverHistory) lastFailure() messages.Status {
	st := s.Status
	for _, e := range slices.Backward(s.Entries) {
		if st.StderrTail == "" {
			st.StderrTail = e.Stderr
		}
	}
	return st
}

// newestRun returns the newest run of a server that a journal knows: that of the project, or, for a server of the user's, that of the daemon.
func newestRun(p *project.Project, server string) (newest control.PastRun, known bool) {
	for _, path := range []string{p.ControlLocation.Journal, p.ControlLocation.UserJournal} {
		if scope := p.Setup.Specs[server].Scope; path == p.ControlLocation.UserJournal && scope != messages.ScopeUser && scope != messages.ScopeManaged {
			continue
		}
		// Lines that cannot be read are reported, and the others still tell.
		records, err := control.ReadJournal(path)
		if err != nil { // one that is not there has no error
			p.Options.WarnFailure(err)
		}
		if past, ok := control.PastRunOf(records, server); ok && (!known || past.Started.After(newest.Started)) {
			newest, known = past, true
		}
	}
	return newest, known
}

// historyFromJournal returns what the journal of the last run says about a server; ok is false if an up runs now, or the
// journal does not know the server.
func historyFromJournal(p *project.Project, server string) (serverHistory, bool) {
	if p.Up != nil || p.ControlLocation.Journal == "" {
		return serverHistory{}, false
	}
	past, ok := newestRun(p, server)
	if !ok {
		return serverHistory{}, false
	}
	s := serverHistory{History: past.History, Source: "journal"}
	if s.Status.Name == "" { // that run was killed before the server settled
		s.Status.Name, s.Status.Status = server, messages.Pending
	}
	if !past.Started.IsZero() {
		s.Started = &past.Started
	}
	if !past.Ended.IsZero() {
		s.Ended = &past.Ended
	}
	return s, true
}

// printHistory prints the history for people: where it comes from, the status, each entry with its time, standard error, and
// advice.
func printHistory(o *cli.Options, s serverHistory, now time.Time) {
	st := s.Status
	line := func(format string, args ...any) { fmt.Fprintf(o.Out, format+"\n", args...) }
	switch s.Source {
	case "journal":
		text := "No mcpvisor up is running. This is from the journal of the last one"
		if s.Started != nil {
			text += ", started " + terminal.ClockTime(*s.Started, now)
		}
		if s.Ended != nil {
			text += ", ended " + terminal.ClockTime(*s.Ended, now)
		}
		line("%s.\n", text)
	case "tried":
		line("No mcpvisor up is running and no journal knows the server: it was tried just now.\n")
	}
	head := fmt.Sprintf("%s: %s", messages.Line(st.Name, 80), status.PaintPhase(o.Out, st))
	if st.Reason != "" && s.Source == "running" { // otherwise the times in the reason mean nothing now
		head += " (" + messages.Line(st.Reason, 200) + ")"
	}
	line("%s", head)
	if what := status.TransportText(st); what != "" {
		line("  %s", what)
	}
	if text := status.IsolationText(st); text != "" {
		line("  %s", text)
	}
	if st.Remark != "" {
		line("  %s", messages.Line(st.Remark, 400))
	}
	if st.Error != "" {
		line("  last error: %s", messages.Line(st.Error, 400))
	}
	if st.InFlight > 0 || st.Queued > 0 {
		line("  %s", callsText(st))
	}
	// A changed definition is no failure of the server; the person should know of it all the same.
	for _, c := range st.ChangedTools {
		text := "it is offered all the same"
		if c.Held {
			text = "held back until it is approved"
		}
		line("  tool %s: its %s changed since it was approved; %s", messages.Line(c.Name, 100), strings.Join(c.Parts, ", "), text)
	}
	// Only a manager that runs makes another attempt.
	if at := st.NextAttempt; at != nil && s.Source == "running" {
		what := "next attempt"
		if st.Retry == messages.RetryParked {
			what = "parked after too many failures; next probe"
		}
		line("  %s: %s (%s)", what, terminal.ClockTime(*at, now), terminal.RelativeTime(*at, now))
	}
	line("")
	printEntries(o, s.Entries)
	// The entries have shown standard error already where a failure ended with it.
	if tail := strings.TrimSpace(st.StderrTail); tail != "" && !showsStderr(s.Entries) {
		line("\nThe end of what it wrote:")
		printStderr(o, tail)
	}
	if len(s.Advice) > 0 {
		line("\nWhat to do:")
		for _, a := range s.Advice {
			line("  - %s", messages.Line(a, 0))
		}
	}
}

// callsText says how many calls a server works on, and how many wait for its maxInFlight.
func callsText(st messages.Status) string {
	text := fmt.Sprintf("calls in flight: %d", st.InFlight)
	if st.Queued > 0 {
		text += fmt.Sprintf("; waiting for their turn: %d", st.Queued)
		if c := st.Config; c != nil && c.MaxInFlight > 0 {
			text += fmt.Sprintf(" (maxInFlight is %d)", c.MaxInFlight)
		}
	}
	return text
}

// printEntries prints the entries with their times, and the date where it changes.
func printEntries(o *cli.Options, entries []supervisor.HistoryEntry) {
	if len(entries) == 0 {
		fmt.Fprintln(o.Out, "  nothing has happened to it yet")
	}
	day := ""
	for _, e := range entries {
		at := e.Time.Local()
		if d := at.Format(time.DateOnly); d != day {
			day = d
			fmt.Fprintf(o.Out, "  %s\n", day)
		}
		phase := string(e.Phase)
		if e.Step != "" {
			phase = string(e.Step)
		}
		// The colour is added after the padding, because its bytes have no width.
		fmt.Fprintf(o.Out, "  %s  %s  %s\n", at.Format("15:04:05.000"),
			terminal.PaintText(o.Out, status.ColourOf(e.Phase), fmt.Sprintf("%-11s", phase)), messages.Line(e.Text, 400))
		if e.Stderr != "" {
			printStderr(o, e.Stderr)
		}
	}
}

// printStderr prints what a server wrote with "|" before each line, so that it cannot pass for words of mcpvisor.
func printStderr(o *cli.Options, text string) {
	for l := range strings.Lines(strings.TrimRight(messages.Printable(text), "\n") + "\n") {
		fmt.Fprintf(o.Out, "                  | %s", strings.TrimRight(l, "\n")+"\n")
	}
}

// showsStderr reports whether the entries show standard error already.
func showsStderr(entries []supervisor.HistoryEntry) bool {
	return slices.ContainsFunc(entries, func(e supervisor.HistoryEntry) bool { return e.Stderr != "" })
}
