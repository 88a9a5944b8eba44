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

// Line is one line of an entry as the approval screen shows it.
type Line struct {
	// Text is the indented line. Characters that are invisible, act on a terminal or look like other letters are escaped.
	Text string
	// Marked means that a Remark is about the value on this line.
	Marked bool
}

// ShowEntry returns the whole entry as lines of valid JSON, one line for each value, keys sorted. marked holds the paths to
// mark, in the form of Remark.Keys. mask may be nil; otherwise it returns the text that stands in the place of the value at a
// path, which hides secrets that the person typed.
func ShowEntry(entry json.RawMessage, marked map[string]bool, mask func(path, text string) (string, bool)) []Line {
	var v any
	if rawjson.Unmarshal(entry, &v) != nil {
		return []Line{{Text: "it cannot be read", Marked: true}}
	}
	s := entryPrinter{marked: marked, mask: mask}
	s.printValue("", "", v, "")
	return s.lines
}

// entryPrinter collects the lines of one entry.
type entryPrinter struct {
	lines  []Line
	marked map[string]bool
	mask   func(path, text string) (string, bool)
}

// printValue adds the lines of a value. The first line begins with head, whose leading spaces are the indentation of the last
// line, which ends with tail.
func (s *entryPrinter) printValue(path, head string, v any, tail string) {
	indent := head[:len(head)-len(strings.TrimLeft(head, " "))]
	switch v := v.(type) {
	case map[string]any:
		// An empty object stands on one line, with its path, so that it can be marked.
		if len(v) == 0 {
			s.addLine(path, head+"{}"+tail)
			return
		}
		s.addLine("", head+"{")
		// The order of the file is lost in a map; sorted keys make two readings comparable.
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
		// The mask decides by the unescaped value, which the person typed.
		if s.mask != nil {
			if masked, ok := s.mask(path, v); ok {
				text = masked
			}
		}
		s.addLine(path, head+text+tail)
	default:
		// Null, a truth value or a number remain.
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte("?")
		}
		s.addLine(path, head+string(text)+tail)
	}
}

// addLine adds a line and marks it by its path. Brackets have no path and are never marked.
func (s *entryPrinter) addLine(path, text string) {
	s.lines = append(s.lines, Line{text, path != "" && s.marked[path]})
}

// joinPath appends a key to a path, with a dot unless the path is empty.
func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// commaAfter returns the comma after element i of n, which the last element does not have.
func commaAfter(i, n int) string {
	if i == n-1 {
		return ""
	}
	return ","
}

// quoteVisible returns s in quotes, escaped by [Visible].
func quoteVisible(s string) string { return `"` + Visible(s) + `"` }

// Visible returns a text that a stranger wrote in a form that is safe on one line of a terminal: escaped as in JSON, with \u
// for characters that are invisible or act on a terminal, and for letters that make a word look like another word. The result
// in quotes is a JSON string of the same value.
func Visible(s string) string {
	// A letter is suspicious only by the word around it, so that the whole text is examined first.
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
		// JSON has escapes for UTF-16 units only, so that a character beyond them takes two.
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
