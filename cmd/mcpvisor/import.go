package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/edit"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// importFlags are those of import, as they were typed.
type importFlags struct {
	from, scope                          string
	dryRun, yes, replace, rename, asJSON bool
	permissions                          bool
}

func newImport(o *options) *cobra.Command {
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
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.importServers(cmd, f) },
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
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // it exists
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"user", "project", "local"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *options) importServers(cmd *cobra.Command, f importFlags) error {
	w, err := f.wishes(cmd)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return &exitError{exitUsage, "the working directory is not known; change to another one"}
	}
	paths := discover.DefaultPaths()
	project, err := discover.ProjectDir(dir)
	if err != nil {
		return err
	}
	places := slices.DeleteFunc(foreign.Places(foreign.Machine{OS: runtime.GOOS, Home: paths.Home, Dir: dir,
		Lookup: os.LookupEnv}), func(p foreign.Place) bool { return w.from != "" && p.Format != w.from })
	found := discover.Others(places, dir)
	if len(o.configs) > 0 {
		if found, err = o.namedOthers(w.from, dir); err != nil {
			return err
		}
	}
	aside := *o
	aside.configs, aside.servers = nil, nil // what was named is what is copied, and configures nothing here
	if s, _ := load(&aside); s != nil {
		if err := s.mayManage("copied"); err != nil {
			return err
		}
	}
	file := discover.FileOf(w.scope, paths, project)
	ours, err := readOwn(file, w.scope)
	if err != nil {
		return err
	}
	plan := planImport(found, ours, w)
	if f.asJSON {
		if err := printJSON(o.out, append([]adoption{}, plan...)); err != nil {
			return err
		}
	} else {
		o.printImport(found, plan, len(places))
	}
	return o.finishImport(cmd.Context(), f, w, file, plan)
}

func (f importFlags) wishes(cmd *cobra.Command) (w wishes, err error) {
	w = wishes{scope: messages.Scope(f.scope), from: foreign.Format(f.from), replace: f.replace, rename: f.rename}
	switch {
	case !slices.Contains([]messages.Scope{messages.ScopeUser, messages.ScopeProject, messages.ScopeLocal}, w.scope):
		return w, usage(cmd, "--scope: %q is no scope; write user, project or local", messages.Line(f.scope, 40))
	case f.replace && f.rename:
		return w, usage(cmd, "--replace and --rename exclude each other")
	case w.from != "" && !slices.Contains(foreign.Formats, w.from):
		var names []string
		for _, format := range foreign.Formats {
			names = append(names, string(format))
		}
		if near := messages.Nearest(f.from, names); near != "" {
			return w, usage(cmd, "--from: %q is no program known here; did you mean %q?", messages.Line(f.from, 40), near)
		}
		return w, usage(cmd, "--from: %q is no program known here; known are %s", messages.Line(f.from, 40),
			strings.Join(names, ", "))
	}
	return w, nil
}

// readOwn reads the file that is written to. A file that cannot be understood is not edited.
func readOwn(file string, scope messages.Scope) (ours config.Parsed, err error) {
	err = editFile(file, scope, func(text []byte, is config.Parsed) ([]byte, error) {
		ours = is
		return text, nil // as it is
	})
	return ours, err
}

// finishImport asks and writes.
func (o *options) finishImport(ctx context.Context, f importFlags, w wishes, file string, plan []adoption) (err error) {
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
		o.tell(f, "%s would be written to %s", count(n, "server"), messages.Line(file, 0))
		if rules, _ := rulesOf(plan); f.permissions && len(rules) > 0 {
			o.tell(f, "%s would be written to %s", count(len(rules), "rule"), messages.Line(discover.DefaultPaths().User, 0))
		}
		return nil
	case !f.yes:
		if plan, err = o.agreeEach(ctx, plan, w); err != nil {
			return err
		}
		if n = len(slices.DeleteFunc(slices.Clone(plan), func(a adoption) bool { return a.As == "" })); n == 0 {
			o.remark("nothing was copied")
			return nil
		}
	}
	err = editFile(file, w.scope, func(text []byte, ours config.Parsed) ([]byte, error) {
		return adopted(text, ours, plan, w)
	})
	if err != nil {
		return err
	}
	aside := *o
	aside.configs, aside.servers = nil, nil // what was named is what is copied
	var copied []audit.Record
	for _, a := range plan {
		if a.As != "" {
			copied = append(copied, audit.Record{Change: "add", Server: a.As, Detail: a.Becomes + " from " + a.File})
		}
	}
	aside.changed(file, copied...)
	o.tell(f, "%s written to %s", count(n, "server"), messages.Line(file, 0))
	if err := o.takeRules(ctx, f, plan); err != nil {
		return err
	}
	if w.scope == messages.ScopeUser {
		o.tell(f, "See them with: mcpvisor list")
	} else {
		o.tell(f, "They wait for your approval: mcpvisor approve")
	}
	return nil
}

