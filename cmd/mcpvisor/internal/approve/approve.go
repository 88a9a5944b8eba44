// Package approve holds the commands by which a person decides what may run and be called: approve, diff and permissions.
//
// How it fits: a [Screen] shows the person an entry of another person's file whole, with what follows from it. The person approves exactly
// the entry that was shown, whether approve, the beginning of up, import or the installation from a registry asks. The decisions
// are stored by supervisor/discover and supervisor/pins, and written to the record of calls.
//
//	approve.go, questions.go   entries of project files: what waits, and the questions at a terminal
//	screen.go                  what is shown of an entry
//	diff.go                    changed definitions of tools, against the pins
//	permissions.go             the rules about calls: shown, tested and written into the person's own file
//
// Guarantees: nothing is approved that was not shown or printed as it is at that moment; an entry that changes in between is
// refused. A screen cuts no text of the entry. Without a terminal no question is asked, and what a script approves is printed whole
// for its log.
//
// Not promised: that a tool behaves as its definition says. An approval is about texts, commands and files.
package approve

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// NewApprove returns the command "approve", which runs approveServers: it approves entries of project files, and changed
// definitions of tools.
func NewApprove(o *cli.Options) *cobra.Command {
	var f approveFlags
	cmd := &cobra.Command{
		Use:   "approve [SERVER…]",
		Short: "Approve servers that a project file configures, and tools that changed",
		Long: `A server of a project file that was merely found starts only after you approved it: the file may be
somebody else's work, and its commands run with your rights. Without arguments the servers that wait are shown, each
whole and as it is written, with what follows from it; what deserves a look begins with an exclamation mark.

What was shown is what is approved. At a terminal a server that was not shown, or that changed since, is shown and asked about.
Without a terminal one that was never shown is printed whole to standard error and then approved, so that the log of a script holds
what it approved; one that changed since it was shown is printed and not approved. --yes prints and approves both. --hash
approves only what --json has printed under that hash: the way for a script to approve what a person has looked at.

An approval holds for the whole entry in its file and its directory, for the names of the variables in its envFile, and it knows
the files of the project that the entry names. A changed entry asks again, new variables are left out until they are approved,
and changed files are said; with "approve": "files", in the entry or in your own file, they ask, too.

It also accepts changed tools of a server, as "mcpvisor diff SERVER" has shown them; what was not shown is shown and asked
about at a terminal, and accepted as it is with --yes. When it is done, a running "mcpvisor up" has them.

Exit codes: 0 done · 2 usage or configuration, or tools that changed and were not shown.`,
		Example: `  mcpvisor approve
  mcpvisor approve files`,
		ValidArgsFunction: project.CompleteWith(o, completeWaiting),
		RunE:              func(cmd *cobra.Command, args []string) error { return approveServers(o, cmd, args, f) },
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "approve every server that waits")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "approve servers and changed tools that nobody was shown, too")
	cmd.Flags().StringVar(&f.hash, "hash", "", "approve the server only as --json has shown it under this `hash`")
	cmd.Flags().BoolVarP(&f.asJSON, "json", "j", false, "print a JSON array")
	return cmd
}

// approveFlags holds the flags of approve.
type approveFlags struct {
	// yes approves what was not shown as it is now; it is printed all the same.
	all, yes, asJSON bool
	// hash is the one that approve --json has printed for the one server that is named; empty for any.
	hash string
}

// approval is the outcome for one server. Its keys are those of the JSON form.
type approval struct {
	Server string `json:"server"`
	// Waits is true in the list of servers that wait for an approval, which approve prints without arguments.
	Waits bool `json:"waits,omitempty"`
	// Approved says that this command approved the entry. Tools are the changed tools that it accepted, Unseen those that it
	// did not accept because the person was not shown them as they are now.
	Approved bool     `json:"approved"`
	Tools    []string `json:"tools,omitempty"`
	Unseen   []string `json:"unseen,omitempty"`
	Runs     string   `json:"runs"`
	Source   string   `json:"source,omitempty"`
	approvalJSON
}

