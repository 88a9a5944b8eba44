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
		ValidArgsFunction: o.completeServer,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.showDiff(cmd, args[0], asJSON, wait) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON array")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect")
	return cmd
}

func (o *options) showDiff(cmd *cobra.Command, server string, asJSON bool, wait time.Duration) error {
	p, err := o.openProject(cmd.Context())
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
	store.Reread()
	key := pinKey(p.setup, server)
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
		o.printDiff(server, changes, turnover)
	}
	if len(changes) == 0 {
		return nil
	}
	return &exitError{code: exitFailed}
}

// printDiff shows what changed, and what came and went, which nobody needs to approve.
func (o *options) printDiff(server string, changes []pins.Change, t pins.Turnover) {
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

// pinKey is the key of a server's pins.
func pinKey(s *setup, server string) string {
	spec := s.Specs[server]
	return pins.Key(server, &spec)
}

// approvePins accepts the changed tools of a server that were shown, or with yes those that it offers now. On a terminal, what
// was not shown is shown now, and asked about.
func (o *options) approvePins(ctx context.Context, s *setup, server string, yes bool) (approved, unseen []string, err error) {
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
			return nil, nil, &exitError{exitInterrupted, "nothing was approved"}
		}
		if seen = nil; word == "yes" {
			seen = waiting
		}
	}
	approved, unseen, err = s.pins.Approve(key, seen)
	var all []audit.Record
	for _, tool := range approved {
		all = append(all, audit.Record{Change: "pin", Server: server, Tool: tool})
	}
	s.writeRecords(o, all)
	return approved, unseen, err
}

// countUnshown counts the changes that nobody was shown as they are now.
func countUnshown(waiting, seen []pins.Change) (n int) {
	for _, c := range waiting {
		if !slices.ContainsFunc(seen, func(o pins.Change) bool { return o.Tool == c.Tool && o.Hash == c.Hash }) {
			n++
		}
	}
	return n
}
