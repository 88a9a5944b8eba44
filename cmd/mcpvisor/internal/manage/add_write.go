package manage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/registry"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// entryWriter adds or replaces one server in the file of a scope, for the commands add and add-json. It lives for one command.
type entryWriter struct {
	options *cli.Options
	addFlags
	cmd   *cobra.Command
	setup *project.Setup
	scope messages.Scope
	// file is the configuration file of the scope; checkNameFree changes it to the file of the entry that is replaced.
	file string
}

// openEntryWriter loads the setup and finds the file of the scope. It refuses the command where the organisation's policy
// leaves the person no servers of their own.
func openEntryWriter(o *cli.Options, cmd *cobra.Command, scope messages.Scope, f addFlags) (*entryWriter, error) {
	s, err := project.LoadSetup(o)
	if err != nil && (s == nil || len(o.Configs) > 0) {
		return nil, err // of the files that were found only the one that is written to matters, and editFile checks that one
	}
	if err := checkMayManage(s, "added"); err != nil {
		return nil, err
	}
	if f.wait <= 0 {
		return nil, exit.UsageError(cmd, "--wait: %s is no time to connect in; --no-connect only writes the file", f.wait)
	}
	return &entryWriter{o, f, cmd, s, scope, discover.FileOf(scope, discover.DefaultPaths(), s.ProjectDir)}, nil
}

// canAsk reports whether the person may be asked: there is a terminal, and --no-ask is not given.
func (w *entryWriter) canAsk() bool { return !w.noAsk && w.options.Prompter.HasTerminal() }

// checkNameFree refuses a name that another entry of the scope has. With --replace it accepts the name and directs the writer
// to the file in which the old entry stands, so that the new one takes its place and does not duplicate it.
func (w *entryWriter) checkNameFree(name string) error {
	for _, e := range entriesOf(w.setup, name) {
		if e.scope != w.scope {
			continue
		}
		if err := e.checkEditable("replaced"); err != nil {
			return err
		}
		if !w.replace {
			return w.nameTakenError(name, e.positionText())
		}
		w.file = e.file
		return nil
	}
	return nil
}

// nameTakenError returns the usage error for a name that the scope already has, with the commands that help.
func (w *entryWriter) nameTakenError(name, location string) error {
	return exit.With(exit.Usage, fmt.Sprintf("server %q is there already (%s scope, %s); --replace replaces it, and "+
		"mcpvisor remove %s --scope %s takes it out", messages.Line(name, 60), w.scope, location, terminal.ShellWord(name), w.scope))
}

// specOf returns the spec of the server that the person typed, and asks for values that are missing. For a reference to the
// registry it also sets the name in a, which is known only after the registry has answered.
func (w *entryWriter) specOf(a *addArgs) (messages.Spec, error) {
	none := messages.Spec{}
	env, asked, err := splitEnv(w.env)
	if err == nil && len(asked) > 0 && !w.canAsk() {
		err = fmt.Errorf("--env: %s has no value, and nobody can be asked here; write %s=VALUE, or %s='${%s}'", asked[0], asked[0],
			asked[0], asked[0])
	}
	// Both lists are read before an error is returned, but only the first error is reported.
	headers, bad := splitHeaders(w.headers)
	if err == nil {
		err = bad
	}
	switch {
	case err != nil:
		return none, exit.UsageError(w.cmd, "%s", messages.Printable(err.Error()))
	case a.ref == "" && w.alias != "":
		return none, exit.UsageError(w.cmd, "--as is for a server of the registry; this one is called %s", messages.Line(a.name, 60))
	case a.ref == "" && len(a.command) > 0:
		if err := w.rejectRegistryName(a.command[0]); err != nil {
			return none, err
		}
	}
	// Questions come last, so that an error which needs no answer is found before the person types secrets.
	for _, key := range asked {
		v, err := w.askSecret(cmp.Or(a.name, a.ref), "The value of "+messages.Line(key, 60)+notShown, false)
		if err != nil {
			return none, err
		}
		if env == nil {
			env = map[string]string{}
		}
		env[key] = v
	}
	if a.ref == "" {
		return a.specFromFlags(w.cmd, w.addFlags, env, headers)
	}
	f := w.install
	f.Env, f.Headers, f.Silent = env, headers, w.noAsk
	name, spec, err := registry.InstallSpec(w.cmd.Context(), w.options, a.ref, f)
	if err != nil {
		return none, err
	}
	a.name = cmp.Or(w.alias, name)
	return spec, w.checkNameFree(a.name)
}

// rejectRegistryName refuses a command that looks like the name of a server of the registry: one slash, and a dotted host
// before it. Without this hint the error would be of a program that does not exist. A file of that name is a command.
func (w *entryWriter) rejectRegistryName(command string) error {
	host, _, ok := strings.Cut(command, "/")
	if !ok || strings.Count(command, "/") != 1 || strings.Count(host, ".") < 1 || strings.HasPrefix(host, ".") {
		return nil
	}
	if _, err := os.Stat(command); err == nil {
		return nil
	}
	return exit.UsageError(w.cmd, "there is no program %s; a server of the registry is added with: mcpvisor add %s --as NAME",
		messages.Line(command, 80), terminal.ShellWord(command))
}