// approveServers runs approve: it chooses which of the named servers (or all that wait) to approve, stores the approvals,
// accepts their changed tools, and waits until a running up offers them. Tools that changed without being shown make it end
// with an error after everything else is done.
func approveServers(o *cli.Options, cmd *cobra.Command, names []string, f approveFlags) error {
	if f.all && len(names) > 0 {
		return exit.UsageError(cmd, "--all and the name of a server exclude each other")
	}
	if o.Approve {
		return exit.UsageError(cmd, "--approve is for the commands that start servers; here it would leave nothing to approve")
	}
	s, err := project.LoadSetup(o)
	if err != nil {
		return err
	}
	if f.hash != "" && len(names) != 1 {
		return exit.UsageError(cmd, "--hash is for one server: mcpvisor approve NAME --hash HASH")
	}
	if f.yes && !f.all && len(names) == 0 {
		return exit.UsageError(cmd, "--yes is for servers that are named: mcpvisor approve NAME… --yes, or mcpvisor approve --all --yes")
	}
	// A stale server is one whose approval no longer fits its entry or files; it is treated like one that was never approved.
	held := slices.Concat(discover.AwaitingApproval(s.Set), discover.Stale(s.Set))
	slices.Sort(held)
	held = slices.Compact(held)
	for _, name := range names {
		if _, ok := s.Specs[name]; !ok {
			return project.UnknownServerError("approve", name, s.ServerNames(), s)
		}
	}
	// A person who names nothing wants to look first; --all says that they have looked.
	switch {
	case f.all:
		names = held
	case len(names) == 0:
		return printWaiting(o, s, held, f.asJSON)
	}
	if len(names) == 0 {
		if f.asJSON {
			return terminal.PrintJSON(o.Out, []approval{})
		}
		fmt.Fprintln(o.Out, "no server waits for an approval")
		return nil
	}
	chosen, err := chooseApproved(cmd.Context(), o, s, names, held, f)
	if err != nil {
		return err
	}
	if len(chosen) > 0 {
		if err := s.Approvals.Approve(s.Set, chosen...); err != nil {
			return err
		}
	}
	// The record comes after the store: it must not tell of an approval that could not be kept.
	RecordApprovals(s, o, chosen)
	var all []approval
	for _, name := range names {
		a := approvalOf(s, name)
		a.Approved = slices.Contains(chosen, name)
		// A server that still waits starts nothing, so that its tools cannot be accepted yet.
		if _, waits := s.Waiting[name]; !waits {
			if a.Tools, a.Unseen, err = approvePins(cmd.Context(), o, s, name, f.yes); err != nil {
				return err
			}
		}
		all = append(all, a)
	}
	awaitOffered(cmd.Context(), o, all)
	if f.asJSON {
		err = terminal.PrintJSON(o.Out, all)
	} else {
		printApprovals(o, all, slices.DeleteFunc(slices.Clone(held), func(name string) bool { return slices.Contains(chosen, name) }))
	}
	for _, a := range all {
		if err == nil && len(a.Unseen) > 0 {
			return exit.With(exit.Usage, fmt.Sprintf("%s: %s changed and was not shown as it is now; see: mcpvisor diff %s",
				messages.Line(a.Server, 60), messages.Line(strings.Join(a.Unseen, ", "), 200), terminal.ShellWord(a.Server)))
		}
	}
	return err
}

// printApprovals prints one or more lines for each server. declined names the servers that wait and were not approved now.
func printApprovals(o *cli.Options, all []approval, declined []string) {
	for _, a := range all {
		for _, tool := range a.Tools {
			fmt.Fprintf(o.Out, "%s: approved as it is now\n", messages.DisplayName(a.Server, tool))
		}
		switch {
		case a.Approved:
			fmt.Fprintf(o.Out, "%s: approved  %s\n", messages.Line(a.Server, 60), a.Runs)
		case slices.Contains(declined, a.Server):
			fmt.Fprintf(o.Out, "%s: not approved\n", messages.Line(a.Server, 60))
		case len(a.Tools)+len(a.Unseen) == 0:
			fmt.Fprintf(o.Out, "%s: needs no approval  %s\n", messages.Line(a.Server, 60), a.Runs)
		}
	}
}

// approvalTimeout bounds the wait until a running up offers what was approved.
const approvalTimeout = 5 * time.Second

