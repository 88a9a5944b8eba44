package rawjson

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical is the canonical form of the value in src, by the JSON Canonicalization Scheme (RFC 8785): no whitespace, names
// sorted by their UTF-16 code units, texts with no escape that is not needed, numbers as ECMAScript writes them. Two texts
// have one form if they are the same value of I-JSON (RFC 7493). A number is a double there: 9007199254740993 has the form
// of 9007199254740992, and 1.0 that of 1.
//
// src is not changed. Refused are doubled names, with a [*NameError], and with an [*Error]: what is no JSON, bytes that are
// no UTF-8, lone surrogates, numbers that no double holds, and more than [MaxDepth] values inside each other.
func Canonical(src []byte) ([]byte, error) {
	if at := hugeNumber(src); at >= 0 {
		return nil, &Error{Offset: int64(at), Reason: "the number is too large for a double"}
	}
	form := jsontext.Value(src).Clone()
	if err := form.Canonicalize(); err != nil {
		return nil, convertError(err)
	}
	return form, nil
}

// hugeNumber is where a number begins that no double holds, -1 if there is none. What is no JSON may have none.
//
// RFC 8785, section 3.2.2.3: numbers beyond the range "MUST cause a compliant JCS implementation to terminate with an
// appropriate error".
func hugeNumber(b []byte) int {
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
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
