// Package edit changes one member of a JSON text and leaves the rest alone. It is pure: a text comes in, a text goes out.
//
//	text, err = edit.Put(text, []string{"mcpServers", "github"}, json.RawMessage(`{"command": "npx"}`))
//	text, err = edit.Remove(text, []string{"mcpServers", "old"})
//
// Guarantees:
//
//   - The result is valid JSON with comments and trailing commas (JWCC), and says what the text said but for the member.
//   - Everything outside of the member is the same byte for byte: order, comments, indentation, line endings, a byte order
//     mark, the end of the file. The one exception is the comma that a new neighbour needs, or a lost one leaves.
//   - A new member is written as its neighbours are: with their indentation, line endings and trailing comma; on one line
//     where they stand on one line.
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

// The reasons why a text is not edited, for errors.Is.
var (
	ErrNotJSON   = errors.New("the text is not JSON")
	ErrNotObject = errors.New("it is no object")
	ErrTwice     = errors.New("the key stands twice")
	ErrMissing   = errors.New("there is no such key")
)

// maxDepth bounds the nesting of a text, because the parser calls itself.
const maxDepth = 1000

// Put sets the member at a path of keys. Objects on the way are made if they are missing, as is the whole text if it is
// empty. The value of a member that is there is replaced where it stands.
func Put(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	if !json.Valid(value) || !utf8.Valid(value) {
		return nil, fmt.Errorf("the new value: %w", ErrNotJSON)
	}
	for _, key := range path {
		if !utf8.ValidString(key) {
			return nil, fmt.Errorf("a key that is not UTF-8: %w", ErrNotJSON)
		}
	}
	if len(bytes.TrimSpace(bytes.TrimPrefix(text, bom))) == 0 {
		text = append(bytes.Clone(text[:len(text)-len(bytes.TrimPrefix(text, bom))]), "{}\n"...)
	}
	d, err := parseDocument(text)
	if err != nil {
		return nil, err
	}
	at, err := d.findTarget(path)
	if err != nil {
		return nil, err
	}
	var out []byte
	if at.member >= 0 {
		out = d.replaceMember(at.parent, at.object.Members[at.member], value)
	} else {
		for _, key := range reversePath(path[at.depth+1:]) {
			value = nestValue(key, value)
		}
		out = d.insertMember(at.parent, at.object, path[at.depth], value)
	}
	if bracketDepth(out) > maxDepth { // it could not be edited again
		return nil, fmt.Errorf("%w: more than %d brackets would be open", ErrNotJSON, maxDepth)
	}
	return out, nil
}

// Remove takes the member at a path of keys out.
func Remove(text []byte, path []string) ([]byte, error) {
	d, err := parseDocument(text)
	if err != nil {
		return nil, err
	}
	at, err := d.findTarget(path)
	switch {
	case err != nil:
		return nil, err
	case at.member < 0:
		return nil, fmt.Errorf("%s: %w", pathText(path[:at.depth+1]), ErrMissing)
	}
	return d.removeMember(at.parent, at.object, at.member), nil
}

// pathTarget is where a path leads: the innermost object that is there, and the member in it that the path ends at, or -1 if the
// key at depth is missing in it.
type pathTarget struct {
	parent hujson.Value
	object *hujson.Object
	member int
	depth  int
}

func (d document) findTarget(path []string) (pathTarget, error) {
	at := pathTarget{parent: d.root, member: -1}
	for i, key := range path {
		var err error
		if at.object, err = objectOf(at.parent, path[:i]); err != nil {
			return at, err
		}
		at.depth = i
		if at.member, err = findMember(at.object, key, path[:i+1]); err != nil || at.member < 0 || i == len(path)-1 {
			return at, err
		}
		at.parent = at.object.Members[at.member].Value
	}
	return at, fmt.Errorf("an edit needs a key: %w", ErrMissing)
}

// document is a text with its tree. Offsets of the tree count in body, which lacks the byte order mark.
type document struct {
	byteOrderMark, body []byte
	root                hujson.Value
	style
}

var bom = []byte("\ufeff")

func parseDocument(text []byte) (document, error) {
	d := document{body: bytes.TrimPrefix(text, bom)}
	d.byteOrderMark = text[:len(text)-len(d.body)]
	if bracketDepth(d.body) > maxDepth {
		return d, fmt.Errorf("%w: more than %d brackets are open", ErrNotJSON, maxDepth)
	}
	// The parser wants a line comment to end with a newline, at the end of the text too.
	root, err := hujson.Parse(append(d.body[:len(d.body):len(d.body)], '\n'))
	if err != nil { // its text may quote the file
		return d, ErrNotJSON
	}
	d.root = root
	d.style = styleOf(d.body, root)
	return d, nil
}

// bracketDepth is how many brackets are open at most. Those in texts and comments count as well, which errs on the safe side only
// far beyond what people write.
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

func objectOf(v hujson.Value, path []string) (*hujson.Object, error) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%s: %w", pathText(path), ErrNotObject)
	}
	return o, nil
}

// findMember is the index of a member by its key, or -1.
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

// pathText is a path for a sentence.
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

func reversePath(path []string) []string {
	out := make([]string, len(path))
	for i, key := range path {
		out[len(path)-1-i] = key
	}
	return out
}

func nestValue(key string, value json.RawMessage) json.RawMessage {
	return append(append(append(append([]byte{'{'}, quoteKey(key)...), ':'), value...), '}')
}

// quoteKey is a key in quotes, without the escapes of HTML.
func quoteKey(key string) []byte { return []byte(hujson.String(key)) }
