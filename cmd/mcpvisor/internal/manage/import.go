package manage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// importFlags holds the flags of import as they were typed; parseOptions checks them.
type importFlags struct {
	from, scope                          string
	dryRun, yes, replace, rename, asJSON bool
	permissions                          bool
}

// NewImport returns the command "import", which runs importServers. It differs from --config in that the servers are copied
// into a file of mcpvisor.
func NewImport(o *cli.Options) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Take over the servers that other programs have configured",
		Long: `Looks where other MCP clients keep their servers, shows each with what it becomes and what is not carried
over, and copies them into a file of mcpvisor after a yes. Values of env and headers are copied and never shown.

Files of the working directory may be somebody else's work: they are copied into your own scope only if their program is
named with --from. With --scope project or local they wait for an approval, as every server of a project does.

What a program calls without asking its person (autoApprove, alwaysAllow, trust) becomes rules of yours only with
--with-permissions, or after a yes of its own: these tools are allowed then, and everything else is asked about.

With --config FILE that file is taken over, wherever it lies. Nothing is started or dialled, and no file of another program is changed. To use such a file where it is, name it:
mcpvisor --config FILE list.`,
		Example: `  mcpvisor import --dry-run
  mcpvisor import --from vscode
  mcpvisor import --config servers.json --yes`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return importServers(o, cmd, f) },
	}
	var names []string
	for _, format := range foreign.Formats {
		names = append(names, string(format))
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "look at the files of this `program` only: "+strings.Join(names, ", "))
	flags.StringVar(&f.scope, "scope", "user", "write into the file of this `scope`: user, project or local")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and change nothing")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&f.replace, "replace", false, "replace servers of the same name")
	flags.BoolVar(&f.rename, "rename", false, "give a server whose name is taken another one: NAME-PROGRAM")
	flags.BoolVar(&f.permissions, "with-permissions", false, "make rules of yours of what these programs call without asking")
	flags.BoolVarP(&f.asJSON, "json", "j", false, "print a JSON array")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // this flag exists
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"user", "project", "local"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// importServers finds the files of other programs, plans what becomes of each of their servers, prints the plan, and lets
// finishImport ask and write. It starts nothing and changes no file of another program.
func importServers(o *cli.Options, cmd *cobra.Command, f importFlags) error {
	w, err := f.parseOptions(cmd)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return exit.With(exit.Usage, "the working directory is not known; change to another one")
	}
	paths := discover.DefaultPaths()
	projectDir, err := discover.ProjectDir(dir)
	if err != nil {
		return err
	}
	places := slices.DeleteFunc(foreign.Locations(foreign.Machine{OS: runtime.GOOS, Home: paths.Home, Dir: dir,
		Lookup: os.LookupEnv}), func(p foreign.Location) bool { return w.from != "" && p.Format != w.from })
	// Files that are missing are left out; a file that cannot be read is in found with its problems.
	found := discover.ReadForeign(places, dir)
	if len(o.Configs) > 0 {
		if found, err = readNamedFiles(o, w.from, dir); err != nil {
			return err
		}
	}
	bare := *o
	bare.Configs, bare.Servers = nil, nil // a file that was named is copied, and configures nothing in this run
	if s, _ := project.LoadSetup(&bare); s != nil {
		if err := checkMayManage(s, "copied"); err != nil {
			return err
		}
	}
	// The plan needs the servers that are there already, to find names that are taken.
	file := discover.FileOf(w.scope, paths, projectDir)
	ours, err := readOwn(file, w.scope)
	if err != nil {
		return err
	}
	// The plan is made before any question, so that --dry-run and a real run show the same.
	plan := planImport(found, ours, w)
	if f.asJSON {
		if err := terminal.PrintJSON(o.Out, append([]importItem{}, plan...)); err != nil {
			return err
		}
	} else {
		printImport(o, found, plan, len(places))
	}
	return finishImport(cmd.Context(), o, f, w, file, plan)
}

