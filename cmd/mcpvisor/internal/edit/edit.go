// Package edit changes one member of a text in JSON, TOML or YAML and leaves the rest alone. It is pure: a text comes in, a text
// goes out.
//
//	text, err = edit.Put(text, []string{"mcpServers", "github"}, json.RawMessage(`{"command": "npx"}`))
//	text, err = edit.Remove(text, []string{"mcpServers", "old"})
//
// How it fits: the commands add, import, remove, enable and disable call it inside of editFile of package manage,
// which reads and writes the file; the commands clients connect and disconnect call it for files of other programs, which may be
// TOML and YAML. github.com/tailscale/hujson parses JSON; this package owns the decision which bytes change.
//
//	edit.go    finds the member that a path leads to, and checks that it is unique
//	splice.go  lays out the new member as its neighbours are, and replaces the bytes
//	toml.go    a table at the end of a TOML text
//	yaml.go    an entry at the end of a section of a YAML text
//	proof.go   reads TOML and YAML before and after, and refuses an edit that changed anything else
//
// Guarantees:
//
//   - The result is valid JSON with comments and trailing commas (JWCC), and says what the text said but for the member.
//   - Everything outside of the member is the same byte for byte: order, comments, indentation, line endings, a byte order
//     mark, the end of the file. The one exception is the comma that a new neighbour needs, or a lost one leaves.
//   - A new member is written as its neighbours are: with their indentation, line endings and trailing comma; on one line
//     where they stand on one line.
//   - An edit of TOML or YAML works on whole lines, and is returned only if reading both texts shows no other difference.
//   - A text that cannot be edited without guessing is an error, and no text comes back: one that is no JSON, a path through
//     something that is no object, a key that stands twice.
//
// Not promised: that a comment about a removed member goes with it. It stays, unless it stands on the member's own line.
package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// These errors say why a text is not edited, for errors.Is. The errors that are returned wrap them and name the path. Those of TOML
// and YAML alone stand in proof.go.
var (
	ErrNotJSON   = errors.New("the text is not JSON")
	ErrNotObject = errors.New("it is no object")
	ErrTwice     = errors.New("the key stands twice")
	ErrMissing   = errors.New("there is no such key")
)

// maxDepth bounds the nesting of a text, in brackets, because the parser is recursive and a deep text would exhaust the stack.
const maxDepth = 1000

// Put sets the member at a path of keys to value, which must be valid JSON. It makes missing objects on the way, also in the place of a null,
// and the whole text if that is empty, or holds comments only: they stay, and the object follows. The value of an existing member is
// replaced where it stands. Errors wrap [ErrNotJSON], [ErrNotObject] or [ErrTwice].
func Put(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	if !json.Valid(value) || !utf8.Valid(value) {
		return nil, fmt.Errorf("the new value: %w", ErrNotJSON)
	}
	for _, key := range path {
		if !utf8.ValidString(key) {
			return nil, fmt.Errorf("a key that is not UTF-8: %w", ErrNotJSON)
		}
	}
	d, err := parseDocument(withObject(text))
	if err != nil {
		return nil, err
	}
	if isNull(d.root) {
		if d, err = parseDocument(d.splice(d.root.StartOffset, d.root.EndOffset, "{}")); err != nil {
			return nil, err
		}
	}
	at, err := d.findTarget(path)
	if err != nil {
		return nil, err
	}
	// Keys that are missing below the innermost object become one nested value, which is inserted at once.
	for _, key := range reversePath(path[at.depth+1:]) {
		value = nestValue(key, value)
	}
	var out []byte
	if at.member >= 0 {
		out = d.replaceMember(at.parent, at.object.Members[at.member], value)
	} else {
		out = d.insertMember(at.parent, at.object, path[at.depth], value)
	}
	if bracketDepth(out) > maxDepth { // the result could not be edited again
		return nil, fmt.Errorf("%w: more than %d brackets would be open", ErrNotJSON, maxDepth)
	}
	return out, nil
}

// Remove deletes the member at a path of keys. It returns an error that wraps [ErrMissing] if there is none.
func Remove(text []byte, path []string) ([]byte, error) {
	d, err := parseDocument(text)
	if err != nil {
		return nil, err
	}
	at, err := d.findTarget(path)
	switch {
	case err != nil:
		return nil, err
	case at.member < 0, at.depth < len(path)-1:
		return nil, fmt.Errorf("%s: %w", pathText(path[:at.depth+1]), ErrMissing)
	}
	return d.removeMember(at.parent, at.object, at.member), nil
}