// awaitOffered returns when a running mcpvisor up offers the tools that were approved, or after approvalTimeout. Without this
// wait a script that approves and then calls would have its call refused for what it has approved.
func awaitOffered(ctx context.Context, o *cli.Options, all []approval) {
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	// The wait is a courtesy, so that its remarks would only disturb; the report is printed by the caller.
	quiet := *o
	quiet.Err = io.Discard
	p, err := project.Open(ctx, &quiet)
	if err != nil {
		return // the approval is stored all the same
	}
	defer p.Close()
	if p.Up == nil {
		return
	}
	if slices.ContainsFunc(all, func(a approval) bool { return a.Approved }) {
		p.ReloadUp(ctx)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := p.Status(ctx, control.StatusQuery{})
		if err != nil || !slices.ContainsFunc(all, func(a approval) bool { return stillChanged(a, now) }) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stillChanged reports whether one of the tools that were approved is still marked as changed in the status.
func stillChanged(a approval, now []messages.Status) bool {
	return slices.ContainsFunc(now, func(st messages.Status) bool {
		return st.Name == a.Server && slices.ContainsFunc(st.ChangedTools, func(c messages.ChangedTool) bool {
			return slices.Contains(a.Tools, c.Name)
		})
	})
}

// printWaiting prints the servers that wait, whole, and marks them as shown: a later approve NAME approves what stands on this
// screen, unless the entry changes in between.
func printWaiting(o *cli.Options, s *project.Setup, held []string, asJSON bool) error {
	if asJSON {
		all := []approval{}
		for _, name := range held {
			a := approvalOf(s, name)
			a.Waits = true
			all = append(all, a)
		}
		s.Approvals.MarkShown(s.Set, held...)
		return terminal.PrintJSON(o.Out, all)
	}
	if len(held) == 0 {
		fmt.Fprintln(o.Out, "no server waits for an approval")
		return nil
	}
	for i, name := range held {
		if v, ok := ScreenOf(s, name); ok {
			if i > 0 {
				fmt.Fprintln(o.Out)
			}
			v.PrintTo(o.Out)
		}
	}
	s.Approvals.MarkShown(s.Set, held...)
	fmt.Fprintln(o.Out, "\nApprove with: mcpvisor approve NAME…, or mcpvisor approve --all")
	return nil
}

// approvalOf returns the report of a server, with the entry that an approval would bind. The candidate may differ from the spec
// that counts, since an unapproved entry counts for nothing.
func approvalOf(s *project.Setup, name string) approval {
	spec := s.Specs[name]
	if c, ok := discover.ApprovalCandidate(s.Set, name); ok {
		spec = c.Spec
	}
	return approval{Server: name, Runs: status.StartText(spec), Source: spec.Source, approvalJSON: approvalJSONOf(s, name)}
}

// chooseApproved returns which of the named servers to approve: those that the person was shown as they are now, those that a
// flag approves unseen, and those that the person agrees to at the terminal. It returns an error, and approves nothing, if
// --hash does not match or a server changed since it was shown and the person cannot be asked.
func chooseApproved(ctx context.Context, o *cli.Options, s *project.Setup, names, held []string, f approveFlags) (chosen []string, err error) {
	var ask, unseen []string
	for _, name := range names {
		hash := approvalJSONOf(s, name).Hash
		now, ever := s.Approvals.WasShown(s.Set, name)
		switch {
		case f.hash != "" && hash != f.hash:
			return nil, exit.With(exit.Usage, fmt.Sprintf("%s is not what has that hash, and is not approved; see: mcpvisor approve --json",
				messages.Line(name, 60)))
		case !slices.Contains(held, name):
		case f.hash != "", now:
			chosen = append(chosen, name)
		// Without a terminal a server that was never shown is approved and printed for the log of the script. One that changed
		// after it was shown is not, because the script's author has decided about another entry.
		case f.yes, !ever && (f.asJSON || !o.Prompter.HasTerminal()):
			chosen, unseen = append(chosen, name), append(unseen, name)
		default:
			ask = append(ask, name)
		}
	}
	if !f.asJSON { // the JSON report holds all of it
		printScreens(o, s, unseen)
	}
	if len(ask) == 0 {
		return chosen, nil
	}
	if o.Prompter.HasTerminal() && !f.asJSON {
		yes, err := askEach(ctx, o, s, ask, "start")
		return append(chosen, yes...), err
	}
	printScreens(o, s, ask)
	return nil, exit.With(exit.Usage, fmt.Sprintf("%s changed since it was shown, and nothing is approved; look at it above and approve it "+
		"with the same command again", messages.Line(strings.Join(ask, ", "), 200)))
}

// printScreens prints the screens of servers whole on standard error, for runs without a person at the terminal: the log of the
// script then holds what was approved. It marks the servers as shown.
func printScreens(o *cli.Options, s *project.Setup, names []string) {
	for _, name := range names {
		if v, ok := ScreenOf(s, name); ok {
			v.PrintTo(o.Err)
		}
	}
	s.Approvals.MarkShown(s.Set, names...)
}

// startTextOf returns the start text of a server of the setup.
func startTextOf(s *project.Setup, name string) string { return status.StartText(s.Specs[name]) }

// RecordApprovals adds an approval to the record for each name. If that fails the approval holds all the same, and the failure
// is reported.
func RecordApprovals(s *project.Setup, o *cli.Options, names []string) {
	var all []audit.Record
	for _, name := range names {
		all = append(all, audit.Record{Change: "approve", Server: name, Detail: startTextOf(s, name) + " from " + s.Specs[name].Source})
	}
	s.WriteRecords(o, all)
}

// completeWaiting offers the servers that wait for an approval, with what each would start.
func completeWaiting(o *cli.Options, _ *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	q := o.WithoutOutput()
	if q.ApplyFlags() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	s, err := project.LoadSetup(q)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, name := range discover.AwaitingApproval(s.Set) {
		if !slices.Contains(args, name) {
			out = append(out, cobra.CompletionWithDesc(messages.Line(name, 0), startTextOf(s, name)))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
