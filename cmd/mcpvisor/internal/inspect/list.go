// Package inspect holds the commands that say how servers fare and what happened: list, why, ping, logs, audit and doctor.
//
// How it fits: they change nothing. Each opens a project, asks the running "mcpvisor up" or starts the servers for a moment,
// and prints statuses in the words of package status; audit reads the files of the record, and doctor looks at the machine.
//
//	list.go, preview.go    how each server fares; the preview is a table that grows until all are settled
//	why.go                 the history of one server: from a running up, from the journal of the last run, or by trying
//	ping.go, logs.go       a sign of life, and what servers write
//	audit.go               the record of calls, and with --stats its counts (audit_stats.go)
//	doctor.go              checks of this machine, one function each in doctor_checks.go
//
// Guarantees: every text of a server is cut to a length and escaped, and what it wrote to standard error is marked line by line, so
// that it cannot pass for words of mcpvisor. With --json the objects are whole.
//
// Not promised: that two commands see the same. A status is as old as its line, and without a running up each command starts the
// servers anew.
package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// NewList returns the command "list", which runs listServers. It starts the servers itself only if no up runs.
func NewList(o *cli.Options) *cobra.Command {
	var asJSON bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"status"},
		Short:   "Connect the enabled servers and say how each of them fares",
		Long: `Connects the enabled servers, waits until each is connected or has failed, prints what they are, and
ends them. While the daemon runs, or an "up" of the project, the servers of that one are listed, and go on.

A server that waits for your approval is unapproved (with --json: failed, of class denied, with a hold in its config).

On a terminal each server is shown as soon as it is settled, and the whole list at the end; elsewhere the list is printed once.
A server that is still on its way when the wait ends is printed as pending. --wait gives servers all of that time, also where
their connectTimeout is shorter, and the attempt after one that ran out of time. The command never takes longer than
--wait and three seconds. Exit code 0: every enabled server is connected (or, in the daemon or an up, lazy and
at rest). 1: one is not: it has failed, needs a sign-in, or waits for your approval. 2: a configuration file cannot be read.`,
		Example: `  mcpvisor list
  mcpvisor list --wait 1m
  mcpvisor list --json | jq -r '.[] | select(.status != "connected") | .name'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listServers(o, cmd, asJSON, wait) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON array")
	cmd.Flags().DurationVar(&wait, "wait", 15*time.Second, "how long servers may take to connect")
	return cmd
}

// listServers connects the enabled servers, or asks a running up, waits for them, and prints their statuses.
func listServers(o *cli.Options, cmd *cobra.Command, asJSON bool, wait time.Duration) error {
	// The wait includes reading the files and starting, as the help promises.
	deadline := time.Now().Add(max(wait, 0))
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.Up == nil {
		p.Setup.PrintProblems(o)
	}
	if err := p.StartServers(ctx, nil, nil); err != nil {
		return err
	}
	// shown ends the preview and waits until it is off the terminal.
	shown := func() {}
	if !asJSON {
		shown = startPreview(ctx, p)
	}
	all, err := p.AwaitStatus(ctx, max(time.Until(deadline), time.Millisecond))
	shown()
	if err != nil {
		return err
	}
	// This changes the statuses of this command only, not those of a running up.
	addRemarks(p.Setup, all)
	if asJSON {
		// The preview has been removed from the terminal by shown, so that the list begins on an empty line.
		err = terminal.PrintJSON(o.Out, all)
	} else {
		printList(o, p, all)
	}
	if err != nil {
		return err
	}
	// A file that cannot be read may name servers that are missing in the list: the exit code says so, even if all others are well.
	if broken := p.Setup.UnreadableError(); broken != nil {
		if p.Up == nil { // PrintProblems has printed it above
			return &exit.Error{Code: exit.Usage}
		}
		return broken
	}
	for _, st := range all {
		if !status.IsAsWanted(st) {
			return &exit.Error{Code: exit.Failed}
		}
	}
	return nil
}

// addRemarks adds to each status what the files say of its approval now. A running up knows only what it read at its last
// reload.
func addRemarks(s *project.Setup, all []messages.Status) {
	for i, st := range all {
		// An entry that waits beside one that is in force needs a sentence; an entry with a hold says so itself.
		text := s.Specs[st.Name].Remark
		if c, waits := s.Waiting[st.Name]; waits && s.Specs[st.Name].Hold == "" {
			text = "a server of this name in " + c.Spec.Source + " waits for your approval: mcpvisor approve " + terminal.ShellWord(st.Name)
		}
		switch {
		case text == "" || strings.Contains(st.Remark, text):
		case st.Remark == "":
			all[i].Remark = text
		default:
			all[i].Remark += "; " + text
		}
	}
}

// printList prints the table and hints for the servers that need something from the person.
func printList(o *cli.Options, p *project.Project, all []messages.Status) {
	if len(all) == 0 {
		text := p.Setup.NoServersText()
		if text != "" {
			text += project.AddServerHint
		}
		if p.Up != nil || text == "" {
			text = p.KeeperName() + " has no servers of this project"
		}
		o.PrintRemark("%s", text)
		return
	}
	t := terminal.NewTable(o.Out, "server", "status", "transport", "tools", "detail")
	detail := 0
	// The column of details takes what the others leave, and wraps; in a pipe it is not bounded.
	if columns := terminal.ColumnsOf(o.Out); columns > 0 {
		detail = max(columns-60, 30)
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 1, WidthMax: 40}, {Number: 5, WidthMax: detail}})
	now := time.Now()
	for _, st := range all {
		tools := ""
		if st.Status == messages.Connected {
			tools = fmt.Sprint(len(st.Tools))
		}
		t.AppendRow(table.Row{messages.Line(st.Name, 60), status.PaintPhase(o.Out, st),
			string(st.Transport), tools, status.DetailOf(st, now)})
	}
	terminal.PrintTable(o.Out, t)
	printHints(o, all)
	reportAuditTrouble(o, p.Up)
}

// printHints prints one hint for each kind of trouble, with the command that helps, and not one for each server.
func printHints(o *cli.Options, all []messages.Status) {
	// held counts servers that wait for an approval, failed is the first one that is not well, out are those to sign in to.
	held, failed, out := 0, "", []string{}
	for _, st := range all {
		switch {
		case status.IsUnapproved(st):
			held++
		case st.Status == messages.NeedsAuth && st.Config != nil && st.Config.AuthKind() == messages.AuthOAuth:
			out = append(out, st.Name)
		case !status.IsAsWanted(st) && failed == "":
			failed = st.Name
		}
	}
	if held > 0 {
		o.PrintRemark("%s for your approval: look at the configuration and run mcpvisor approve", waitingText(held))
	}
	if len(out) > 0 {
		o.PrintRemark("to sign in: mcpvisor login %s%s", terminal.ShellWord(out[0]), andMore(len(out)-1))
	}
	if failed != "" {
		o.PrintRemark("more about a server: mcpvisor why %s", terminal.ShellWord(failed))
	}
}

// andMore continues a sentence about the first of several servers.
func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// waitingText says how many servers wait, with the right form of the verb.
func waitingText(n int) string {
	if n == 1 {
		return "1 server waits"
	}
	return fmt.Sprintf("%d servers wait", n)
}

// PrintServer prints one line about a server, or its status with --json.
func PrintServer(o *cli.Options, st messages.Status) error {
	if o.JSON {
		return terminal.PrintJSON(o.Out, st)
	}
	text := messages.Line(st.Name, 60) + ": " + status.PaintPhase(o.Out, st)
	if detail := status.DetailOf(st, time.Now()); detail != "" {
		text += "  " + detail
	}
	_, err := fmt.Fprintln(o.Out, text)
	return err
}
