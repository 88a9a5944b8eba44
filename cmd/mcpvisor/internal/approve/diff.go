package approve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
)

// NewDiff returns the command "diff", which runs showDiff. approve accepts what it has shown.
func NewDiff(o *cli.Options) *cobra.Command {
	var asJSON bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "diff SERVER",
		Short: "Show how a server's tools differ from what was approved",
		Long: `Shows which tools of a server have another description, schema or annotation than when they were first seen, or
approved, line by line. Where the server's "pin" is "hold", such a tool is held back until it is approved with
"mcpvisor approve SERVER", which accepts what was shown here, and nothing that has changed again since. Characters that
nobody sees, and those that act on a terminal, stand as escapes. The first definition that was seen of a tool is trusted,
also of one that came later: what came, went or got another name is told at the end.

Exit codes: 0 nothing has changed · 1 something has · 2 usage or configuration.`,
		Example: `  mcpvisor diff files
  mcpvisor diff files --json`,
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServer),
		RunE:              func(cmd *cobra.Command, args []string) error { return showDiff(o, cmd, args[0], asJSON, wait) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON array")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect")
	return cmd
}

// showDiff connects the server, so that the pins know its tools of now, and prints what differs from the approved ones. Its
// exit code is 1 if a tool differs.
func showDiff(o *cli.Options, cmd *cobra.Command, server string, asJSON bool, wait time.Duration) error {
	p, err := project.Open(cmd.Context(), o)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.StartServers(cmd.Context(), []string{server}, nil); err != nil {
		return err
	}
	if _, err := p.AwaitStatus(cmd.Context(), wait, server); err != nil {
		return err
	}
	store := p.Setup.Pins
	// A running up writes the pins in its own process; this rereads the file.
	store.Reread()
	key := PinKey(p.Setup, server)
	// Show also marks the changes as shown, which is what approve accepts.
	changes, err := store.Show(key)
	if err != nil {
		return err
	}
	// Tools that came or went need no approval, and are told so that a rename does not pass unseen.
	turnover := store.Turnover(key)
	if asJSON {
		if changes == nil {
			changes = []pins.Change{}
		}
		if err := terminal.PrintJSON(o.Out, changes); err != nil {
			return err
		}
	} else {
		printDiff(o, server, changes, turnover)
	}
	if len(changes) == 0 {
		return nil
	}
	return &exit.Error{Code: exit.Failed}
}

// printDiff prints the changed tools, and below them tools that came, went or were renamed, which need no approval.
func printDiff(o *cli.Options, server string, changes []pins.Change, t pins.Turnover) {
	for _, c := range changes {
		fmt.Fprintln(o.Out, strings.TrimRight(c.Text(), "\n"))
	}
	if len(changes) == 0 {
		fmt.Fprintf(o.Out, "no tool of %s has changed since it was approved\n", messages.Line(server, 60))
	}
	for _, old := range slices.Sorted(maps.Keys(t.Renamed)) {
		fmt.Fprintf(o.Out, "%s: is called %s now, with the same definition\n", messages.Line(old, 120), messages.Line(t.Renamed[old], 120))
	}
	if len(t.Added) > 0 {
		fmt.Fprintf(o.Out, "new since the server was first seen: %s\n", terminal.JoinNames(t.Added))
	}
	if len(t.Removed) > 0 {
		fmt.Fprintf(o.Out, "not offered any more: %s\n", terminal.JoinNames(t.Removed))
	}
	if len(changes) > 0 {
		fmt.Fprintf(o.Out, "\nAccept this with: mcpvisor approve %s\n", terminal.ShellWord(server))
	}
}

// PinKey returns the key under which the pins of a server are stored. It holds the file that configures the server, because two
// projects may give one name to different servers.
func PinKey(s *project.Setup, server string) string {
	spec := s.Specs[server]
	return pins.Key(server, &spec)
}

// approvePins accepts the changed tools of a server that were shown to the person, or with yes all that it offers now. At a
// terminal it shows what was not shown yet and asks. unseen names the changed tools that were not accepted, because they
// changed again or were not shown.
func approvePins(ctx context.Context, o *cli.Options, s *project.Setup, server string, yes bool) (approved, unseen []string, err error) {
	key := PinKey(s, server)
	// seen are the changes that approve may accept. Pins.Approve compares them with what the server offers at that moment.
	seen := s.Pins.Shown(key)
	if waiting := s.Pins.Changes(key); yes {
		seen = waiting
	} else if n := countUnshown(waiting, seen); n > 0 && o.Prompter.HasTerminal() {
		if waiting, err = s.Pins.Show(key); err != nil {
			return nil, nil, err
		}
		word := "no"
		err := o.Prompter.PromptForCommand(ctx, server, func(t *ask.Conversation) error {
			for _, c := range waiting {
				t.Print("%s\n", strings.TrimRight(c.Text(), "\n"))
			}
			var err error
			word, err = t.ChooseWord("Accept this of "+messages.Line(server, 60)+"? [y]es or [n]o", "yes", "no")
			return err
		})
		if err != nil {
			return nil, nil, exit.With(exit.Interrupted, "nothing was approved")
		}
		if seen = nil; word == "yes" {
			seen = waiting
		}
	}
	approved, unseen, err = s.Pins.Approve(key, seen)
	// Each accepted tool is recorded by itself, because the record must say which definitions were approved.
	var all []audit.Record
	for _, tool := range approved {
		all = append(all, audit.Record{Change: "pin", Server: server, Tool: tool})
	}
	s.WriteRecords(o, all)
	return approved, unseen, err
}

// countUnshown counts the changes that were not shown in the form that they have now.
func countUnshown(waiting, seen []pins.Change) (n int) {
	for _, c := range waiting {
		if !slices.ContainsFunc(seen, func(o pins.Change) bool { return o.Tool == c.Tool && o.Hash == c.Hash }) {
			n++
		}
	}
	return n
}