// adopted is the text of a file with what was planned, beside the servers that stand in it by now.
func adopted(text []byte, ours config.Parsed, plan []adoption, w wishes) ([]byte, error) {
	key, ok := ours.Under()
	if !ok {
		return nil, inList(ours.Path)
	}
	for _, a := range plan {
		if a.As == "" {
			continue
		}
		path := []string{key, a.As}
		if old, there := ours.Servers[a.As]; there && (!w.replace || old.Path == nil) {
			return nil, &exitError{exitFailed, fmt.Sprintf("%s: somebody else has added a server %q meanwhile; nothing was copied",
				messages.Line(ours.Path, 0), messages.Line(a.As, 60))}
		} else if there {
			path = old.Path
		}
		var err error
		if text, err = edit.Put(text, path, a.text()); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// plainCause is an error of the file system without the path, which stands before it.
func plainCause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

// tell prints a sentence for people: beside JSON it goes to standard error.
func (o *options) tell(f importFlags, format string, args ...any) {
	if f.asJSON {
		o.remark(format, args...)
		return
	}
	fmt.Fprintf(o.out, format+"\n", args...)
}

// agreeEach shows the servers of a plan one by one and asks about each. Those that are not agreed to keep their place without a name of
// ours. Without a terminal, nobody can say yes.
func (o *options) agreeEach(ctx context.Context, plan []adoption, w wishes) ([]adoption, error) {
	if !o.desk.terminal() {
		return nil, &exitError{exitUsage, "nobody can be asked here, so nothing was copied; add --yes, or --dry-run to look only"}
	}
	plan = slices.Clone(plan)
	left := 0
	for _, a := range plan {
		if a.As != "" {
			left++
		}
	}
	rest := false
	for i := range plan {
		a := &plan[i]
		if a.As == "" {
			continue
		}
		if left--; rest {
			a.As = ""
			continue
		}
		word, err := o.askScreen(ctx, a.screen(w), "copy", left)
		if err != nil {
			return nil, &exitError{exitInterrupted, "nothing was copied"}
		}
		if rest = word == "rest"; word != "yes" {
			a.As = ""
		}
	}
	return plan, nil
}

// screen is what is shown of a server on its way into a file of ours. Values of variables and headers are the person's own and are not
// shown, unless the file is one of the working directory, or the variable steers programs.
func (a adoption) screen(w wishes) screen {
	v := screen{title: a.As, from: a.File, entry: a.text(), review: config.Review{Name: a.As, Scope: w.scope}}
	if a.project {
		return v
	}
	v.mask = func(path, text string) (string, bool) {
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

// printImport shows what was found, file by file.
func (o *options) printImport(found []discover.Other, plan []adoption, places int) {
	if len(found) == 0 {
		fmt.Fprintf(o.out, "no file of another program was found in %s\n", count(places, "place"))
		return
	}
	for _, other := range found {
		title := other.Format.Title()
		if title == "" {
			title = "mcpvisor"
		}
		fmt.Fprintf(o.out, "%s · %s\n", title, messages.Line(filepath.FromSlash(other.Place.Path), 0))
		shown := false
		for _, a := range plan {
			if a.From == other.Format && a.File == other.Place.Path {
				o.printAdoption(a)
				shown = true
			}
		}
		for _, p := range other.Problems {
			if _, server := other.Servers[p.Server]; p.Server == "" || !server {
				p.File = ""
				fmt.Fprintf(o.out, "  ! %s\n", p.Error())
				shown = true
			}
		}
		if !shown {
			fmt.Fprintln(o.out, "  it has no MCP servers")
		}
	}
}

func (o *options) printAdoption(a adoption) {
	switch {
	case a.Skipped != "":
		line := fmt.Sprintf("  - %s  %s", messages.Line(a.Name, 60), a.Becomes)
		fmt.Fprintf(o.out, "%s\n      skipped: %s\n", strings.TrimRight(line, " "), messages.Line(a.Skipped, 400))
	case a.As != a.Name:
		fmt.Fprintf(o.out, "  + %s, as %s  %s\n", messages.Line(a.Name, 60), messages.Line(a.As, 80), a.Becomes)
	default:
		fmt.Fprintf(o.out, "  + %s  %s\n", messages.Line(a.Name, 60), a.Becomes)
	}
	for _, p := range a.Notes {
		p.File, p.Server, p.Warning = "", "", false
		fmt.Fprintf(o.out, "      %s\n", p.Error())
	}
}
