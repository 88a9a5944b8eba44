package audit

import (
	"unicode/utf16"
	"unicode/utf8"
)

// textEnd returns the end of the text whose quote is at a place. escaped says that it is not in canonical form: it has an
// escape, or bytes that are no UTF-8.
func textEnd(src []byte, at int) (end int, escaped, ok bool) {
	// A text of ASCII needs no check for valid UTF-8.
	ascii := true
	for i := at + 1; i < len(src); i++ {
		switch b := src[i]; {
		case b == '"':
			return i + 1, escaped || !ascii && !utf8.Valid(src[at:i]), true
		// An escaped character may equal a plain one, so the text needs decoding before it is hashed.
		case b == '\\':
			escaped = true
			if i++; i >= len(src) {
				return i, escaped, false
			}
			// The escapes of JSON, and no others.
			switch src[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(src[i+1:]); !ok {
					return i, escaped, false
				}
				i += 4
			default:
				return i, escaped, false
			}
		// JSON forbids control characters in texts.
		case b < ' ':
			return i, escaped, false
		case b >= utf8.RuneSelf:
			ascii = false
		}
	}
	return len(src), escaped, false
}

// numberEnd returns the end of the number that begins at a place, by the grammar of JSON.
func numberEnd(src []byte, at int) (end int, ok bool) {
	// digits consumes a run of digits and reports whether there was one; next consumes one given byte.
	digits := func() bool {
		begin := at
		for at < len(src) && '0' <= src[at] && src[at] <= '9' {
			at++
		}
		return at > begin
	}
	next := func(b byte) bool {
		if at < len(src) && src[at] == b {
			at++
			return true
		}
		return false
	}
	next('-')
	if !next('0') && !digits() {
		return at, false
	}
	if next('.') && !digits() {
		return at, false
	}
	// The exponent may have a sign of its own.
	if next('e') || next('E') {
		if !next('+') {
			next('-')
		}
		return at, digits()
	}
	return at, true
}

// decodeChar decodes the first character inside a text, as encoding/json does: an invalid one becomes U+FFFD.
func decodeChar(raw []byte) (r rune, size int) {
	if raw[0] != '\\' {
		return utf8.DecodeRune(raw)
	}
	switch raw[1] {
	case 'u':
		r, _ = hex4(raw[2:])
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			// Two surrogates in a row are one character; a lone one is invalid.
			low, _ := hex4(raw[8:])
			if r := utf16.DecodeRune(r, low); r != utf8.RuneError {
				return r, 12
			}
		}
		return utf8.RuneError, 6
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	return rune(raw[1]), 2
}

// hex4 reads the four digits of a \u escape.
func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, b := range s[:4] {
		switch {
		case '0' <= b && b <= '9':
			b -= '0'
		case 'a' <= b && b <= 'f':
			b -= 'a' - 10
		case 'A' <= b && b <= 'F':
			b -= 'A' - 10
		default:
			return 0, false
		}
		// Four digits of four bits each.
		r = r<<4 | rune(b)
	}
	return r, true
}
