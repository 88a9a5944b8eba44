package messages

import (
	"strconv"
	"strings"
	"unicode"
)

// quoteName writes a server's or tool's name so that no control or bidi character of it reaches a terminal, and at most 200 characters of
// it a log: a caller may give any name.
func quoteName(s string) string {
	if len(s) > 200 {
		s = Line(s, 200)
	}
	return strconv.Quote(Printable(s))
}

// Printable neutralises text that came from a server before it is shown to a person or written to a log: escape
// sequences, control characters other than tab and newline, bidirectional overrides, zero-width and other characters
// that take no room (tags, fillers, variation selectors except the emoji's U+FE0F) each become U+FFFD. Invalid UTF-8
// becomes U+FFFD too. A carriage return in front of a newline is dropped, so that text of Windows programs reads as
// usual. Text without any of these is returned as it is.
func Printable(s string) string {
	if strings.IndexFunc(s, unsafeRune) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unsafeRune(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// Line neutralises a text as Printable does and puts it on one line: newlines and tabs become spaces, and a text of
// more than limit runes is cut and ends with "…". A limit of 0 cuts nothing.
func Line(s string, limit int) string {
	if isPlainLine(s, limit) {
		return s
	}
	s = strings.Join(strings.Fields(Printable(s)), " ")
	if r := []rune(s); limit > 0 && len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// isPlainLine reports whether Line leaves a text as it is: it is short, of ASCII, and its white space is single spaces in between.
func isPlainLine(s string, limit int) bool {
	if limit > 0 && len(s) > limit {
		return false
	}
	space := true
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c > '~' || c == ' ' && space {
			return false
		}
		space = c == ' '
	}
	return !space || s == ""
}

// unsafeRune reports whether a character could act on a terminal or deceive the reader. Line feed and tab are left, because
// texts of several lines need them; Line replaces them as well.
func unsafeRune(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == unicode.ReplacementChar:
		return true
	case r >= 0x20 && r < 0x7f:
		return false
	case r < 0xa0: // C0, DEL, C1
		return true
	case unicode.Is(unicode.Cf, r) && !visibleFormat(r): // soft hyphen, zero width, bidi, annotations, tags
		return true
	case r == 0x2028 || r == 0x2029: // line and paragraph separator
		return true
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r): // Hangul fillers, grapheme joiner, tags
		return true
	case unicode.Is(unicode.Variation_Selector, r) && r != 0xfe0f:
		return true
	}
	return false
}

// visibleFormat reports whether a format character is drawn: the number signs of Arabic, Syriac and Kaithi are.
func visibleFormat(r rune) bool { return unicode.Is(unicode.Prepended_Concatenation_Mark, r) }