// parseOptions checks the flags and converts their words. Every error is a usage error.
func (f importFlags) parseOptions(cmd *cobra.Command) (w importOptions, err error) {
	w = importOptions{scope: messages.Scope(f.scope), from: foreign.Format(f.from), replace: f.replace, rename: f.rename}
	switch {
	case !slices.Contains([]messages.Scope{messages.ScopeUser, messages.ScopeProject, messages.ScopeLocal}, w.scope):
		return w, exit.UsageError(cmd, "--scope: %q is no scope; write user, project or local", messages.Line(f.scope, 40))
	case f.replace && f.rename:
		return w, exit.UsageError(cmd, "--replace and --rename exclude each other")
	case w.from != "" && !slices.Contains(foreign.Formats, w.from):
		var names []string
		for _, format := range foreign.Formats {
			names = append(names, string(format))
		}
		if near := messages.Nearest(f.from, names); near != "" {
			return w, exit.UsageError(cmd, "--from: %q is no program known here; did you mean %q?", messages.Line(f.from, 40), near)
		}
		return w, exit.UsageError(cmd, "--from: %q is no program known here; known are %s", messages.Line(f.from, 40),
			strings.Join(names, ", "))
	}
	return w, nil
}

// readOwn reads the file that will be written to, through editFile, so that a file which cannot be edited is refused before the
// person answers questions.
func readOwn(file string, scope messages.Scope) (ours config.Parsed, err error) {
	err = editFile(file, scope, func(text []byte, parsed config.Parsed) ([]byte, error) {
		ours = parsed
		return text, nil // unchanged, so that nothing is written
	})
	return ours, err
}

// finishImport asks about each server of the plan, writes those that were agreed to in one edit, records them, and offers to
// take over their rules. With --dry-run it says what would be written.
func finishImport(ctx context.Context, o *cli.Options, f importFlags, w importOptions, file string, plan []importItem) (err error) {
	n := 0
	for _, a := range plan {
		if a.As != "" {
			n++
		}
	}
	switch {
	case n == 0:
		return nil
	case f.dryRun:
		printSentence(o, f, "%s would be written to %s", terminal.CountOf(n, "server"), messages.Line(file, 0))
		if rules, _ := rulesOf(plan); f.permissions && len(rules) > 0 {
			printSentence(o, f, "%s would be written to %s", terminal.CountOf(len(rules), "rule"), messages.Line(discover.DefaultPaths().User, 0))
		}
		return nil
	case !f.yes:
		if plan, err = askEachItem(ctx, o, plan, w); err != nil {
			return err
		}
		if n = len(slices.DeleteFunc(slices.Clone(plan), func(a importItem) bool { return a.As == "" })); n == 0 {
			o.PrintRemark("nothing was copied")
			return nil
		}
	}
	err = editFile(file, w.scope, func(text []byte, ours config.Parsed) ([]byte, error) {
		return applyPlan(text, ours, plan, w)
	})
	if err != nil {
		return err
	}
	bare := *o
	bare.Configs, bare.Servers = nil, nil // a file that was named is copied, and configures nothing in this run
	var copied []audit.Record
	for _, a := range plan {
		if a.As != "" {
			copied = append(copied, audit.Record{Change: "add", Server: a.As, Detail: a.Becomes + " from " + a.File})
		}
	}
	project.RecordChanges(&bare, file, copied...)
	printSentence(o, f, "%s written to %s", terminal.CountOf(n, "server"), messages.Line(file, 0))
	if err := importRules(ctx, o, f, plan); err != nil {
		return err
	}
	if w.scope == messages.ScopeUser {
		printSentence(o, f, "See them with: mcpvisor list")
	} else {
		printSentence(o, f, "They wait for your approval: mcpvisor approve")
	}
	return nil
}

