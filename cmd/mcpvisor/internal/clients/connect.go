package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// entryName is the name of the entry in every program's file.
const entryName = "mcpvisor"

// newConnect returns the command "clients connect", which runs connectClient.
func newConnect(o *cli.Options) *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use:   "connect PROGRAM",
		Short: "Make an agent use mcpvisor",
		Long: `Puts one entry into the file in which an agent keeps its servers: the command "mcpvisor connect", in the agent's own form.
It shows what would change and asks. Comments, order and everything else of the file stay, and mcpvisor clients disconnect gives the
file back as it was.

Servers that the agent has by itself stay where they are. To have them behind mcpvisor, take them over with mcpvisor import --from
PROGRAM, and remove them there.

Exit codes: 0 connected, or it was already · 1 the file changed meanwhile · 2 nothing was changed.`,
		Example: `  mcpvisor clients connect claude-code
  mcpvisor clients connect claude-desktop --project ~/src/website
  mcpvisor clients connect codex --dry-run`,
		Args: oneProgram,
		RunE: func(cmd *cobra.Command, args []string) error { return connectClient(o, cmd, args[0], f) },
	}
	f.addTo(o, cmd)
	cmd.Flags().StringVar(&f.project, "project", "", "give it the servers of the project in this `directory`, wherever it works: for agents without folders")
	_ = cmd.MarkFlagDirname("project") // this flag exists
	cmd.Flags().StringVar(&f.view, "view", "", "give it this `view` of the configuration, and not everything")
	return cmd
}

// connectClient puts the entry into the file of a program.
func connectClient(o *cli.Options, cmd *cobra.Command, word string, f changeFlags) error {
	program, err := programNamed(cmd, word)
	if err != nil {
		return err
	}
	m, err := thisMachine()
	if err != nil {
		return err
	}
	place, err := placeFor(program, m, f.file)
	if err != nil {
		return err
	}
	old, err := readPlace(place, m.Dir)
	if err != nil {
		return err
	}
	command, err := ownCommand()
	if err != nil {
		return err
	}
	env := placeVariables(m)
	args, chosen, err := f.connectArgs()
	if err != nil {
		return err
	}
	c := &fileChange{program: program, file: filepath.FromSlash(place.Path), entry: entryName, before: old.Text}
	stored, err := readStore()
	if err != nil {
		return err
	}
	if name := connectedAs(old, command, args, chosen, env); name != "" {
		if o.JSON {
			c.entry, c.after = name, c.before
			return terminal.PrintJSON(o.Out, c.report())
		}
		fmt.Fprintf(o.Out, "%s uses mcpvisor already, as %s: %s\n", program.Title(), messages.Line(name, 60), messages.Line(c.file, 0))
		return nil
	}
	e, replaces := old.Servers[entryName]
	if replaces && !startsMcpvisor(e.Spec) {
		return refusedError(c.file, fmt.Sprintf("it has a server of the name %s already, in line %d; give that another name", entryName, e.Pos.Line))
	}
	entry := foreign.StdioEntryFor(program, config.File{Path: place.Path, Data: old.Text}, entryName, command, args, env)
	if c.after, err = putEntry(program, old.Text, entry); err != nil {
		return editError(c.file, err)
	}
	if err := checkReadBack(place, c.after, command, args, env); err != nil {
		return err
	}
	if replaces {
		c.was, c.becomes = status.StartText(e.Spec), status.StartText(messages.Spec{Type: messages.Stdio, Command: command, Args: args, Env: env})
	}
	change := storedChange{Program: program, Path: entry.Path, Created: old.Text == nil, Splice: spliceOf(old.Text, c.after)}
	restore := func() error { return updateStore(c.file, nil) }
	// An older entry of mcpvisor is replaced: what is given back later is the file before both.
	if earlier, ok := stored.Files[c.file]; ok {
		restore = func() error { return updateStore(c.file, &earlier) }
		if first, ok := earlier.Splice.undo(old.Text); ok {
			change.Created, change.Splice = earlier.Created, spliceOf(first, c.after)
		}
	}
	err = c.finishChange(cmd.Context(), o, f, func() error { return updateStore(c.file, &change) }, restore)
	if err != nil {
		return err
	}
	if o.JSON {
		return terminal.PrintJSON(o.Out, c.report())
	}
	if c.changed {
		reportOthers(o, old)
	}
	return nil
}

// reportOthers says what is left to do.
func reportOthers(o *cli.Options, old discover.ForeignFile) {
	o.PrintRemark("start %s anew, so that it reads its file", old.Format.Title())
	own := 0
	for _, e := range old.Servers {
		if !startsMcpvisor(e.Spec) && !e.Spec.Disabled {
			own++
		}
	}
	if own > 0 {
		o.PrintRemark("it still starts %s by itself; take them over with: mcpvisor import --from %s", terminal.CountOf(own, "server"), old.Format)
	}
}

