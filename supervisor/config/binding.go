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

// BindingVersion is the version of the form of a [Binding] and a part of its hash. A higher one makes every stored approval
// stale, so that each person approves each entry once more.
const BindingVersion = 2

// MaxEntry bounds an entry of a file that was merely found, in bytes of its canonical form, because a person has to read all of
// it before it starts.
const MaxEntry = 64 << 10

// Binding is the object that a person approves: an entry of a file that was merely found, together with the place that gives it
// its meaning. The screen shows all of it, and the approval stores its hash. No variable in it is expanded, so that it holds no
// value of the person's environment; a secret that stands in the entry itself is in it.
type Binding struct {
	// Version is BindingVersion.
	Version int `json:"version"`
	// Server is the name under which the entry stands.
	Server string `json:"server"`
	// Path is the path by which the file was found, before links are followed.
	Path string `json:"path"`
	// Project is the directory from which relative paths of the entry count.
	Project string `json:"project"`
	// Entry is the entry as it is written, in the canonical form of RFC 8785.
	Entry json.RawMessage `json:"entry"`
	// Variables holds the names, sorted and without their values, that the entry's envFile defined.
	Variables []string `json:"variables,omitempty"`
	// Files holds the files of the project that the entry's command, arguments, directory and credentials name and that
	// existed: relative to Project, with slashes, sorted. At most 64 are bound.
	Files []string `json:"files,omitempty"`
}

// Canonical returns the binding as JSON in the canonical form of RFC 8785, so that equal bindings have equal bytes. It cannot
// fail: Entry has been read as JSON, and all other fields are texts and a number.
func (b Binding) Canonical() []byte {
	text, err := json.Marshal(b)
	if err != nil {
		// Entry was read as JSON.
		panic(err)
	}
	if text, err = rawjson.Canonical(text); err != nil {
		panic(err)
	}
	return text
}

// Hash returns "v2:" and the SHA-256 of the canonical form in hexadecimal digits. Approvals are stored under it.
func (b Binding) Hash() string {
	sum := sha256.Sum256(b.Canonical())
	return fmt.Sprintf("v%d:%s", BindingVersion, hex.EncodeToString(sum[:]))
}

// WithLists returns the binding with the lists that an earlier approval recorded in the place of the present ones. If its hash
// equals the approved hash, then entry, path and project are unchanged and only the lists differ.
func (b Binding) WithLists(variables, files []string) Binding {
	b.Variables, b.Files = sortedNames(variables), sortedNames(files)
	return b
}

// sortedNames returns a sorted copy without duplicates.
func sortedNames(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// Candidate is one of the entries of a name from which the approvals choose: an entry of a merely found file, or the first one
// below those that needs no approval.
type Candidate struct {
	// Spec describes the server that the entry starts, with its variables expanded.
	Spec messages.Spec
	// Binding holds everything that an approval of the entry covers; nil for an entry that needs none.
	Binding *Binding
	// Sums maps each of Binding.Files to its SHA-256 in hexadecimal digits.
	Sums map[string]string
	// FromFile holds the names in Spec.Env whose values come from the envFile.
	FromFile []string
	// Asks means that a change of a file in Sums needs a new approval: "approve": "files".
	Asks bool
	// Own means that the person wrote the entry through mcpvisor. Merge leaves it false; the command that edits the
	// entry sets it from Approvals.Owns of package discover.
	Own bool
	// Problems holds what is wrong with the expanded values of the entry.
	Problems []Problem
}

// Canonical returns the entry as written, in the canonical form of RFC 8785. It is nil for an entry that needs no approval and
// for one that could not be put into that form.
func (e Entry) Canonical() json.RawMessage { return e.raw }

// canonicalEntry returns the value of an entry in canonical form. Comments do not count, so that a change of a comment needs no
// new approval. It fails for a key that stands twice and for text that is no valid Unicode.
func canonicalEntry(v hujson.Value) (json.RawMessage, error) {
	v = v.Clone()
	v.Standardize()
	return rawjson.Canonical([]byte(strings.TrimSpace(string(v.Pack()))))
}

// bindCandidate makes the candidate of an entry from its resolved spec. sum gives the SHA-256 of a file of the project and
// false for a path that names no regular file; only files that exist are bound.
func (r *resolver) bindCandidate(s messages.Spec, sum func(string) (string, bool)) Candidate {
	c := Candidate{Spec: s, Problems: r.problems}
	if !merelyFound(s.Scope) {
		return c
	}
	e := r.entry
	c.Asks = e.Approve == approveFiles
	b := Binding{Version: BindingVersion, Server: e.Name, Path: s.Source, Project: r.ctx.ProjectDir, Entry: e.raw}
	// An entry that could not be read is invalid and never starts, but its binding must still be valid JSON.
	if b.Entry == nil {
		b.Entry = json.RawMessage("null")
	}
	// resolveEntry has read the file of variables, as far as there is one.
	b.Variables, c.FromFile = sortedNames(r.variables), sortedNames(r.applied)
	for _, name := range NamedFiles(s, r.ctx.ProjectDir) {
		if len(b.Files) == maxNamedFiles {
			break
		}
		// A path that names no file may be a word that only looks like one.
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

// maxNamedFiles bounds the files of one entry that are bound, because each of them is read and summed at every load.
const maxNamedFiles = 64
