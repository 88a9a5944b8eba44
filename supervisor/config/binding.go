package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// BindingVersion is that of the form of a Binding. Another one asks everybody to approve everything once more.
const BindingVersion = 2

// MaxEntry bounds an entry of a file that was merely found, in bytes of its canonical form: a person is to read it.
const MaxEntry = 64 << 10

// Binding is the object that a person approves: an entry of a file that was merely found, and what it means where it stands. It is
// shown whole, and what was shown is what is approved. Nothing in it is expanded, so that it holds no value of the person's
// environment; what the entry holds, it holds.
type Binding struct {
	// Version is BindingVersion.
	Version int `json:"version"`
	// Server is the name under which the entry stands.
	Server string `json:"server"`
	// Path is the file as it was found: not what a link leads to.
	Path string `json:"path"`
	// Project is the directory in which the entry means what it says: relative paths begin there.
	Project string `json:"project"`
	// Entry is the entry as it is written, in the canonical form of RFC 8785.
	Entry json.RawMessage `json:"entry"`
	// Variables are the names that the entry's envFile had, sorted.
	Variables []string `json:"variables,omitempty"`
	// Files are the files of the project that the entry's command, arguments, directory and credentials name, and that were
	// there: relative to Project, with slashes, sorted.
	Files []string `json:"files,omitempty"`
}

// Canonical is the binding as JSON in the canonical form of RFC 8785.
func (b Binding) Canonical() []byte {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // Entry was read as JSON
	}
	if text, err = rawjson.Canonical(text); err != nil {
		panic(err)
	}
	return text
}

// Hash identifies the binding: "v2:" and the SHA-256 of its canonical form in hexadecimal digits.
func (b Binding) Hash() string {
	sum := sha256.Sum256(b.Canonical())
	return fmt.Sprintf("v%d:%s", BindingVersion, hex.EncodeToString(sum[:]))
}

// WithLists is the binding with the lists of an approval in the place of those of now: whether the entry, its place and its directory are
// those that were approved shows in its hash.
func (b Binding) WithLists(variables, files []string) Binding {
	b.Variables, b.Files = sortedNames(variables), sortedNames(files)
	return b
}

func sortedNames(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// Candidate is one entry of a name that a file brings which was merely found, or one of the person's own below such an entry.
type Candidate struct {
	// Spec describes the server that the entry starts.
	Spec messages.Spec
	// Binding holds everything that an approval of the entry is bound to; nil for an entry that needs none.
	Binding *Binding
	// Sums are the SHA-256 of Binding.Files by name, in hexadecimal digits.
	Sums map[string]string
	// FromFile are the variables of Spec.Env that are the envFile's.
	FromFile []string
	// Asks says that a changed file of Sums asks for a new approval: "approve": "files".
	Asks bool
	// Own says that the person wrote the entry through mcpvisor. The caller that has looked that up sets it.
	Own bool
	// Problems are those of the entry's values.
	Problems []Problem
}

// Canonical is the entry as it is written, in the canonical form of RFC 8785; nil for one of a file that was not merely found.
func (e Entry) Canonical() json.RawMessage { return e.raw }

// canonicalEntry is the value of an entry without comments, in canonical form.
func canonicalEntry(v hujson.Value) (json.RawMessage, error) {
	v = v.Clone()
	v.Standardize()
	return rawjson.Canonical([]byte(strings.TrimSpace(string(v.Pack()))))
}

// bindCandidate makes the candidate of an entry. The spec is the resolved one.
func (r *resolver) bindCandidate(s messages.Spec, sum func(string) (string, bool)) Candidate {
	c := Candidate{Spec: s, Problems: r.problems}
	if !merelyFound(s.Scope) {
		return c
	}
	e := r.entry
	c.Asks = e.Approve == approveFiles
	b := Binding{Version: BindingVersion, Server: e.Name, Path: s.Source, Project: r.ctx.ProjectDir, Entry: e.raw}
	if b.Entry == nil { // it could not be read, and is invalid
		b.Entry = json.RawMessage("null")
	}
	b.Variables, c.FromFile = sortedNames(r.variables), sortedNames(r.applied)
	for _, name := range NamedFiles(s, r.ctx.ProjectDir) {
		if len(b.Files) == maxNamedFiles {
			break
		}
		if text, ok := sum(filepath.Join(r.ctx.ProjectDir, filepath.FromSlash(name))); ok {
			if c.Sums == nil {
				c.Sums = map[string]string{}
			}
			b.Files, c.Sums[name] = append(b.Files, name), text
		}
	}
	c.Binding = &b
	return c
}

// maxNamedFiles bounds the files of one entry that are bound.
const maxNamedFiles = 64
