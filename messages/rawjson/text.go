package rawjson

import (
	"bytes"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// IsObject looks at the first byte of a value that a walk has returned, as IsArray and IsText do.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// IsArray reports whether a value is an array.
func IsArray(value []byte) bool { return len(value) > 0 && value[0] == '[' }

// IsText reports whether a value is a text.
func IsText(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// IsNull reports whether a value is absent or null.
func IsNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// Text is the text of a JSON string that a walk has returned; not ok for any other value. What is no UTF-8 and lone
// surrogates become U+FFFD, as in encoding/json.
func Text(value []byte) (string, bool) {
	if !IsText(value) {
		return "", false
	}
	inside := value[1 : len(value)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside), true
	}
	return unescape(inside)
}

// unescape is the text of a string that is written with escapes, or is not valid UTF-8: what encoding/json makes of it, with
// one allocation, and what stands between two escapes copied at once. FuzzText holds it to that. not ok if inside is not what
// a walk has returned.
func unescape(inside []byte) (string, bool) {
	var b strings.Builder
	b.Grow(len(inside))
	for i := 0; i < len(inside); {
		if inside[i] != '\\' {
			end := bytes.IndexByte(inside[i:], '\\')
			if end < 0 {
				end = len(inside) - i
			}
			writeValid(&b, inside[i:i+end])
			i += end
			continue
		}
		end := skipEscape(inside, i)
		if end < 0 {
			return "", false
		}
		if inside[i+1] != 'u' {
			b.WriteByte(escaped[inside[i+1]])
			i = end
			continue
		}
		r := hex4(inside[i+2:])
		i = end
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if i+1 < len(inside) && inside[i] == '\\' && inside[i+1] == 'u' && skipEscape(inside, i) > 0 {
				low = hex4(inside[i+2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		b.WriteRune(r)
	}
	if text := b.String(); len(text) >= len(inside)/2 {
		return text, true
	}
	return strings.Clone(b.String()), true // it was mostly escapes: what was reserved for them is let go
}

// writeValid writes text with U+FFFD for each byte of it that is no UTF-8.
func writeValid(b *strings.Builder, text []byte) {
	if utf8.Valid(text) {
		b.Write(text)
		return
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		b.WriteRune(r)
		i += size
	}
}

var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 is the number of the four digits at the beginning of b, which skipEscape has seen.
func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		if isDigit(c) {
			r = r<<4 | rune(c-'0')
		} else {
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}

// Truth is what true and false say, nil for everything else.
func Truth(value []byte) *bool {
	switch string(value) {
	case "true":
		t := true
		return &t
	case "false":
		return new(bool)
	}
	return nil
}

// AppendText appends a text in quotes. Quotes, backslashes and control characters are escaped as RFC 8785 writes them, and
// so are the two characters that some take for the end of a line (U+2028, U+2029). What is no UTF-8 becomes U+FFFD.
func AppendText[T string | []byte](to []byte, s T) []byte {
	to = append(to, '"')
	done := 0
	for i := skipPlain(s, 0); i < len(s); i = skipPlain(s, done) {
		b := s[i]
		r, n := rune(b), 1
		if b >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		}
		to = append(to, s[done:i]...)
		switch r {
		case '\u2028':
			to = append(to, `\u2028`...)
		case '\u2029':
			to = append(to, `\u2029`...)
		default:
			to = AppendRune(to, r)
		}
		done = i + n
	}
	return append(append(to, s[done:]...), '"')
}

// skipPlain is the index from i on of the first byte that is not written as it is: it needs an escape, or is part of a
// character beyond ASCII. It looks at eight bytes at once, as SkipText does.
func skipPlain[T string | []byte](s T, i int) int {
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if mask := interrupting(w) | w&highBits; mask != 0 {
			return i + bits.TrailingZeros64(mask)/8
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' && s[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// AppendRune appends one character of a text, with an escape only if JSON needs one, in the form of RFC 8785, section
// 3.2.2.2.
func AppendRune(to []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(to, '\\', byte(r))
	case '\b':
		return append(to, '\\', 'b')
	case '\f':
		return append(to, '\\', 'f')
	case '\n':
		return append(to, '\\', 'n')
	case '\r':
		return append(to, '\\', 'r')
	case '\t':
		return append(to, '\\', 't')
	}
	if r < ' ' {
		const digits = "0123456789abcdef"
		return append(to, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
	}
	return utf8.AppendRune(to, r)
}
