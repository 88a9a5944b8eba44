package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

// PutYAML sets the entry under a key of a section, which is a key at the beginning of a line, to an object of texts, numbers,
// booleans and lists of them. The entry comes behind those that are there, with their indentation; one of the same key is removed
// first, and a section that is missing comes to the end of the text. Nothing else changes: the result is read and compared. Errors
// wrap [ErrNotYAML], [ErrNotObject] or [ErrLayout].
//
// The text must be bounded, because aliases can stand for far more than their letters: package foreign has read it before.
func PutYAML(text []byte, section, key string, value json.RawMessage) ([]byte, error) {
	t, path := splitText(text), []string{section, key}
	before, err := decodeYAML(t.body)
	if err != nil {
		return nil, err
	}
	members, err := memberLines(value, ": ")
	if err != nil {
		return nil, err
	}
	want, err := decodeYAML([]byte(strings.Join(members, "\n")))
	if err != nil {
		return nil, err
	}
	body := t.body
	if memberAt(before, path) != nil {
		if body, err = removeYAML(body, section, key); err != nil {
			return nil, err
		}
	}
	if len(before) == 0 {
		body = withoutNothing(body)
	}
	body = t.endLine(body)
	s, found := findSection(body, section)
	if !found {
		body = append(bytes.Clone(body), section+":"+t.newline...)
		s, _ = findSection(body, section)
	}
	entry := s.indent + writtenKey(key) + ":" + t.newline
	for _, line := range members {
		entry += s.indent + s.indent + line + t.newline
	}
	out := append(bytes.Clone(body[:s.colon]), body[s.rest:s.end]...)
	out = append(append(out, entry...), body[s.end:]...)
	if err := proveEdit(decodeYAML, t.body, out, path, any(want)); err != nil {
		return nil, err
	}
	return t.joinText(out), nil
}

// nothing matches a line that says that a document is empty.
var nothing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:(---)[ ]+|[ ]*)(?:\{[ ]*\}|null|~)([ ]*(?:[ ]#.*)?\r?)$`)
})

// withoutNothing takes the empty value out of a text that has no other, so that a section can follow: null, or {}.
func withoutNothing(body []byte) []byte {
	m := nothing().FindSubmatchIndex(body)
	if m == nil {
		return body
	}
	kept := append(bytes.Clone(body[:m[0]]), body[m[0]:max(m[3], m[0])]...)
	return append(kept, body[m[4]:]...)
}

// RemoveYAML deletes the entry under a key of a section. A section that is empty then is written as {}. It returns an error that
// wraps [ErrMissing] if there is no such entry. What PutYAML says of the bound holds here, too.
func RemoveYAML(text []byte, section, key string) ([]byte, error) {
	t := splitText(text)
	body, err := removeYAML(t.body, section, key)
	if err != nil {
		return nil, err
	}
	return t.joinText(body), nil
}

// removeYAML does the work of RemoveYAML on a body.
func removeYAML(body []byte, section, key string) ([]byte, error) {
	path := []string{section, key}
	before, err := decodeYAML(body)
	if err != nil {
		return nil, err
	}
	if memberAt(before, path) == nil {
		return nil, fmt.Errorf("%s: %w", pathText(path), ErrMissing)
	}
	s, found := findSection(body, section)
	from, to := s.findEntry(body, key)
	if !found || from == to {
		return nil, fmt.Errorf("%s: %w", pathText(path), ErrLayout)
	}
	out := bytes.Clone(body[:from])
	// Without a child the section would be null, which its program may refuse.
	if section, _ := before[section].(map[string]any); len(section) == 1 {
		out = append(append(bytes.Clone(body[:s.colon]), " {}"...), body[s.rest:from]...)
	}
	out = append(out, body[to:]...)
	return out, proveEdit(decodeYAML, body, out, path, nil)
}

// sectionLines is a section of a text by its offsets.
type sectionLines struct {
	// colon is behind the section's colon, rest behind the empty value that may follow it, start and end those of the lines that
	// belong to the section.
	colon, rest, start, end int
	// indent is what stands before its entries.
	indent string
}

// sectionRest matches what may follow the colon of a section whose entries stand in the lines below: nothing, or an empty value.
var sectionRest = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([ ]*(?:\{[ ]*\}|null|~)?)[ ]*(?:[ ]#[^\n]*)?\r?(?:\n|$)`)
})

// findSection finds the first line that begins with a key and a colon, and the lines that belong to it: those with an indentation,
// and empty ones and comments between them.
func findSection(body []byte, section string) (s sectionLines, found bool) {
	for offset := 0; offset < len(body); offset = lineEnd(body, offset) {
		after, ok := bytes.CutPrefix(body[offset:], []byte(section+":"))
		if !ok {
			continue
		}
		m := sectionRest().FindSubmatchIndex(after)
		if m == nil {
			return s, false
		}
		s.colon = offset + len(section) + 1
		s.rest, s.start = s.colon+m[3], s.colon+m[1]
		s.end = s.start
		for at := s.start; at < len(body); at = lineEnd(body, at) {
			indent, content := lineParts(body, at)
			switch {
			case len(content) == 0, indent == "" && content[0] == '#':
				continue // it belongs to the section if an entry follows
			case indent == "":
				at = len(body)
				continue
			case s.indent == "" && content[0] != '#':
				s.indent = indent
			}
			s.end = lineEnd(body, at)
		}
		if s.indent == "" {
			s.indent = "  "
		}
		return s, true
	}
	return s, false
}

// findEntry returns the lines of the entry under a key: up to the next line that is indented no deeper, without the empty lines and
// comments before that. Both offsets are equal if there is none.
func (s sectionLines) findEntry(body []byte, key string) (from, to int) {
	for at := s.start; at < s.end; at = lineEnd(body, at) {
		indent, content := lineParts(body, at)
		if from == to {
			for _, written := range []string{key, `"` + key + `"`, "'" + key + "'"} {
				if rest, ok := bytes.CutPrefix(content, []byte(written+":")); ok && indent == s.indent && (len(rest) == 0 || rest[0] == ' ') {
					from, to = at, lineEnd(body, at)
				}
			}
			continue
		}
		if len(content) > 0 && len(indent) <= len(s.indent) {
			if content[0] != '#' {
				break
			}
			continue
		}
		if len(content) > 0 {
			to = lineEnd(body, at)
		}
	}
	return from, to
}

// lineEnd returns the offset behind the line that begins at an offset.
func lineEnd(body []byte, offset int) int {
	if i := bytes.IndexByte(body[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(body)
}

// lineParts returns the spaces at the start of a line and what follows them, without white space at the end.
func lineParts(body []byte, offset int) (indent string, content []byte) {
	line := bytes.TrimRight(body[offset:lineEnd(body, offset)], " \t\r\n")
	content = bytes.TrimLeft(line, " ")
	return string(line[:len(line)-len(content)]), content
}

// decodeYAML reads a text as YAML. The parser is young, and a panic on a strange text must not end the program.
func decodeYAML(body []byte) (all map[string]any, err error) {
	defer func() {
		if recover() != nil {
			all, err = nil, ErrNotYAML
		}
	}()
	var v any
	if yaml.Unmarshal(body, &v) != nil { // the library's error quotes the file, which may hold secrets
		return nil, ErrNotYAML
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	}
	return nil, ErrNotObject
}
