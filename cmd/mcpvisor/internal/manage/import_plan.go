package manage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// importItem is one server of another program on its way into a file of mcpvisor.
type importItem struct {
	Name string `json:"name"`
	// As is the name that it gets; empty if it is not copied.
	As   string         `json:"as,omitempty"`
	From foreign.Format `json:"from"`
	File string         `json:"file"`
	Line int            `json:"line,omitempty"`
	// Becomes says what the server will start or dial, without secrets; empty if its entry is invalid.
	Becomes string `json:"becomes"`
	// Skipped says as a clause why it is not copied; empty if it is.
	Skipped string `json:"skipped,omitempty"`
	// Notes lists what is not carried over, or only in another way.
	Notes []config.Problem `json:"notes,omitempty"`

	// spec, envFile and approvals are what is written; they are not part of the JSON, since they may hold secrets.
	spec      messages.Spec
	envFile   string
	approvals []config.Approval
	// project says that the file lies in the working directory, and may be the work of another person.
	project bool
}

// importOptions holds the checked flags of import.
type importOptions struct {
	scope           messages.Scope
	from            foreign.Format // empty: files of all programs
	replace, rename bool
}

// nameHolder is the server that has a name already: in the file of mcpvisor, or earlier in the same plan.
type nameHolder struct {
	spec messages.Spec
	// owner names the file or the program, for a sentence.
	owner string
	// ours says that the holder stands in the file that is written to.
	ours bool
}

// planImport decides what becomes of each server that was found; ours is the file that will be written to. It reads nothing and
// asks nothing. Files that come first win a name.
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
			// A relative path in a project's file counts from the project, and must be made absolute for a file outside of it.
			if a.envFile != "" && other.Project && w.scope == messages.ScopeUser {
				a.envFile = projectPath(a.envFile, other.Dir)
			}
			for _, p := range other.Problems {
				if p.Server == e.Name && p.Warning {
					a.Notes = append(a.Notes, p)
				}
			}
			if a.spec.Invalid == "" {
				a.Becomes = status.StartText(a.spec)
				if a.spec.Disabled {
					a.Becomes += " · disabled"
				}
			}
			a.decideName(names, other, w)
			// Other programs keep secrets in arguments often; the person learns of it when the entry moves.
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

// decideName gives the server its name in the file, or the reason why it is skipped. The order of the cases matters: an
// identical server is never copied a second time, with any flags.
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

// freeName returns name, or name with the least number from 2 on that makes it free. A holder with an equal spec counts as
// free, and the caller skips the server then.
func freeName(name string, spec messages.Spec, names map[string]nameHolder) string {
	free := name
	for i := 2; ; i++ {
		if old, clash := names[free]; !clash || old.spec.Equal(spec) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, i)
	}
}

// importedSpec returns the spec as it will be written. A project's file may be the work of another person: its trust is not
// copied into the person's own scope, and its relative directory becomes absolute.
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

// projectPath makes a path of a project's file absolute. Paths that begin with a variable or "~" are left, because they do not
// begin at the project.
func projectPath(path, dir string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "${") || strings.HasPrefix(path, "~") {
		return path
	}
	return filepath.Join(dir, path)
}

// entriesInOrder returns the servers of a file in the order in which they stand in it, so that output does not depend on a map.
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

// marshalEntry returns the entry as it will be written. envFile is no field of messages.Spec, and is appended.
func (a importItem) marshalEntry() json.RawMessage {
	text := approve.EntryText(a.spec)
	if a.envFile == "" {
		return text
	}
	return append(append(append(bytes.TrimSuffix(text, []byte("}")), `,"envFile":`...), schema.EncodeJSON(a.envFile)...), '}')
}
