// Package manage holds the commands that change and show the configuration: init, add, get, remove, enable, disable, reconnect,
// import and config.
//
// How it fits: an entry is changed in its file by internal/edit, which keeps comments and order, and only where its scope may
// lie (see editFile). A change is written to the record of calls, and a running "mcpvisor up" is told to read its files. What
// could not take effect, because an organisation manages the servers, is refused before anything is written.
//
//	add.go and add_*.go          from the command line to an entry: read, shown, written, connected, asked for credentials
//	import*.go                   entries of other programs
//	remove.go, toggle.go         the end of an entry, and its rest
//	get.go, config*.go, init.go  what the files say
//	reconnect.go                 the one command here that changes no file
//
// Guarantees: a file keeps its comments and order, and is replaced whole or not at all; a change of another program between reading
// and writing is not lost. What the person typed is masked wherever it is shown.
//
// Not promised: that a server works because its entry was written; the commands that connect it say whether it does.
package manage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// ownScopes lists the scopes whose files the commands write, the one that wins first.
var ownScopes = []messages.Scope{messages.ScopeLocal, messages.ScopeProject, messages.ScopeUser}

// readScope checks the value of --scope; empty means that none was given.
func readScope(cmd *cobra.Command, word string) (messages.Scope, error) {
	if s := messages.Scope(word); word == "" || slices.Contains(ownScopes, s) {
		return s, nil
	}
	return "", exit.UsageError(cmd, "--scope: %q is no scope; write local, project or user", messages.Line(word, 40))
}

// completeScope offers the scopes to the shell.
func completeScope(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"local", "project", "user"}, // this flag exists
		cobra.ShellCompDirectiveNoFileComp))
}

// fileEntry is one entry of a server in one file.
type fileEntry struct {
	scope messages.Scope
	// file is the path, or a word in place of one for an entry of the command line.
	file  string
	entry config.Entry
	// program names the program whose file it is; empty for files of mcpvisor.
	program string
	// counts says that no other entry hides this one.
	counts bool
}

// positionText returns the file and line of the entry for a sentence.
func (e fileEntry) positionText() string {
	text := messages.Line(e.file, 0)
	if e.entry.Pos.Line > 0 {
		text += fmt.Sprintf(":%d", e.entry.Pos.Line)
	}
	return text
}

// entriesOf returns the entries of a server in all files and on the command line: the one that counts first, then the others
// from the strongest scope to the weakest.
func entriesOf(s *project.Setup, name string) []fileEntry {
	var all []fileEntry
	add := func(p config.Parsed) {
		if e, ok := p.Servers[name]; ok {
			spec := s.Specs[name]
			all = append(all, fileEntry{p.Scope, p.Path, e, p.Program, spec.Source == p.Path && spec.Scope == p.Scope})
		}
	}
	for _, f := range s.Snapshot.Files {
		add(s.Snapshot.Parse(f))
	}
	for _, p := range s.Snapshot.Fixed {
		add(p)
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b fileEntry) int {
		switch {
		case a.counts == b.counts:
			return 0
		case a.counts:
			return -1
		}
		return 1
	})
	return all
}

// managedFile returns the file of the organisation beside which no other file counts; "" if there is none.
func managedFile(s *project.Setup) string {
	for _, f := range s.Files {
		if f.Exclusive {
			return f.Path
		}
	}
	return ""
}

// checkMayManage refuses a change that could not take effect, because only the organisation's file counts. what is the verb in
// the past tense.
func checkMayManage(s *project.Setup, what string) error {
	if file := managedFile(s); file != "" {
		return exit.With(exit.Usage, fmt.Sprintf("nothing is %s: the servers are managed by %s, and no other file counts; "+
			"ask whoever administers this machine", what, messages.Line(file, 0)))
	}
	return nil
}

// editFile changes a file of mcpvisor. It gives change the parsed content and writes the text that change returns; change is
// called again if another process writes the file in between, and must not have effects. On any error the file stays as it was.
// The error is an exit.Error with exit.Usage.
func editFile(file string, scope messages.Scope, change func(text []byte, ours config.Parsed) ([]byte, error)) error {
	if file == "" {
		return exit.With(exit.Usage, "there is no place for the file; set HOME")
	}
	err := editScope(file, scope, func(text []byte) ([]byte, error) {
		ours := config.Parsed{Path: file, Scope: scope}
		if len(strings.TrimSpace(string(text))) > 0 {
			ours = config.Parse(config.File{Path: file, Scope: scope, Data: text})
		}
		// A file with a syntax error is not edited, since the edit could not find its place.
		if ours.Broken {
			return nil, exit.With(exit.Usage, ours.Problems[0].Error())
		}
		return change(text, ours)
	})
	var coded *exit.Error
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.Is(err, edit.ErrNotJSON), errors.Is(err, edit.ErrNotObject), errors.Is(err, edit.ErrTwice), errors.Is(err, edit.ErrMissing):
		return exit.With(exit.Usage, fmt.Sprintf("%s: it is not changed: %v", messages.Line(file, 0), err))
	}
	return exit.With(exit.Usage, fmt.Sprintf("%s: it cannot be changed: %v", messages.Line(file, 0), files.PlainCause(err)))
}

// editScope changes a file only where its scope may lie. A project's file must lie inside of the project, even if the project
// brings symbolic links, or a cloned repository could make this command write elsewhere.
func editScope(file string, scope messages.Scope, change func([]byte) ([]byte, error)) error {
	if scope != messages.ScopeProject && scope != messages.ScopeLocal {
		return discover.Edit(file, change)
	}
	project, err := discover.ProjectOf(file)
	if err != nil {
		return err
	}
	return discover.EditIn(project, file, change)
}

// inListError returns the error about a file whose servers stand in a list, not under their names.
func inListError(file string) error {
	return exit.With(exit.Usage, messages.Line(file, 0)+": its servers stand in a list, which no command here edits; change it by "+
		`hand, or write {"mcpServers": {"NAME": {…}}}`)
}

// checkEditable returns an error that says why an entry cannot be changed where it stands; nil if it can.
func (e fileEntry) checkEditable(verb string) error {
	quoted := fmt.Sprintf("server %q", messages.Line(e.entry.Name, 60))
	switch {
	case e.scope == messages.ScopeManaged:
		return exit.With(exit.Usage, fmt.Sprintf("%s is managed by %s and cannot be %s; ask whoever administers this machine", quoted,
			messages.Line(e.file, 0), verb))
	case e.program != "":
		return exit.With(exit.Usage, fmt.Sprintf("%s stands in %s, a file of %s, which is not changed; copy it with: mcpvisor import",
			quoted, messages.Line(e.file, 0), e.program))
	case !filepath.IsAbs(e.file):
		return exit.With(exit.Usage, fmt.Sprintf("%s comes from the command line (%s), and there is no file to change", quoted,
			messages.Line(e.file, 0)))
	case e.entry.Path == nil:
		return inListError(e.file)
	}
	return nil
}

// keepOutOfGit writes a .gitignore beside a new local file, which may hold secrets, so that it is not committed by accident. It
// reports whether it wrote one. A .gitignore that is there already is the person's, and stays.
func keepOutOfGit(file string) bool {
	dir := filepath.Dir(file)
	if _, err := os.Lstat(filepath.Join(filepath.Dir(dir), ".git")); err != nil {
		return false
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() { // a symbolic link may lead into a folder of another project
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil { // there is one already, or none can be written
		return false
	}
	_, err = f.WriteString("/" + filepath.Base(file) + "\n")
	return errors.Join(err, f.Close()) == nil
}
