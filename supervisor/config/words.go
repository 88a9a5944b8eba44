package config

import (
	"errors"
	"strings"
	"unicode"
)

// splitWords splits a command line as a shell would, without its substitutions: words end at spaces, 'single' and
// "double" quotes hold words together, and a backslash takes the meaning from a following space, quote or backslash.
// Before anything else, and inside single quotes, a backslash stands for itself, so that C:\tools\server.exe needs no
// quotes on any system.
//
// The libraries for this read a # as the start of a comment or every backslash as an escape, both of which break
// arguments that people type here.
func splitWords(s string) ([]string, error) {
	var out []string
	var b strings.Builder
	// quote is the open quote, or 0.
	var quote rune
	// started tells an empty word in quotes from no word.
	started := false
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		c := rs[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(rs) && isEscapable(rs[i+1], quote):
			i++
			b.WriteRune(rs[i])
			started = true
		// The word goes on after the quote: a"b c"d is one word.
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(c)
		case c == '"' || c == '\'':
			quote, started = c, true
		case unicode.IsSpace(c):
			if started {
				out = append(out, b.String())
				b.Reset()
				started = false
			}
		default:
			b.WriteRune(c)
			started = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if started {
		out = append(out, b.String())
	}
	return out, nil
}

// isEscapable reports whether a backslash before c is an escape, outside of quotes (0) or inside the given one.
func isEscapable(c, quote rune) bool {
	return c == '"' || c == '\\' || quote == 0 && (c == '\'' || unicode.IsSpace(c))
}
