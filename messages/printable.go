package messages

import (
	"strconv"
	"strings"
	"unicode"
)

// quote writes a server's or tool's name so that no control or bidi character of it reaches a terminal.
func quote(s string) string { return strconv.Quote(Printable(s)) }

// Printable neutralises text that came from a server before it is shown to a person or written to a log: escape
// sequences, control characters other than tab and newline, bidirectional overrides, zero-width and Unicode-tag
// characters each become U+FFFD. Invalid UTF-8 becomes U+FFFD too. Text without any of these is returned as it is.
func Printable(s string) string {
	if strings.IndexFunc(s, unsafeRune) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unsafeRune(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Line is Printable on one line: newlines and tabs become spaces, and what is longer than limit runes ends with "…".
func Line(s string, limit int) string {
	s = strings.Join(strings.Fields(Printable(s)), " ")
	if r := []rune(s); limit > 0 && len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

func unsafeRune(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == unicode.ReplacementChar:
		return true
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r == 0x00ad, r == 0x061c, r == 0x180e, r == 0xfeff: // soft hyphen, Arabic letter mark, Mongolian separator, BOM
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f: // zero width, bidi
		return true
	case r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff: // interlinear annotation, tags
		return true
	}
	return false
}
