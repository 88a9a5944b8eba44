package clients

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// newDisconnect returns the command "clients disconnect", which runs disconnectClient.
func newDisconnect(o *cli.Options) *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use:   "disconnect PROGRAM",
		Short: "Take mcpvisor out of an agent's file",
		Long: `Takes the entry "mcpvisor connect" out of the files of an agent. A file that nobody has changed since mcpvisor clients connect
becomes what it was, byte for byte; from any other the entry alone is taken out. It shows what would change and asks.

Exit codes: 0 it is not there any more · 1 the file changed meanwhile · 2 nothing was changed.`,
		Example: "  mcpvisor clients disconnect cursor",
		Args:    oneProgram,
		RunE:    func(cmd *cobra.Command, args []string) error { return disconnectClient(o, cmd, args[0], f) },
	}
	f.addTo(o, cmd)
	return cmd
}

// disconnectClient takes the entry out of every file of a program that has it, or out of the one that --file names.
func disconnectClient(o *cli.Options, cmd *cobra.Command, word string, f changeFlags) error {
	program, err := programNamed(cmd, word)
	if err != nil {
		return err
	}
	m, err := thisMachine()
	if err != nil {
		return err
	}
	places := slices.DeleteFunc(foreign.Locations(m), func(p foreign.Location) bool { return p.Format != program || !p.TakesServers() })
	if f.file != "" {
		place, err := namedPlace(program, places, f.file)
		if err != nil {
			return err
		}
		places = []foreign.Location{place}
	}
	stored, err := readStore()
	if err != nil {
		return err
	}
	found := false
	for _, p := range places {
		done, err := disconnectFile(cmd.Context(), o, f, p, m.Dir, stored)
		if err != nil {
			return err
		}
		found = found || done
	}
	switch {
	case found:
	case o.JSON:
		return terminal.PrintJSON(o.Out, changeReport{Program: program})
	default:
		fmt.Fprintf(o.Out, "%s does not use mcpvisor\n", program.Title())
	}
	return nil
}

// disconnectFile takes the entry out of one file. done is false if it is not there.
func disconnectFile(ctx context.Context, o *cli.Options, f changeFlags, p foreign.Location, dir string, stored storedChanges) (done bool, err error) {
	file := filepath.FromSlash(p.Path)
	earlier, known := stored.Files[file]
	old, err := readPlace(p, dir)
	if err != nil {
		// A file of the program that was never connected is none of this command's business.
		if !known {
			return false, nil // see above
		}
		return false, err
	}
	c := &fileChange{program: p.Format, file: file, entry: entryName, before: old.Text}
	if first, ok := earlier.Splice.undo(old.Text); known && old.Text != nil && ok {
		if c.after = first; earlier.Created {
			c.after = nil
		} else if first == nil {
			c.after = []byte{}
		}
	} else if err := c.removeEntries(p, old); err != nil {
		return false, err
	}
	if c.after != nil && string(c.after) == string(c.before) || c.before == nil {
		// The entry has gone by another hand.
		if known && !f.dryRun {
			return false, updateStore(file, nil)
		}
		return false, nil
	}
	keep := func() error { return nil }
	if err := c.finishChange(ctx, o, f, keep, keep); err != nil {
		return true, err
	}
	if c.changed && known {
		err = updateStore(file, nil)
	}
	if err != nil || !o.JSON {
		return true, err
	}
	return true, terminal.PrintJSON(o.Out, c.report())
}

// removeEntries takes every entry that is mcpvisor out of the text, and leaves it as it is if there is none.
func (c *fileChange) removeEntries(p foreign.Location, old discover.ForeignFile) error {
	c.after = c.before
	for _, name := range serverNames(old) {
		if !startsMcpvisor(old.Servers[name].Spec) {
			continue
		}
		entry := foreign.StdioEntryFor(p.Format, config.File{Path: p.Path, Data: c.after}, name, "", nil, nil)
		text, err := removeEntry(p.Format, c.after, entry.Path)
		switch {
		case errors.Is(err, edit.ErrMissing):
			return refusedError(c.file, fmt.Sprintf("its entry %s stands in an unusual place, in line %d; remove it by hand",
				messages.Line(name, 60), old.Servers[name].Pos.Line))
		case err != nil:
			return editError(c.file, err)
		}
		// The person may have added variables to the entry, which are not shown.
		c.after, c.entry, c.hidden = text, name, true
	}
	return nil
}