// withObject returns a text with an empty object behind its comments, if it holds nothing else; any other text as it is.
func withObject(text []byte) []byte {
	body := bytes.TrimPrefix(text, bom)
	if bracketDepth(body) > maxDepth { // the parser recurses
		return text
	}
	if _, err := hujson.Parse(append(body[:len(body):len(body)], "\n{}\n"...)); err != nil { // there is a value, or a broken one
		return text
	}
	t := splitText(text)
	if len(bytes.TrimSpace(body)) == 0 {
		body = nil
	}
	return t.joinText(append(t.endLine(body), "{}"+t.newline...))
}

// isNull reports whether a value is null, by which programs say that there is no value.
func isNull(v hujson.Value) bool {
	l, ok := v.Value.(hujson.Literal)
	return ok && string(l) == "null"
}

// pathTarget is the result of following a path: the innermost object that exists, and the index of the member of the key path[depth] in
// it, or -1 if that is missing there. The member is null if it is not that of the last key.
type pathTarget struct {
	parent hujson.Value
	object *hujson.Object
	member int
	depth  int
}

// findTarget follows the path as far as it exists. An empty path is an error, because the whole text cannot be a member.
func (d document) findTarget(path []string) (pathTarget, error) {
	at := pathTarget{parent: d.root, member: -1}
	for i, key := range path {
		var err error
		if at.object, err = objectOf(at.parent, path[:i]); err != nil {
			return at, err
		}
		at.depth = i
		if at.member, err = findMember(at.object, key, path[:i+1]); err != nil || at.member < 0 || i == len(path)-1 || isNull(at.object.Members[at.member].Value) {
			return at, err
		}
		at.parent = at.object.Members[at.member].Value
	}
	return at, fmt.Errorf("an edit needs a key: %w", ErrMissing)
}

// document is a parsed text. The offsets of its tree count in body, which lacks the byte order mark.
type document struct {
	byteOrderMark, body []byte
	root                hujson.Value
	style
}

// bom is the byte order mark of UTF-8, which some editors on Windows write; hujson does not accept it.
var bom = []byte("\ufeff")

// parseDocument parses a text and finds its layout. The depth is checked before, because hujson recurses without a bound.
func parseDocument(text []byte) (document, error) {
	d := document{body: bytes.TrimPrefix(text, bom)}
	d.byteOrderMark = text[:len(text)-len(d.body)]
	if bracketDepth(d.body) > maxDepth {
		return d, fmt.Errorf("%w: more than %d brackets are open", ErrNotJSON, maxDepth)
	}
	// hujson wants a line comment to end with a newline, at the end of the text too. The full slice expression makes append
	// copy, so that the caller's bytes stay.
	root, err := hujson.Parse(append(d.body[:len(d.body):len(d.body)], '\n'))
	if err != nil { // the parser's error may quote the file, which may hold secrets
		return d, ErrNotJSON
	}
	d.root = root
	d.style = styleOf(d.body, root)
	return d, nil
}

// bracketDepth returns the greatest number of open brackets. It counts those in strings and comments too, which can only refuse
// a text that is far beyond what people write.
func bracketDepth(b []byte) int {
	open, most := 0, 0
	for _, c := range b {
		switch c {
		case '[', '{':
			open++
			most = max(most, open)
		case ']', '}':
			open--
		}
	}
	return most
}

// objectOf returns the object of a value, or an error that names the path to what is none.
func objectOf(v hujson.Value, path []string) (*hujson.Object, error) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%s: %w", pathText(path), ErrNotObject)
	}
	return o, nil
}

// findMember returns the index of the member with this key, or -1. A key that stands twice is an error, since programs differ
// in which of the two they take.
func findMember(o *hujson.Object, key string, path []string) (int, error) {
	found := -1
	for i, m := range o.Members {
		l, _ := m.Name.Value.(hujson.Literal)
		if l.String() != key {
			continue
		}
		if found >= 0 {
			return -1, fmt.Errorf("%s: %w", pathText(path), ErrTwice)
		}
		found = i
	}
	return found, nil
}

// pathText returns a path for an error.
func pathText(path []string) string {
	if len(path) == 0 {
		return "the file"
	}
	s := ""
	for i, key := range path {
		if i > 0 {
			s += "."
		}
		s += key
	}
	return strconv.Quote(s)
}

// reversePath returns the keys from the last to the first, the order in which nested objects are built.
func reversePath(path []string) []string {
	out := make([]string, len(path))
	for i, key := range path {
		out[len(path)-1-i] = key
	}
	return out
}

// nestValue returns an object whose only member is the value.
func nestValue(key string, value json.RawMessage) json.RawMessage {
	return append(append(append(append([]byte{'{'}, quoteKey(key)...), ':'), value...), '}')
}

// quoteKey returns a key in quotes, without the escapes that encoding/json adds for HTML.
func quoteKey(key string) []byte { return []byte(hujson.String(key)) }
