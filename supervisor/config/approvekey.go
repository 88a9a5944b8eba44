package config

import "github.com/mcpvisor/mcpvisor/messages"

// approveKey names the key that says which changes need a new approval. In the person's own file or the organisation's it holds
// for all servers of projects, in an entry for that entry.
const approveKey = "approve"

// The words of approveKey. A changed entry always needs a new approval. With approveFiles, a change to a file of the project
// that the entry names needs one, too.
const (
	approveEntry = "entry"
	approveFiles = "files"
)

// readApprove reads the key of an entry.
func readApprove(r *reader, e *Entry, v value) { e.Approve = r.approveWord(v) }

// approveWord reads the word. For a value that cannot be read it returns approveFiles, the stricter word: the person wanted a
// check, and a typing mistake must not remove it.
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

// asksForFiles reports whether a changed file of the project makes every merely found entry that names it wait for a new
// approval. The last own file that has the key decides, because files come lowest precedence first; a managed file can add the
// requirement and not lift it. Files of the project are skipped: the key in them counts for their own entries only.
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
