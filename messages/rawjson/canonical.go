package rawjson

import (
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
func Canonical(src []byte) ([]byte, error) {
	if at := hugeNumber(src); at >= 0 {
		return nil, &Error{Offset: int64(at), Reason: "the number is too large for a double"}
	}
	// Canonicalize works in place.
	form := jsontext.Value(src).Clone()
	if err := form.Canonicalize(); err != nil {
		return nil, convertError(err)
	}
	return form, nil
}

// hugeNumber returns the offset of the first number that no double holds, -1 if there is none. In bytes that are no
// JSON it may miss one; Canonicalize refuses those anyway.
//
// RFC 8785, section 3.2.2.3: numbers beyond the range "MUST cause a compliant JCS implementation to terminate with an
// appropriate error".
func hugeNumber(b []byte) int {
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			// Digits inside a text are no number.
			if i = SkipText(b, i); i < 0 {
				return -1
			}
		case c == '-' || isDigit(c):
			end := skipNumber(b, i)
			if end < 0 {
				return -1
			}
			if f, _ := strconv.ParseFloat(string(b[i:end]), 64); math.IsInf(f, 0) {
				return i
			}
			i = end
		default:
			i++
		}
	}
	return -1
}
