package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// PutTOML sets the table at a path of keys to an object of texts, numbers, booleans and lists of them. The table comes to the end
// of the text with a header of its own; one that is there is removed first. Nothing else changes: the result is read and compared.
// Errors wrap [ErrNotTOML], [ErrNotObject] or [ErrLayout].
func PutTOML(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	t := splitText(text)
	before, err := decodeTOML(t.body)
	if err != nil {
		return nil, err
	}
	lines, err := memberLines(value, " = ")
	if err != nil {
		return nil, err
	}
	var header []string
	for _, key := range path {
		header = append(header, writtenKey(key))
	}
	table := "[" + strings.Join(header, ".") + "]" + t.newline + strings.Join(append(lines, ""), t.newline)
	want, err := decodeTOML([]byte(table))
	if err != nil {
		return nil, err
	}
	body := t.body
	if memberAt(before, path) != nil {
		if body, err = removeTOML(body, path); err != nil {
			return nil, err
		}
	}
	if body = t.endLine(body); len(body) > 0 {
		body = append(bytes.Clone(body), t.newline...)
	}
	body = append(bytes.Clone(body), table...)
	if err := proveEdit(decodeTOML, t.body, body, path, memberAt(want, path)); err != nil {
		return nil, err
	}
	return t.joinText(body), nil
}

// RemoveTOML deletes the table or value at a path of keys with all tables below it. It returns an error that wraps [ErrMissing]
// if there is none, and [ErrLayout] if it shares a line with something else.
func RemoveTOML(text []byte, path []string) ([]byte, error) {
	t := splitText(text)
	body, err := removeTOML(t.body, path)
	if err != nil {
		return nil, err
	}
	return t.joinText(body), nil
}

// expression is a header or a key of TOML with the keys that lead to it.
type expression struct {
	// start is the offset of the line on which it begins.
	start int
	// owned says that it stands at the path that is edited, or below.
	owned bool
}

// removeTOML does the work of RemoveTOML on a body. Each header and key reaches up to the next one, without the comments and
// empty lines before that.
func removeTOML(body []byte, path []string) ([]byte, error) {
	before, err := decodeTOML(body)
	if err != nil {
		return nil, err
	}
	if memberAt(before, path) == nil {
		return nil, fmt.Errorf("%s: %w", pathText(path), ErrMissing)
	}
	all := expressionsOf(body, path)
	var out []byte
	end := 0 // everything before it is in out, or removed
	for i, e := range all {
		if !e.owned || e.start < end {
			continue
		}
		to := len(body)
		if i+1 < len(all) {
			to = all[i+1].start
		}
		if i+1 == len(all) || !all[i+1].owned {
			to = withoutTrailingComments(body, e.start, to)
		}
		from := e.start
		// The empty line that sets a table apart goes with it.
		if i == 0 || !all[i-1].owned {
			from = withoutEmptyLine(body, from)
		}
		out = append(out, body[end:max(from, end)]...)
		end = to
	}
	out = append(out, body[end:]...)
	return out, proveEdit(decodeTOML, body, out, path, nil)
}

// expressionsOf returns the headers and keys of a text in their order, and marks those at a path or below it.
func expressionsOf(body []byte, path []string) (all []expression) {
	var parser unstable.Parser
	parser.Reset(body)
	var table []string
	for parser.NextExpression() {
		e := parser.Expression()
		var keys []string
		offset := -1
		for it := e.Key(); it.Next(); {
			keys = append(keys, string(it.Node().Data))
			if offset < 0 {
				offset = int(it.Node().Raw.Offset)
			}
		}
		if offset < 0 {
			continue
		}
		if e.Kind == unstable.Table || e.Kind == unstable.ArrayTable {
			table = keys
		} else {
			keys = slices.Concat(table, keys)
		}
		all = append(all, expression{start: bytes.LastIndexByte(body[:offset], '\n') + 1,
			owned: len(keys) >= len(path) && slices.Equal(keys[:len(path)], path)})
	}
	return all
}

// withoutTrailingComments returns the end of body[from:to] without the empty lines and comments at its end. Those in the first
// line belong to the expression itself.
func withoutTrailingComments(body []byte, from, to int) int {
	for {
		start := bytes.LastIndexByte(bytes.TrimSuffix(body[from:to], []byte("\n")), '\n') + 1 + from
		line := bytes.TrimSpace(body[start:to])
		if start == from || len(line) > 0 && line[0] != '#' {
			return to
		}
		to = start
	}
}

// withoutEmptyLine returns the start of the empty line before an offset; the offset itself if there is none.
func withoutEmptyLine(body []byte, offset int) int {
	if offset == 0 {
		return 0
	}
	start := bytes.LastIndexByte(body[:offset-1], '\n') + 1
	if len(bytes.TrimSpace(body[start:offset])) == 0 {
		return start
	}
	return offset
}

// decodeTOML reads a text as TOML.
func decodeTOML(body []byte) (map[string]any, error) {
	all := map[string]any{}
	if toml.Unmarshal(body, &all) != nil { // the library's error quotes the file, which may hold secrets
		return nil, ErrNotTOML
	}
	return all, nil
}