// addReport is the JSON object that add --json prints: what was written and, unless --no-connect, what connecting came to.
type addReport struct {
	Name     string         `json:"name"`
	Scope    messages.Scope `json:"scope"`
	File     string         `json:"file"`
	Line     int            `json:"line,omitempty"`
	Replaced bool           `json:"replaced,omitempty"`
	// Config is the entry without its secrets.
	Config messages.Spec `json:"config"`
	// HiddenBy is the file whose entry of the same name wins over this one; empty if this one counts.
	HiddenBy string `json:"hiddenBy,omitempty"`
	// Hides lists the places of entries of the same name that do not count beside this one.
	Hides []string `json:"hides,omitempty"`
	// Connected is nil, and missing from the JSON, if no connection was tried.
	Connected *bool          `json:"connected,omitempty"`
	Status    messages.Phase `json:"status,omitempty"`
	Error     string         `json:"error,omitempty"`
	Tools     []addedTool    `json:"tools,omitempty"`
	// Milliseconds is the time that connecting took; 0 if the server is not connected.
	Milliseconds int64 `json:"milliseconds,omitempty"`
}

// addedTool is one tool of the server that was added; its description is cut to one line.
type addedTool struct {
	Name        string `json:"name"`
	Qualified   string `json:"qualifiedName"`
	Description string `json:"description,omitempty"`
}

// writeEntry writes the entry into the file, approves it and connects it. It refuses a spec that the organisation's policies
// forbid before the file is touched. An error of editFile leaves the file as it was.
func (w *entryWriter) writeEntry(name string, spec messages.Spec, entry json.RawMessage) error {
	out := addReport{Name: name, Scope: w.scope, File: w.file, Config: spec.Redacted()}
	if rule := config.Refusal(spec, w.setup.Policies...); rule != "" {
		return exit.With(exit.Usage, "nothing is added: "+rule)
	}
	// Only a file that this command creates gets a .gitignore beside it; an existing one was arranged by the person.
	_, err := os.Lstat(w.file)
	fresh := err != nil
	var saved config.Entry
	// editFile may call this function more than once, therefore it derives everything from the text that it is given.
	err = editFile(w.file, w.scope, func(text []byte, ours config.Parsed) ([]byte, error) {
		path, err := w.pathIn(name, ours)
		if err != nil {
			return nil, err
		}
		_, out.Replaced = ours.Servers[name]
		if text, err = edit.Put(text, path, entry); err != nil {
			return nil, err
		}
		saved, err = w.checkEntry(name, text)
		return text, err
	})
	if err != nil {
		return err
	}
	out.Line = saved.Pos.Line
	word := "add"
	if out.Replaced {
		word = "replace"
	}
	project.RecordChanges(w.options, w.file, audit.Record{Change: word, Server: name, Detail: status.StartText(spec)})
	w.printChange(out)
	if fresh && w.scope == messages.ScopeLocal && keepOutOfGit(w.file) {
		w.options.PrintRemark("it is kept out of git by a .gitignore beside it")
	}
	clear := secretsInClear(spec)
	switch inArgument := slices.Contains(clear, secretArgument); {
	case w.scope == messages.ScopeProject && len(clear) > 0:
		w.options.PrintRemark("warning: %s stands in a file that others read; write '${NAME}' in its place, which is taken from the environment "+
			"at each start", strings.Join(clear, ", "))
	case inArgument:
		w.options.PrintRemark("warning: %s", secretArgumentNote)
	}
	// The code of a command that has changed nothing would be untrue now.
	if err = w.approveAndConnect(out, saved); err != nil && exit.CodeOf(err) == exit.Usage {
		err = exit.WithCode(exit.Failed, err)
	}
	return err
}

// pathIn returns the path of JSON keys under which the entry belongs in the file as it is now. It fails if another process has
// taken the name since checkNameFree, and for entries that stand in a list, which have no key that could be replaced.
func (w *entryWriter) pathIn(name string, ours config.Parsed) ([]string, error) {
	old, there := ours.Servers[name]
	switch {
	case there && !w.replace:
		return nil, w.nameTakenError(name, fileEntry{file: w.file, entry: old}.positionText())
	case there && old.Path == nil:
		return nil, inListError(w.file)
	case there:
		return old.Path, nil
	}
	key, ok := ours.Under()
	if !ok {
		return nil, inListError(w.file)
	}
	return []string{key, name}, nil
}

