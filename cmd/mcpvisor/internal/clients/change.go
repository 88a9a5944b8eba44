package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// changeFlags holds the flags that connect and disconnect share.
type changeFlags struct {
	file        string
	dryRun, yes bool
	// project and view choose what the agent gets; connect alone has them.
	project, view string
}

// addTo adds the flags to a command.
func (f *changeFlags) addTo(o *cli.Options, cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "file", "", "change this `file` of the program; the first that exists if not given")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	o.AddJSONFlag(cmd, "print a JSON object")
	cmd.ValidArgsFunction = completeProgram
}

// changeReport is one changed file, as mcpvisor clients connect and clients disconnect print it with --json.
type changeReport struct {
	Program foreign.Format `json:"program"`
	File    string         `json:"file"`
	// Entry is the name of the entry.
	Entry string `json:"entry,omitempty"`
	// Changed says that the file was written; false with --dry-run, after a no, and if there is nothing to do.
	Changed bool `json:"changed"`
	// Removed is the text that the command takes out of the file, and Added the text that it writes in that place.
	Removed string `json:"removed,omitempty"`
	Added   string `json:"added,omitempty"`
}

// fileChange is the change of one file that a person is asked about.
type fileChange struct {
	program foreign.Format
	// file is the path of this system.
	file  string
	entry string
	// before is nil if there is no file, after is nil if it shall be removed.
	before, after []byte
	// was and becomes say what an entry that is replaced starts, and what the new one does; empty for any other change.
	was, becomes string
	// hidden says that what is removed may hold what the person has added to it, and is not shown.
	hidden bool
	// changed says that the file was written.
	changed bool
}

// readPlace reads the file of a place, and refuses one that must not be edited. A file that is missing has no Text.
func readPlace(p foreign.Location, dir string) (discover.ForeignFile, error) {
	file := filepath.FromSlash(p.Path)
	if problem := discover.WrittenByOthers(file); problem != "" {
		return discover.ForeignFile{}, refusedError(file, problem+"; make it yours (chown, chmod go-w)")
	}
	all := discover.ReadForeign([]foreign.Location{p}, dir)
	if len(all) == 0 {
		if target, err := os.Readlink(file); err == nil {
			return discover.ForeignFile{}, refusedError(file, "it is a link to "+messages.Line(target, 200)+", which does not exist")
		}
		return discover.ForeignFile{Location: p}, nil
	}
	f := all[0]
	if len(bytes.TrimSpace(f.Text)) > 0 && f.Broken || f.Text == nil {
		return f, refusedError(file, brokenText(f))
	}
	return f, nil
}

// refusedError returns the error about a file that is not changed.
func refusedError(file, reason string) error {
	return exit.With(exit.Usage, fmt.Sprintf("%s: it is not changed: %s", messages.Line(file, 0), reason))
}

// editError translates an error of package edit into one about a file.
func editError(file string, err error) error {
	if errors.Is(err, edit.ErrLayout) || errors.Is(err, edit.ErrNotObject) || errors.Is(err, edit.ErrTwice) {
		return refusedError(file, err.Error()+"; change it by hand")
	}
	return refusedError(file, err.Error())
}

// finishChange shows a change, asks about it and writes it. store is called directly before the file is written, and restore if that failed.
func (c *fileChange) finishChange(ctx context.Context, o *cli.Options, f changeFlags, store, restore func() error) error {
	if !o.JSON && (f.dryRun || f.yes) {
		c.printDifference(o.Out)
	}
	switch {
	case f.dryRun:
		if !o.JSON {
			fmt.Fprintln(o.Out, "Nothing was changed.")
		}
		return nil
	case f.yes:
	case !o.Prompter.HasTerminal():
		return exit.With(exit.Usage, "nobody can be asked here, so nothing was changed; add --yes, or --dry-run to look only")
	default:
		word := "no"
		err := o.Prompter.PromptForCommand(ctx, c.entry, func(t *ask.Conversation) (err error) {
			c.printDifference(t.Out)
			t.Lines.DropTyped()
			word, err = t.ChooseWord("Change this file? [y]es or [n]o", "yes", "no")
			return err
		})
		if err != nil {
			return exit.With(exit.Interrupted, "nothing was changed")
		}
		if word != "yes" {
			o.PrintRemark("nothing was changed")
			return nil
		}
	}
	if err := store(); err != nil {
		return err
	}
	if err := c.writeFile(); err != nil {
		_ = restore() // the error of the file says more
		return err
	}
	c.changed = true
	if !o.JSON {
		verb := "modified"
		if c.after == nil {
			verb = "removed"
		}
		fmt.Fprintf(o.Out, "File %s: %s\n", verb, messages.Line(c.file, 0))
	}
	return nil
}

