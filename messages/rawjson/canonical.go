package rawjson

import (
	"bytes"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns the canonical form of the value in src, by the JSON Canonicalization Scheme (RFC 8785): no
// whitespace, names sorted by their UTF-16 code units, texts without unnecessary escapes, numbers as ECMAScript writes
// them. Two texts have one form if they are the same value of I-JSON (RFC 7493). A number is a double there:
// 9007199254740993 has the form of 9007199254740992, and 1.0 that of 1.
//
// src is not changed. Doubled names are refused with a [*NameError]. An [*Error] refuses bytes that are no JSON or no
// UTF-8, lone surrogates, numbers that no double holds, and more than [MaxDepth] values inside each other.
func Canonical(src []byte) ([]byte, error) { return AppendCanonical(nil, src) }

// AppendCanonical appends the form that [Canonical] returns, so that the caller can use its memory again. With an error the
// result is to, which may have grown.
func AppendCanonical(to, src []byte) ([]byte, error) {
	if at := hugeNumber(src); at >= 0 {
		return to, &Error{Offset: int64(at), Reason: "the number is too large for a double"}
	}
	// Canonicalize works in place, and moves a form that grows.
	whole := append(to, src...)
	form := jsontext.Value(whole[len(to):])
	if err := form.Canonicalize(); err != nil {
		return whole[:len(to)], convertError(err)
	}
	return append(whole[:len(to)], form...), nil
}

// hugeNumber returns the offset of the first number that no double holds, -1 if there is none. In bytes that are no
// JSON it may miss one; Canonicalize refuses those anyway.
//
// RFC 8785, section 3.2.2.3: numbers beyond the range "MUST cause a compliant JCS implementation to terminate with an
// appropriate error".
func hugeNumber(b []byte) int {
	for i, end := NextNumber(b, 0); i >= 0; i, end = NextNumber(b, end) {
		// A double holds every number of up to 308 digits without an exponent.
		if number := b[i:end]; len(number) > 308 || bytes.ContainsAny(number, "eE") {
			if f, _ := strconv.ParseFloat(string(number), 64); math.IsInf(f, 0) {
				return i
			}
		}
	}
	return -1
}

// NextNumber returns where the next number at b[i] or behind it begins and ends; start is -1 if there is none. b is JSON, and i
// is not inside of a text or a number. In bytes that are no JSON it may miss a number.
func NextNumber(b []byte, i int) (start, end int) {
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			// Digits inside a text are no number.
			if i = SkipText(b, i); i < 0 {
				return -1, -1
			}
		case c == '-' || isDigit(c):
			if end = skipNumber(b, i); end < 0 {
				return -1, -1
			}
			return i, end
		default:
			i++
		}
	}
	return -1, -1
}
