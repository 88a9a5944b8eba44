package transports

import (
	"encoding/base64"
	"strings"
)

// The marks around an encoded value. "These markers are case-sensitive and MUST appear exactly as shown (lowercase)."
const (
	encodedFrom = "=?base64?"
	encodedTo   = "?="
)

// HeaderValue returns value as the value of a header Mcp-Name or Mcp-Param-…: as it is if a header can carry it, otherwise in the
// encoding of the specification. Different values have different headers, and a header always means one value.
//
// 2026-07-28, Value Encoding: "When a value cannot be safely represented as a plain ASCII header value (e.g., it contains
// non-ASCII characters, control characters, or has leading/trailing whitespace), clients MUST use Base64 encoding of the UTF-8
// representation". "To avoid ambiguity, clients MUST also Base64-encode any plain-ASCII value that matches the sentinel pattern
// (i.e., starts with =?base64? and ends with ?=)."
//
// A tab inside a value is allowed either way; HeaderValue encodes it, because some proxies pass it on as a space.
func HeaderValue(value string) string {
	if isPlainHeaderValue(value) {
		return value
	}
	return encodedFrom + base64.StdEncoding.EncodeToString([]byte(value)) + encodedTo
}

// isPlainHeaderValue reports whether a header can carry value as it is and whether a reader would not take it for an encoded one.
func isPlainHeaderValue(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return false
		}
	}
	return !strings.HasPrefix(value, " ") && !strings.HasSuffix(value, " ") &&
		(!strings.HasPrefix(value, encodedFrom) || !strings.HasSuffix(value, encodedTo))
}