// applyPlan returns the text of the file with the planned servers in it. editFile may call it again with another text; a server
// that another process has added under a planned name in between ends the import without a change.
func applyPlan(text []byte, ours config.Parsed, plan []importItem, w importOptions) ([]byte, error) {
	key, ok := ours.Under()
	if !ok {
		return nil, inListError(ours.Path)
	}
	for _, a := range plan {
		if a.As == "" {
			continue
		}
		path := []string{key, a.As}
		if old, there := ours.Servers[a.As]; there && (!w.replace || old.Path == nil) {
			return nil, exit.With(exit.Failed, fmt.Sprintf("%s: somebody else has added a server %q meanwhile; nothing was copied",
				messages.Line(ours.Path, 0), messages.Line(a.As, 60)))
		} else if there {
			path = old.Path
		}
		var err error
		if text, err = edit.Put(text, path, a.marshalEntry()); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// printSentence prints a sentence for people: with --json it goes to standard error, so that standard output is one JSON value.
func printSentence(o *cli.Options, f importFlags, format string, args ...any) {
	if f.asJSON {
		o.PrintRemark(format, args...)
		return
	}
	fmt.Fprintf(o.Out, format+"\n", args...)
}

// askEachItem shows the servers of a plan one by one and asks about each. A server that the person declines stays in the plan
// without a name, which means that it is not copied; "rest" declines all that follow. Without a terminal it returns an error.
func askEachItem(ctx context.Context, o *cli.Options, plan []importItem, w importOptions) ([]importItem, error) {
	if !o.Prompter.HasTerminal() {
		return nil, exit.With(exit.Usage, "nobody can be asked here, so nothing was copied; add --yes, or --dry-run to look only")
	}
	plan = slices.Clone(plan)
	remaining := 0
	for _, a := range plan {
		if a.As != "" {
			remaining++
		}
	}
	rest := false
	for i := range plan {
		a := &plan[i]
		if a.As == "" {
			continue
		}
		if remaining--; rest {
			a.As = ""
			continue
		}
		word, err := approve.AskScreen(ctx, o, a.importScreen(w), "copy", remaining)
		if err != nil {
			return nil, exit.With(exit.Interrupted, "nothing was copied")
		}
		if rest = word == "rest"; word != "yes" {
			a.As = ""
		}
	}
	return plan, nil
}

// importScreen returns the screen for one server. Values of env and headers are the person's own and are masked. They are shown
// for a file of the working directory, which another person may have written, and for variables that steer programs, such as
// NODE_OPTIONS.
func (a importItem) importScreen(w importOptions) approve.Screen {
	v := approve.Screen{Title: a.As, Source: a.File, Entry: a.marshalEntry(), Review: config.Review{Name: a.As, Scope: w.scope}}
	if a.project {
		return v
	}
	v.Mask = func(path, text string) (string, bool) {
		name, env := strings.CutPrefix(path, "env.")
		_, header := strings.CutPrefix(path, "headers.")
		_, steers := steer.Reason(name)
		if !env && !header || strings.HasPrefix(text, "${") && strings.HasSuffix(text, "}") || env && steers {
			return "", false
		}
		return fmt.Sprintf("[%d characters, not shown]", len([]rune(text))), true
	}
	return v
}

// printImport prints what was found, file by file: each server with what it becomes, and problems of the file itself.
func printImport(o *cli.Options, found []discover.ForeignFile, plan []importItem, places int) {
	if len(found) == 0 {
		fmt.Fprintf(o.Out, "no file of another program was found in %s\n", terminal.CountOf(places, "place"))
		return
	}
	for _, other := range found {
		// A file in the form of mcpvisor itself has no title of another program.
		title := other.Format.Title()
		if title == "" {
			title = "mcpvisor"
		}
		fmt.Fprintf(o.Out, "%s · %s\n", title, messages.Line(filepath.FromSlash(other.Location.Path), 0))
		shown := false
		for _, a := range plan {
			if a.From == other.Format && a.File == other.Location.Path {
				printAdoption(o, a)
				shown = true
			}
		}
		for _, p := range other.Problems {
			if _, server := other.Servers[p.Server]; p.Server == "" || !server {
				p.File = ""
				fmt.Fprintf(o.Out, "  ! %s\n", p.Error())
				shown = true
			}
		}
		if !shown {
			fmt.Fprintln(o.Out, "  it has no MCP servers")
		}
	}
}

// printAdoption prints what becomes of one server, with the reason if it is skipped and notes about what is lost.
func printAdoption(o *cli.Options, a importItem) {
	switch {
	case a.Skipped != "":
		line := fmt.Sprintf("  - %s  %s", messages.Line(a.Name, 60), a.Becomes)
		fmt.Fprintf(o.Out, "%s\n      skipped: %s\n", strings.TrimRight(line, " "), messages.Line(a.Skipped, 400))
	case a.As != a.Name:
		fmt.Fprintf(o.Out, "  + %s, as %s  %s\n", messages.Line(a.Name, 60), messages.Line(a.As, 80), a.Becomes)
	default:
		fmt.Fprintf(o.Out, "  + %s  %s\n", messages.Line(a.Name, 60), a.Becomes)
	}
	for _, p := range a.Notes {
		p.File, p.Server, p.Warning = "", "", false
		fmt.Fprintf(o.Out, "      %s\n", p.Error())
	}
}
