package foreign

import (
	"bytes"
	"regexp"
	"sync"
)

// holdsNothing reports whether a text of a syntax has no value, or an empty one that stands for none: white space, comments, null. Programs
// read such a file as one without settings. TOML has no such case of its own: there it is a table without a key.
func holdsNothing(data []byte, s string) bool {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch syntax(s) {
	case inJSON:
		rest, null := bytes.CutPrefix(skipComments(data), []byte("null"))
		return len(rest) == 0 || null && len(skipComments(rest)) == 0
	case inYAML:
		for line := range bytes.Lines(data) {
			if !emptyYAML().Match(bytes.TrimRight(line, " \t\r\n")) {
				return false
			}
		}
		return true
	case inTOML:
	}
	return false
}

// emptyYAML matches a line that adds nothing to a document, without the white space at its end.
var emptyYAML = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(---|[ \t]*)?[ \t]*(\{[ ]*\}|null|~|\.\.\.)?[ \t]*(#.*)?$`)
})

// skipComments cuts the white space and the comments at the beginning of a text of JSON.
func skipComments(data []byte) []byte {
	for {
		data = bytes.TrimLeft(data, " \t\r\n")
		end := -1
		switch {
		case bytes.HasPrefix(data, []byte("//")):
			if end = bytes.IndexByte(data, '\n'); end < 0 {
				end = len(data)
			}
		case bytes.HasPrefix(data, []byte("/*")):
			if end = bytes.Index(data[2:], []byte("*/")); end >= 0 {
				end += len("/**/")
			}
		}
		if end < 0 {
			return data
		}
		data = data[end:]
	}
}
