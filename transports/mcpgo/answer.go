package mcpgo

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// answerOf returns the answer to a call of a tool, in the same bytes as json.Marshal makes, with the request's own id. It saves
// two costs of large results: it does not check and compact again what json.Marshal has just written; and for a result of texts,
// as most are, it makes no map first.
func answerOf(id json.RawMessage, r *mcp.CallToolResult) ([]byte, error) {
	// 80 bytes hold the envelope, 32 the members of one text, so that most answers take one allocation.
	room := len(id) + 80
	for _, c := range r.Content {
		if t, ok := c.(mcp.TextContent); ok {
			room += len(t.Text) + 32
		}
	}
	b := make([]byte, 0, room)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	b = append(b, `,"result":`...)
	begun := len(b)
	b, ok := appendTexts(b, r)
	if !ok {
		result, err := r.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(b[:begun], result...)
	}
	return append(b, '}'), nil
}

// appendTexts appends what r.MarshalJSON would return. It reports false for a result that only MarshalJSON can write; the caller
// drops what was appended then.
func appendTexts(b []byte, r *mcp.CallToolResult) ([]byte, bool) {
	// Each of these needs rules of mcp-go that are not repeated here.
	if r.StructuredContent != nil || len(r.RawStructuredContent) > 0 || len(r.InputRequests) > 0 || r.RequestState != "" {
		return b, false
	}
	b = append(b, '{')
	if r.Meta != nil {
		meta, err := r.Meta.MarshalJSON()
		if err != nil {
			return b, false
		}
		b = append(append(append(b, `"_meta":`...), meta...), ',')
	}
	b = append(b, `"content":[`...)
	for i, c := range r.Content {
		// Pictures and annotations are rare, and left to MarshalJSON.
		t, ok := c.(mcp.TextContent)
		if !ok || t.Annotations != nil || t.Meta != nil {
			return b, false
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"type":`...), t.Type)
		b = append(appendString(append(b, `,"text":`...), t.Text), '}')
	}
	b = append(b, ']')
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	if r.ResultType != "" {
		b = appendString(append(b, `,"resultType":`...), string(r.ResultType))
	}
	return append(b, '}'), true
}

// appendString appends s as json.Marshal writes it, which escapes more than JSON demands.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !plainBytes[s[i]] { // json.Marshal fails for no string
			quoted, _ := json.Marshal(s) // there is no string that it refuses
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// plainBytes are the bytes that json.Marshal copies as they are, whatever stands beside them.
var plainBytes = func() (t [256]bool) {
	for c := ' '; c <= '~'; c++ {
		t[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return t
}()
