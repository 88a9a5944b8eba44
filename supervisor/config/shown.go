package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Line is one line of an entry as it is shown.
type Line struct {
	// Text is the line, indented, with everything escaped that a person would not see or would take for something else.
	Text string
	// Marked says that something in it deserves a look.
	Marked bool
}

// ShowEntry is an entry in lines: valid JSON, whole, with a line for each value. mask, if not nil, gives what stands in the place of a
// text by its path of keys, and is for what the person typed; paths are those of Remark.Keys.
func ShowEntry(entry json.RawMessage, marked map[string]bool, mask func(path, text string) (string, bool)) []Line {
	var v any
	if rawjson.Unmarshal(entry, &v) != nil {
		return []Line{{Text: "it cannot be read", Marked: true}}
	}
	s := shower{marked: marked, mask: mask}
	s.value("", "", v, "")
	return s.lines
}

type shower struct {
	lines  []Line
	marked map[string]bool
	mask   func(path, text string) (string, bool)
}

// value adds the lines of a value: after head, and before tail.
func (s *shower) value(path, head string, v any, tail string) {
	indent := head[:len(head)-len(strings.TrimLeft(head, " "))]
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			s.add(path, head+"{}"+tail)
			return
		}
		s.add("", head+"{")
		keys := slices.Sorted(maps.Keys(v))
		for i, key := range keys {
			s.value(join(path, key), indent+"  "+visible(key)+": ", v[key], comma(i, len(keys)))
		}
		s.add("", indent+"}"+tail)
	case []any:
		if len(v) == 0 {
			s.add(path, head+"[]"+tail)
			return
		}
		s.add("", head+"[")
		for i, el := range v {
			s.value(fmt.Sprintf("%s[%d]", path, i), indent+"  ", el, comma(i, len(v)))
		}
		s.add("", indent+"]"+tail)
	case string:
		text := visible(v)
		if s.mask != nil {
			if masked, ok := s.mask(path, v); ok {
				text = masked
			}
		}
		s.add(path, head+text+tail)
	default:
		text, err := json.Marshal(v) // null, a truth value or a number
		if err != nil {
			text = []byte("?")
		}
		s.add(path, head+string(text)+tail)
	}
}

func (s *shower) add(path, text string) {
	s.lines = append(s.lines, Line{text, path != "" && s.marked[path]})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func comma(i, n int) string {
	if i == n-1 {
		return ""
	}
	return ","
}

// visible is a text in quotes, as JSON writes it, with \u in the place of what nobody sees, what acts on a terminal, and letters that
// look like others.
func visible(s string) string { return `"` + Visible(s) + `"` }

// Visible is a text of a stranger on one line: escaped as in a text of JSON, with \u in the place of what nobody sees, what acts on a
// terminal, and letters of words that look like other words.
func Visible(s string) string {
	odd := disguised(s)
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case !odd[i] && messages.Printable(string(r)) == string(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
