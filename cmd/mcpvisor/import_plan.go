package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// importItem is one server of another program on its way into a file of ours.
type importItem struct {
	Name string `json:"name"`
	// As is its name with us; empty if it is not imported.
	As   string         `json:"as,omitempty"`
	From foreign.Format `json:"from"`
	File string         `json:"file"`
	Line int            `json:"line,omitempty"`
	// Becomes says what it starts or dials, without secrets.
	Becomes string `json:"becomes"`
	// Skipped is why it is not imported, as a clause.
	Skipped string `json:"skipped,omitempty"`
	// Notes are what is not carried over, or only in another way.
	Notes []config.Problem `json:"notes,omitempty"`

	spec      messages.Spec
	envFile   string
	approvals []config.Approval
	// project says that the file is one of the working directory.
	project bool
}

// importOptions are what the person asked of an import.
type importOptions struct {
	scope           messages.Scope
	from            foreign.Format
	replace, rename bool
}

// nameHolder is what stands under a name already.
type nameHolder struct {
	spec  messages.Spec
	owner string
	ours  bool
}

// planImport decides what becomes of each server that was found. ours are the servers of the file that is written to.
func planImport(found []discover.ForeignFile, ours config.Parsed, w importOptions) []importItem {
	names := map[string]nameHolder{}
	for name, e := range ours.Servers {
		names[name] = nameHolder{e.Spec, ours.Path, true}
	}
	var plan []importItem
	for _, other := range found {
		for _, e := range entriesInOrder(other.Parsed) {
			a := importItem{Name: e.Name, From: other.Format, File: other.Location.Path, Line: e.Pos.Line, spec: importedSpec(e, other, w),
				envFile: e.EnvFile, approvals: e.Approvals, project: other.Project}
			if a.envFile != "" && other.Project && w.scope == messages.ScopeUser {
				a.envFile = projectPath(a.envFile, other.Dir)
			}
			for _, p := range other.Problems {
				if p.Server == e.Name && p.Warning {
					a.Notes = append(a.Notes, p)
				}
			}
			if a.spec.Invalid == "" {
				a.Becomes = startText(a.spec)
				if a.spec.Disabled {
					a.Becomes += " · disabled"
				}
			}
			a.decideName(names, other, w)
			if a.As != "" && slices.Contains(secretsInClear(a.spec), secretArgument) {
				a.Notes = append(a.Notes, config.Problem{Line: e.Pos.Line, Col: e.Pos.Col, Key: "args", Warning: true,
					Text: "one looks like a secret, and everybody on this machine can read arguments in the list of processes",
					Fix:  "use env, if the server takes it from a variable as well"})
			}
			if a.As != "" {
				names[a.As] = nameHolder{a.spec, other.Format.Title(), false}
			}
			plan = append(plan, a)
		}
	}
	return plan
}

// decideName gives the server its name with us, or the reason why it is skipped.
func (a *importItem) decideName(names map[string]nameHolder, other discover.ForeignFile, w importOptions) {
	old, clash := names[a.Name]
	switch {
	case a.spec.Invalid != "":
		a.Skipped = a.spec.Invalid
	case other.Project && w.scope == messages.ScopeUser && w.from == "":
		a.Skipped = fmt.Sprintf("it is of a file of this directory, which may be somebody else's; add --from %s, or --scope local",
			other.Format)
	case clash && old.spec.Equal(a.spec) && old.ours:
		a.Skipped = "it is there already"
	case clash && old.spec.Equal(a.spec):
		a.Skipped = "it is the same as the one from " + old.owner
	case clash && old.ours && w.replace:
		a.As = a.Name
	case clash && w.rename:
		a.As = freeName(a.Name+"-"+string(other.Format), a.spec, names)
		if _, there := names[a.As]; there {
			a.As, a.Skipped = "", "it is there already, as "+messages.Line(a.As, 80)
		}
	case clash && old.ours:
		a.Skipped = "the name is taken there; add --replace or --rename"
	case clash:
		a.Skipped = "the name is taken by the one from " + old.owner + "; add --rename"
	default:
		a.As = a.Name
	}
}

// freeName is name, or name with a number, such that nothing else has it; what has it may be the very same server.
func freeName(name string, spec messages.Spec, names map[string]nameHolder) string {
	free := name
	for i := 2; ; i++ {
		if old, clash := names[free]; !clash || old.spec.Equal(spec) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, i)
	}
}

// importedSpec is the spec as it is written into a file of ours. A relative directory of a project's file begins at the
// project, which only a file of the project can say.
func importedSpec(e config.Entry, other discover.ForeignFile, w importOptions) messages.Spec {
	s := e.Spec
	s.Scope, s.Source = "", ""
	if other.Project && w.scope == messages.ScopeUser {
		s.Trusted = false
		if s.Cwd != "" {
			s.Cwd = projectPath(s.Cwd, other.Dir)
		}
	}
	return s
}

// projectPath is a path of a project's file for a file that is not of the project.
func projectPath(path, dir string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "${") || strings.HasPrefix(path, "~") {
		return path
	}
	return filepath.Join(dir, path)
}

// entriesInOrder are the servers of a file as they stand in it.
func entriesInOrder(p config.Parsed) []config.Entry {
	entries := make([]config.Entry, 0, len(p.Servers))
	for _, e := range p.Servers {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b config.Entry) int {
		if a.Pos != b.Pos {
			return (a.Pos.Line-b.Pos.Line)*10000 + min(max(a.Pos.Col-b.Pos.Col, -9999), 9999)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return entries
}

// marshalEntry is the entry as it is written into a file of ours.
func (a importItem) marshalEntry() json.RawMessage {
	text := entryText(a.spec)
	if a.envFile == "" {
		return text
	}
	return append(append(append(bytes.TrimSuffix(text, []byte("}")), `,"envFile":`...), encodeJSON(a.envFile)...), '}')
}

// entryText is a spec as an entry of a file. What follows from the rest is left out.
func entryText(s messages.Spec) json.RawMessage {
	switch {
	case s.Type == messages.Stdio && s.Command != "", s.Type == messages.HTTP && s.FallbackSSE:
		s.Type, s.FallbackSSE = "", false
	}
	return encodeJSON(s)
}
