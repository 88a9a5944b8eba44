package jsonrpc

import (
	"bytes"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// AppendOneLine appends valid JSON with its line breaks replaced by spaces. In valid JSON a line break stands between tokens
// only (in a string it is escaped), where a space means the same.
//
// All versions, stdio: "Messages are delimited by newlines, and MUST NOT contain embedded newlines."
func AppendOneLine(b, value []byte) []byte {
	start := len(b)
	b = append(b, value...)
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return b
	}
	for i, c := range b[start:] {
		if c == '\n' || c == '\r' {
			b[start+i] = ' '
		}
	}
	return b
}

// AppendString appends s, which is valid UTF-8, as a JSON string. It escapes only what JSON demands.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// AppendComma appends a comma if b has grown beyond the length empty, that is, if there is a member before the next one.
func AppendComma(b []byte, empty int) []byte {
	if len(b) > empty {
		return append(b, ',')
	}
	return b
}

// IsWholeObject reports whether raw is one JSON object and nothing else. It checks the structure without decoding.
func IsWholeObject(raw []byte) bool {
	i := rawjson.SkipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return false
	}
	end := rawjson.SkipValue(raw, i, 0)
	return end >= 0 && rawjson.SkipSpace(raw, end) == len(raw)
}
