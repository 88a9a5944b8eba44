package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
)

// newDiff returns the command "diff", which runs showDiff. approve accepts what it has shown.
func newDiff(o *options) *cobra.Command {
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
		Args:              oneServer,
		ValidArgsFunction: completeWith(o, completeServer),
		RunE:              func(cmd *cobra.Command, args []string) error { return showDiff(o, cmd, args[0], asJSON, wait) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON array")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect")
	return cmd
}

// showDiff connects the server, so that the pins know its tools of now, and prints what differs from the approved ones. Its
// exit code is 1 if a tool differs.
func showDiff(o *options, cmd *cobra.Command, server string, asJSON bool, wait time.Duration) error {
	p, err := openProject(cmd.Context(), o)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.startServers(cmd.Context(), []string{server}, nil); err != nil {
		return err
	}
	if _, err := p.awaitStatus(cmd.Context(), wait, server); err != nil {
		return err
	}
	store := p.setup.pins
	// A running up writes the pins in its own process; this rereads the file.
	store.Reread()
	key := pinKey(p.setup, server)
	// Show also marks the changes as shown, which is what approve accepts.
	changes, err := store.Show(key)
	if err != nil {
		return err
	}
	turnover := store.Turnover(key)
	if asJSON {
		if changes == nil {
			changes = []pins.Change{}
		}
		if err := printJSON(o.out, changes); err != nil {
			return err
		}
	} else {
		printDiff(o, server, changes, turnover)
	}
	if len(changes) == 0 {
		return nil
	}
	return &exitError{code: exitFailed}
}

// printDiff prints the changed tools, and below them tools that came, went or were renamed, which need no approval.
func printDiff(o *options, server string, changes []pins.Change, t pins.Turnover) {
	for _, c := range changes {
		fmt.Fprintln(o.out, strings.TrimRight(c.Text(), "\n"))
	}
	if len(changes) == 0 {
		fmt.Fprintf(o.out, "no tool of %s has changed since it was approved\n", messages.Line(server, 60))
	}
	for _, old := range slices.Sorted(maps.Keys(t.Renamed)) {
		fmt.Fprintf(o.out, "%s: is called %s now, with the same definition\n", messages.Line(old, 120), messages.Line(t.Renamed[old], 120))
	}
	if len(t.Added) > 0 {
		fmt.Fprintf(o.out, "new since the server was first seen: %s\n", joinNames(t.Added))
	}
	if len(t.Removed) > 0 {
		fmt.Fprintf(o.out, "not offered any more: %s\n", joinNames(t.Removed))
	}
	if len(changes) > 0 {
		fmt.Fprintf(o.out, "\nAccept this with: mcpvisor approve %s\n", shellWord(server))
	}
}

// pinKey returns the key under which the pins of a server are stored. It holds the file that configures the server, because two
// projects may give one name to different servers.
func pinKey(s *setup, server string) string {
	spec := s.Specs[server]
	return pins.Key(server, &spec)
}

// approvePins accepts the changed tools of a server that were shown to the person, or with yes all that it offers now. At a
// terminal it shows what was not shown yet and asks. unseen names the changed tools that were not accepted, because they
// changed again or were not shown.
func approvePins(ctx context.Context, o *options, s *setup, server string, yes bool) (approved, unseen []string, err error) {
	key := pinKey(s, server)
	seen := s.pins.Shown(key)
	if waiting := s.pins.Changes(key); yes {
		seen = waiting
	} else if n := countUnshown(waiting, seen); n > 0 && o.prompter.hasTerminal() {
		if waiting, err = s.pins.Show(key); err != nil {
			return nil, nil, err
		}
		word := "no"
		err := o.prompter.promptForCommand(ctx, server, func(t *conversation) error {
			for _, c := range waiting {
				t.print("%s\n", strings.TrimRight(c.Text(), "\n"))
			}
			var err error
			word, err = t.chooseWord("Accept this of "+messages.Line(server, 60)+"? [y]es or [n]o", "yes", "no")
			return err
		})
		if err != nil {
			return nil, nil, exitWith(exitInterrupted, "nothing was approved")
		}
		if seen = nil; word == "yes" {
			seen = waiting
		}
	}
	approved, unseen, err = s.pins.Approve(key, seen)
	// Each accepted tool is recorded by itself, because the record must say which definitions were approved.
	var all []audit.Record
	for _, tool := range approved {
		all = append(all, audit.Record{Change: "pin", Server: server, Tool: tool})
	}
	s.writeRecords(o, all)
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