// writeFile replaces the file if it is as it was shown.
func (c *fileChange) writeFile() error {
	changedMeanwhile := exit.With(exit.Failed, fmt.Sprintf("%s: somebody else has changed it meanwhile; nothing was changed, try again",
		messages.Line(c.file, 0)))
	if c.after == nil {
		if now, err := os.ReadFile(c.file); err != nil || !bytes.Equal(now, c.before) {
			return changedMeanwhile
		}
		if err := os.Remove(c.file); err != nil {
			return refusedError(c.file, files.PlainCause(err).Error())
		}
		return nil
	}
	err := discover.Edit(c.file, func(old []byte) ([]byte, error) {
		if !bytes.Equal(old, c.before) || (old == nil) != (c.before == nil) {
			return nil, changedMeanwhile
		}
		return c.after, nil
	})
	var coded *exit.Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return refusedError(c.file, files.PlainCause(err).Error())
}

// printDifference prints what goes and what comes, and not the lines around it, which may hold secrets.
func (c *fileChange) printDifference(w io.Writer) {
	s := spliceOf(c.before, c.after)
	part := s.Added
	if len(part) == 0 {
		part = s.Removed
	}
	// The comma behind the entry before is not what a person looks for.
	part = part[:len(part)-len(bytes.TrimLeft(part, ", \t\r\n"))]
	line := bytes.Count(c.before[:s.Offset], []byte("\n")) + bytes.Count(part, []byte("\n")) + 1
	switch {
	case c.before == nil:
		fmt.Fprintf(w, "%s · %s, a new file\n", c.program.Title(), messages.Line(c.file, 0))
	case c.after == nil:
		fmt.Fprintf(w, "%s · %s, which mcpvisor made, is removed\n", c.program.Title(), messages.Line(c.file, 0))
		return
	default:
		fmt.Fprintf(w, "%s · %s:%d\n", c.program.Title(), messages.Line(c.file, 0), line)
	}
	if c.was != "" {
		fmt.Fprintf(w, "- %s  %s\n+ %s  %s\n", c.entry, c.was, c.entry, c.becomes)
		return
	}
	if c.hidden {
		fmt.Fprintf(w, "- the entry %s, %s\n", messages.Line(c.entry, 60), terminal.CountOf(len(shownLines(s.Removed)), "line"))
	} else {
		for _, l := range shownLines(s.Removed) {
			fmt.Fprintln(w, "- "+l)
		}
	}
	for _, l := range shownLines(s.Added) {
		fmt.Fprintln(w, "+ "+l)
	}
}

// shownLines returns the lines of a part of a text, without empty ones and the comma before the first.
func shownLines(part []byte) (lines []string) {
	for l := range strings.Lines(string(part)) {
		l = strings.TrimRight(l, " \t\r\n")
		if trimmed := strings.TrimSpace(l); trimmed != "" && trimmed != "," {
			lines = append(lines, messages.Escaped(l))
		}
	}
	return lines
}

// report returns the change for --json.
func (c *fileChange) report() changeReport {
	s := spliceOf(c.before, c.after)
	r := changeReport{Program: c.program, File: c.file, Entry: c.entry, Changed: c.changed, Removed: string(s.Removed), Added: string(s.Added)}
	if c.hidden {
		r.Removed = ""
	}
	return r
}