// checkEntry reads the new text as the program will read it, and refuses an entry that cannot work in any environment.
// Variables that are not set count as set here; the person learns of them when the server is connected.
func (w *entryWriter) checkEntry(name string, text []byte) (config.Entry, error) {
	p := config.Parse(config.File{Path: w.file, Scope: w.scope, Dir: w.setup.ProjectDir, Data: text})
	ctx := w.setup.Snapshot.Context
	lookup := ctx.Lookup
	ctx.Lookup = func(v string) (string, bool) {
		if s, ok := lookup(v); ok {
			return s, ok
		}
		return "unset", true
	}
	e, ok := p.Servers[name]
	problems := p.Problems
	if ok {
		alone := p
		alone.Servers, alone.Problems = map[string]config.Entry{name: e}, nil
		problems = slices.Concat(problems, config.Merge([]config.Parsed{alone}, ctx).Problems)
	}
	// Problems of other entries do not concern this command, and a URL with a variable cannot be judged without its value.
	for _, problem := range problems {
		switch {
		case problem.Server != name:
		case problem.Key == "url" && strings.Contains(e.Spec.URL, "${"): // what it is depends on the environment
		case problem.Warning:
			w.options.PrintRemark("warning: %s", flagProblem(problem))
		default:
			return e, exit.With(exit.Usage, flagProblem(problem))
		}
	}
	return e, nil
}

// printChange prints that the file was changed and what the entry starts, with names of variables and headers and without their
// values. With --json it prints nothing.
func (w *entryWriter) printChange(out addReport) {
	if w.asJSON {
		return
	}
	verb := "Added"
	if out.Replaced {
		verb = "Replaced"
	}
	text := status.TransportText(messages.Status{Config: &out.Config, Transport: out.Config.Kind()})
	if env := slices.Sorted(maps.Keys(out.Config.Env)); len(env) > 0 {
		text += " · env " + messages.Line(strings.Join(env, ", "), 200)
	}
	if headers := slices.Sorted(maps.Keys(out.Config.Headers)); len(headers) > 0 {
		text += " · header " + messages.Line(strings.Join(headers, ", "), 200)
	}
	fmt.Fprintf(w.options.Out, "%s server %s to the %s scope: %s\nFile modified: %s\n", verb, messages.Line(out.Name, 60), w.scope, text,
		messages.Line(out.File, 0))
}

// approveAndConnect approves the entry, which the person has just typed, connects the server, and prints what it offers. It
// reads the files again, because another file may have an entry of the same name that wins; the new one is then reported as
// hidden.
func (w *entryWriter) approveAndConnect(out addReport, saved config.Entry) error {
	s, err := project.LoadSetup(w.options)
	if s == nil {
		return err
	}
	now := s.Specs[out.Name]
	if c, ok := discover.ApprovalCandidate(s.Set, out.Name); ok { // until the new entry is approved, an entry of another scope may count
		now = c.Spec
	}
	if now.Source != saved.Spec.Source || now.Scope != w.scope {
		out.HiddenBy = now.Source
		w.options.PrintRemark("it does not count here: %s has a server of this name, which wins over the %s scope", now.Source, w.scope)
		return w.printReport(out)
	}
	for _, other := range entriesOf(s, out.Name) {
		if other.scope != w.scope || other.file != saved.Spec.Source {
			out.Hides = append(out.Hides, other.positionText())
			w.options.PrintRemark("it hides the server of this name of the %s scope · %s", other.scope, other.positionText())
		}
	}
	if err := w.approveWritten(out.Name, saved); err != nil {
		return err
	}
	if w.noConnect || s.Specs[out.Name].Disabled {
		return w.printReport(out)
	}
	return w.connectAdded(out)
}

// approveWritten approves an entry exactly as this command wrote it. If another process has changed the file since, the bytes
// of the entry differ and nothing is approved, because the person has not seen the change.
func (w *entryWriter) approveWritten(name string, saved config.Entry) error {
	s, err := project.LoadSetup(w.options)
	if s == nil {
		return err
	}
	c, ok := discover.ApprovalCandidate(s.Set, name)
	if !ok || c.Binding.Path != saved.Spec.Source || !bytes.Equal(c.Binding.Entry, saved.Canonical()) || s.Approvals.Owns(s.Set, name) {
		return nil
	}
	if err := s.Approvals.ApproveOwn(s.Set, name); err != nil {
		return waitsError(saved.Spec.Source, name, err)
	}
	approve.RecordApprovals(s, w.options, []string{name})
	return nil
}

// waitsError is the error about an entry that this command has written, and whose approval could not be written: on a full disk, say. It stays,
// because to take it out needs room, too. The exit code is not that of a command which has changed nothing.
func waitsError(file, name string, err error) error {
	return exit.WithCode(exit.Failed, fmt.Errorf("%w; the entry is in %s and waits: mcpvisor approve %s", err, messages.Line(file, 0),
		terminal.ShellWord(name)))
}

// printReport prints the report with --json. Without it everything has been printed on the way.
func (w *entryWriter) printReport(out addReport) error {
	if w.asJSON {
		return terminal.PrintJSON(w.options.Out, out)
	}
	return nil
}
