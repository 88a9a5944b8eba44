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
	s := entryPrinter{marked: marked, mask: mask}
	s.printValue("", "", v, "")
	return s.lines
}

type entryPrinter struct {
	lines  []Line
	marked map[string]bool
	mask   func(path, text string) (string, bool)
}

// printValue adds the lines of a value: after head, and before tail.
func (s *entryPrinter) printValue(path, head string, v any, tail string) {
	indent := head[:len(head)-len(strings.TrimLeft(head, " "))]
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			s.addLine(path, head+"{}"+tail)
			return
		}
		s.addLine("", head+"{")
		keys := slices.Sorted(maps.Keys(v))
		for i, key := range keys {
			s.printValue(joinPath(path, key), indent+"  "+quoteVisible(key)+": ", v[key], commaAfter(i, len(keys)))
		}
		s.addLine("", indent+"}"+tail)
	case []any:
		if len(v) == 0 {
			s.addLine(path, head+"[]"+tail)
			return
		}
		s.addLine("", head+"[")
		for i, el := range v {
			s.printValue(fmt.Sprintf("%s[%d]", path, i), indent+"  ", el, commaAfter(i, len(v)))
		}
		s.addLine("", indent+"]"+tail)
	case string:
		text := quoteVisible(v)
		if s.mask != nil {
			if masked, ok := s.mask(path, v); ok {
				text = masked
			}
		}
		s.addLine(path, head+text+tail)
	default:
		text, err := json.Marshal(v) // null, a truth value or a number
		if err != nil {
			text = []byte("?")
		}
		s.addLine(path, head+string(text)+tail)
	}
}

func (s *entryPrinter) addLine(path, text string) {
	s.lines = append(s.lines, Line{text, path != "" && s.marked[path]})
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func commaAfter(i, n int) string {
	if i == n-1 {
		return ""
	}
	return ","
}

// quoteVisible is a text in quotes, as JSON writes it, with \u in the place of what nobody sees, what acts on a terminal, and letters that
// look like others.
func quoteVisible(s string) string { return `"` + Visible(s) + `"` }

// Visible is a text of a stranger on one line: escaped as in a text of JSON, with \u in the place of what nobody sees, what acts on a
// terminal, and letters of words that look like other words.
func Visible(s string) string {
	odd := disguisedOffsets(s)
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
