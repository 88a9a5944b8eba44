package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// These errors belong to texts in TOML and YAML, whose edits are proved by reading the result, see proveEdit.
var (
	ErrNotTOML = errors.New("the text is not TOML")
	ErrNotYAML = errors.New("the text is not YAML")
	// ErrLayout is returned for a text that says in an unusual way what an edit would change: a table on one line, an anchor.
	ErrLayout = errors.New("it is written in a way that cannot be edited without guessing")
)

// textLines is a text of TOML or YAML with its layout.
type textLines struct {
	byteOrderMark, body []byte
	newline             string
}

// splitText takes the byte order mark from a text and finds its line ending, that of the first line.
func splitText(text []byte) textLines {
	t := textLines{body: bytes.TrimPrefix(text, bom), newline: "\n"}
	t.byteOrderMark = text[:len(text)-len(t.body)]
	if i := bytes.IndexByte(t.body, '\n'); i > 0 && t.body[i-1] == '\r' {
		t.newline = "\r\n"
	}
	return t
}

// joinText returns the text with its byte order mark and another body.
func (t textLines) joinText(body []byte) []byte {
	return append(bytes.Clone(t.byteOrderMark), body...)
}

// endLine returns a body whose last line has an end, so that lines can follow.
func (t textLines) endLine(body []byte) []byte {
	if len(body) > 0 && body[len(body)-1] != '\n' {
		body = append(bytes.Clone(body), t.newline...)
	}
	return body
}

// memberLines returns the members of an object, one line each, in their order: the name, between, and the value. A name must be
// plain, and a value a text, a number, a boolean, or a list of these, which JSON, TOML and YAML write alike.
func memberLines(object json.RawMessage, between string) (lines []string, err error) {
	if !rawjson.IsObject(object) || !json.Valid(object) {
		return nil, fmt.Errorf("the new value: %w", ErrNotObject)
	}
	for o := rawjson.ObjectAt(object, rawjson.SkipSpace(object, 0), 0); o.Next(); {
		value := bytes.TrimSpace(o.Skip())
		if rawjson.IsObject(value) && plainKey(string(o.Name)) && !bytes.Contains(value[1:], []byte("{")) {
			inner, err := memberLines(value, between)
			if err != nil {
				return nil, err
			}
			lines = append(lines, string(o.Name)+between+"{"+strings.Join(inner, ", ")+"}")
			continue
		}
		// TOML and YAML refuse this character inside of a text, and JSON allows it.
		if !plainKey(string(o.Name)) || bytes.ContainsAny(value, "{\x7f") || bytes.Equal(value, []byte("null")) {
			return nil, fmt.Errorf("the new value: %q: %w", o.Name, ErrLayout)
		}
		lines = append(lines, string(o.Name)+between+addSpaces(value))
	}
	return lines, nil
}

// plainKey reports whether a key needs no quotes in TOML and YAML, and cannot be taken for a value of another kind.
func plainKey(key string) bool {
	for i, c := range key {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	switch strings.ToLower(key) {
	case "", "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return false
	}
	return true
}

// writtenKey returns a key as TOML and YAML write it.
func writtenKey(key string) string {
	if plainKey(key) {
		return key
	}
	return string(quoteKey(key))
}

// decoder reads a whole text into maps, lists and values.
type decoder func(body []byte) (map[string]any, error)

// proveEdit reads both texts and returns an error unless they differ in the member at path alone, whose new value is want; nil
// means that it is gone. It finds every mistake of an edit by lines: a line that was no key, a table that is continued elsewhere.
func proveEdit(decode decoder, before, after []byte, path []string, want any) error {
	old, err := decode(before)
	if err != nil {
		return err
	}
	now, err := decode(after)
	if err != nil {
		return fmt.Errorf("%s: %w", pathText(path), ErrLayout)
	}
	setMember(old, path, want)
	setMember(now, path, memberAt(now, path)) // a parent that is empty and one that is missing are one
	if want == nil && memberAt(now, path) != nil || !reflect.DeepEqual(old, now) {
		return fmt.Errorf("%s: %w", pathText(path), ErrLayout)
	}
	return nil
}

// memberAt returns the value at a path of keys; nil if there is none.
func memberAt(in map[string]any, path []string) any {
	for i, key := range path {
		v, ok := in[key]
		if !ok {
			return nil
		}
		if i == len(path)-1 {
			return v
		}
		if in, ok = v.(map[string]any); !ok {
			return nil
		}
	}
	return nil
}

// setMember sets the value at a path of keys, and removes it with nil, together with parents that are empty then.
func setMember(in map[string]any, path []string, value any) {
	key := path[0]
	if len(path) == 1 {
		if in[key] = value; value == nil {
			delete(in, key)
		}
		return
	}
	below, ok := in[key].(map[string]any)
	if !ok && (in[key] != nil || value == nil) {
		if in[key] == nil {
			delete(in, key)
		}
		return // the value is no table, which the caller's comparison finds
	}
	if !ok {
		below = map[string]any{}
	}
	setMember(below, path[1:], value)
	if in[key] = below; len(below) == 0 {
		delete(in, key)
	}
}
