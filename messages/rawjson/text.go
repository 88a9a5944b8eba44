package rawjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// IsObject reports whether a value that a walk has returned is an object. It reads the first byte only, as IsArray and
// IsText do.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// IsArray reports whether a value is an array.
func IsArray(value []byte) bool { return len(value) > 0 && value[0] == '[' }

// IsText reports whether a value is a text.
func IsText(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// IsNull reports whether a value is absent or null.
func IsNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// Text returns the text of a JSON string that a walk has returned; ok is false for any other value. Bytes that are no
// UTF-8 and lone surrogates become U+FFFD, as in encoding/json.
func Text(value []byte) (string, bool) {
	if !IsText(value) {
		return "", false
	}
	inside := value[1 : len(value)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside), true
	}
	return unescapeText(inside)
}

// unescapeText returns the text of a string that is written with escapes, or is not valid UTF-8, exactly as
// encoding/json decodes it (FuzzText compares both), with one allocation in nearly every case. ok is false if inside is
// no part of a string that a walk has returned.
//
// Eight bytes at once are copied into a buffer on the stack, and the number of them that count is decided afterwards:
// many texts have an escape every dozen bytes, too often for a search and a copy between each two.
func unescapeText(inside []byte) (string, bool) {
	var b strings.Builder
	b.Grow(len(inside))
	if !utf8.Valid(inside) {
		// The escapes stay, because they are ASCII.
		writeValid(&b, inside)
		inside = []byte(b.String())
		b.Reset()
		b.Grow(len(inside))
	}
	var piece [512]byte
	n := 0
	for i := 0; i < len(inside); {
		// The copy below writes eight bytes, whether all of them count or not.
		if n > len(piece)-8 {
			b.Write(piece[:n])
			n = 0
		}
		if i+8 <= len(inside) {
			w := binary.LittleEndian.Uint64(inside[i:])
			binary.LittleEndian.PutUint64(piece[n:], w)
			plain := bits.TrailingZeros64(backslashMask(w)) / 8
			if i, n = i+plain, n+plain; plain == 8 {
				continue
			}
		} else if inside[i] != '\\' {
			piece[n] = inside[i]
			i, n = i+1, n+1
			continue
		}
		end := skipEscape(inside, i)
		if end < 0 {
			return "", false
		}
		if inside[i+1] != 'u' {
			piece[n] = escaped[inside[i+1]]
			i, n = end, n+1
			continue
		}
		r := hex4(inside[i+2:])
		i = end
		// A character beyond U+FFFF is written as two escapes. A lone half becomes U+FFFD.
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if i+1 < len(inside) && inside[i] == '\\' && inside[i+1] == 'u' && skipEscape(inside, i) > 0 {
				low = hex4(inside[i+2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		if n > len(piece)-utf8.UTFMax {
			b.Write(piece[:n])
			n = 0
		}
		n += utf8.EncodeRune(piece[n:], r)
	}
	b.Write(piece[:n])
	if text := b.String(); len(text) >= len(inside)/2 {
		return text, true
	}
	// The text consisted mostly of escapes. The copy releases the memory that was reserved for them.
	return strings.Clone(b.String()), true
}

// backslashMask has a bit set in the first byte of w that is a backslash. Bits after the first may be wrong.
func backslashMask(w uint64) uint64 {
	w ^= '\\' * everyByte
	return (w - everyByte) &^ w & highBits
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

// escaped maps the letter of a short escape to its character.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 returns the number of the four digits at the beginning of b, which skipEscape has checked.
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

// Truth returns a pointer to the value of true or false, nil for every other value.
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

// AppendText appends a text in quotes. Quotes, backslashes and control characters are escaped as RFC 8785 writes them,
// and so are U+2028 and U+2029, which some programs take for the end of a line. Bytes that are no UTF-8 become U+FFFD.
func AppendText[T string | []byte](to []byte, s T) []byte { return appendText(to, string(s)) }

// appendText copies whole stretches that need no escape; done is the index up to which s has been written.
func appendText(to []byte, s string) []byte {
	to = append(to, '"')
	done := 0
	for i := skipPlain(s, 0); i < len(s); i = skipPlain(s, i) {
		r, n := utf8.DecodeRuneInString(s[i:])
		// skipPlain stops at every character beyond ASCII, and most of them need no escape.
		if r > utf8.RuneSelf && r != utf8.RuneError && r != '\u2028' && r != '\u2029' {
			// The character needs no escape, and is copied with the stretch around it.
			i += n
			continue
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
		i += n
		done = i
	}
	return append(append(to, s[done:]...), '"')
}

// skipPlain returns the index from i on of the first byte that is not copied as it is: it needs an escape, or is part
// of a character beyond ASCII. It examines eight bytes at once, and four times as many after eight plain ones.
func skipPlain(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if mask := escapeMask(s[i:]); mask != 0 {
			return i + bits.TrailingZeros64(mask)/8
		}
		for i+40 <= len(s) && escapeMask(s[i+8:])|escapeMask(s[i+16:])|escapeMask(s[i+24:])|escapeMask(s[i+32:]) == 0 {
			i += 32
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' && s[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// escapeMask has a bit set in the first of the first eight bytes that is not copied as it is. Bits after that may be
// wrong.
func escapeMask(s string) uint64 {
	// The compiler does not copy the bytes for this conversion.
	w := binary.LittleEndian.Uint64([]byte(s[:8]))
	quote, slash := w^('"'*everyByte), w^('\\'*everyByte)
	return (w | (w - 0x20*everyByte) | (quote - everyByte) | (slash - everyByte)) & highBits
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
	// The other control characters have no short form.
	if r < ' ' {
		const digits = "0123456789abcdef"
		return append(to, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
	}
	return utf8.AppendRune(to, r)
}