// connectedAs returns the name of the entry that is this command already; empty if there is none. An entry of another mcpvisor
// under the usual name is to be replaced, and so is one that leads to other places. chosen says that the words args are to be its, and
// not any.
func connectedAs(f discover.ForeignFile, command string, args []string, chosen bool, env map[string]string) string {
	for _, name := range serverNames(f) {
		spec := f.Servers[name].Spec
		if !startsMcpvisor(spec) || spec.Disabled || chosen && !slices.Equal(spec.Args, args) {
			continue
		}
		if name != entryName || spec.Command == command && !leadsElsewhere(spec, env) {
			return name
		}
	}
	return ""
}

// putEntry returns a text with the entry, in the language of its program.
func putEntry(program foreign.Format, text []byte, entry foreign.StdioEntry) ([]byte, error) {
	switch program.Syntax() {
	case "TOML":
		return edit.PutTOML(text, entry.Path, entry.Value)
	case "YAML":
		return edit.PutYAML(text, entry.Path[0], entry.Path[1], entry.Value)
	}
	return edit.Put(text, entry.Path, entry.Value)
}

// removeEntry returns a text without the entry at a path of keys.
func removeEntry(program foreign.Format, text []byte, path []string) ([]byte, error) {
	switch program.Syntax() {
	case "TOML":
		return edit.RemoveTOML(text, path)
	case "YAML":
		return edit.RemoveYAML(text, path[0], path[1])
	}
	return edit.Remove(text, path)
}

// checkReadBack refuses a text in which the program's own reader does not find the entry as it was written.
func checkReadBack(place foreign.Location, text []byte, command string, args []string, env map[string]string) error {
	p := foreign.Parse(config.File{Path: place.Path, Scope: messages.ScopeUser, Data: text}, foreign.Context{Format: place.Format})
	switch e, ok := p.Servers[entryName]; {
	case !ok || e.Spec.Command != command && !strings.Contains(command, "$"),
		!slices.Equal(e.Spec.Args, args) && !strings.Contains(strings.Join(args, ""), "$"):
		return refusedError(filepath.FromSlash(place.Path), "the entry would not be read; change it by hand")
	case !startsMcpvisor(messages.Spec{Command: command, Args: []string{"connect"}}):
		return refusedError(filepath.FromSlash(place.Path), fmt.Sprintf("this program is called %s; rename it to mcpvisor, by which the entry is known later",
			messages.Line(filepath.Base(command), 60)))
	case !hasVariables(e.Spec, env):
		return refusedError(filepath.FromSlash(place.Path), "the program would read other values of "+
			strings.Join(slices.Sorted(maps.Keys(env)), ", ")+"; change it by hand")
	}
	return nil
}

// placeFor returns the place of a program's file: the one that is named, the first that exists, or the first whose folder shows
// that the program is there.
func placeFor(program foreign.Format, m foreign.Machine, named string) (foreign.Location, error) {
	places := slices.DeleteFunc(foreign.Locations(m), func(p foreign.Location) bool { return p.Format != program || !p.TakesServers() })
	if named != "" {
		return namedPlace(program, places, named)
	}
	for _, p := range places {
		if _, err := os.Lstat(filepath.FromSlash(p.Path)); !errors.Is(err, fs.ErrNotExist) {
			return p, nil
		}
	}
	for _, p := range places {
		folder := path.Dir(p.Path)
		// The file of Claude Code lies in the home directory, which everybody has.
		if program == foreign.ClaudeCode {
			folder = strings.TrimSuffix(p.Path, ".json")
		}
		if info, err := os.Stat(filepath.FromSlash(folder)); err == nil && info.IsDir() {
			return p, nil
		}
	}
	text := "its places are not known; set HOME"
	if len(places) > 0 {
		text = "it would have " + messages.Line(filepath.FromSlash(places[0].Path), 0) + "; name its file with --file if you want it made"
	}
	return foreign.Location{}, exit.With(exit.Usage, fmt.Sprintf("%s is not found on this machine: %s", program.Title(), text))
}

// namedPlace returns the place that --file names. It must be one of the program's, so that a slip changes no other file.
func namedPlace(program foreign.Format, places []foreign.Location, named string) (foreign.Location, error) {
	abs, err := filepath.Abs(named)
	if err != nil {
		return foreign.Location{}, exit.With(exit.Usage, "--file: the working directory is not known; change to another one")
	}
	var known []string
	for _, p := range places {
		file := filepath.FromSlash(p.Path)
		if filepath.Clean(file) == abs {
			return p, nil
		}
		known = append(known, messages.Line(file, 0))
	}
	return foreign.Location{}, exit.With(exit.Usage, fmt.Sprintf("--file: %s is no file in which %s keeps its servers; it has %s",
		messages.Line(named, 200), program.Title(), strings.Join(known, ", ")))
}

// ownCommand returns the path by which an agent starts this program, which may have another PATH: the link that the person
// called, if it leads here, because it stays when another version is installed.
func ownCommand() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", exit.With(exit.Usage, "the path of this program is not known")
	}
	if called, err := exec.LookPath(os.Args[0]); err == nil {
		if called, err = filepath.Abs(called); err == nil && sameFile(called, self) {
			return called, nil
		}
	}
	return self, nil
}

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
