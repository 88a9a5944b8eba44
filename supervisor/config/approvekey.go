package config

import "github.com/mcpvisor/mcpvisor/messages"

// approveKey is the key that says what asks for a new approval: of a file of the person's own or of the organisation for all
// servers of projects, of an entry for it alone.
const approveKey = "approve"

// The words of approveKey. A changed entry always asks; approveFiles has a changed file of the project that it names ask, too.
const (
	approveEntry = "entry"
	approveFiles = "files"
)

// readApprove reads the key of an entry.
func readApprove(r *reader, e *Entry, v value) { e.Approve = r.approveWord(v) }

// approveWord reads the word. One that cannot be read asks: a mistake in it must not let through what it was to keep.
func (r *reader) approveWord(v value) string {
	l, ok := literalOf(v.Value)
	switch {
	case ok && l.Kind() == '"' && l.String() == approveEntry:
		return approveEntry
	case ok && l.Kind() == '"' && l.String() == approveFiles:
		return approveFiles
	}
	r.addProblem(r.posOf(v.Value), v.key, "it says what asks for a new approval, and is entry or files",
		"until it can be read, changed files ask, too")
	return approveFiles
}

// asksForFiles reports whether changed files ask for a new approval of everything that was merely found: the nearest of the person's own
// files that says so, or the organisation's. Files of the project say it of their own entries.
func asksForFiles(files []Parsed) bool {
	asks, least := false, false
	for _, f := range files {
		switch {
		case f.Approve == "" || merelyFound(f.Scope):
		case f.Scope == messages.ScopeManaged:
			least = least || f.Approve == approveFiles
		default:
			asks = f.Approve == approveFiles
		}
	}
	return asks || least
}
