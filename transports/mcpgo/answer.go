package mcpgo

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// answerOf returns the same bytes that json.Marshal makes of the answer to a call of a tool, but for the id, which is the request's own. It does
// not go over the result again, to check and to compact what json.Marshal has written a moment before; and of a result that
// is texts, as most are, it makes no map first.
func answerOf(id json.RawMessage, r *mcp.CallToolResult) ([]byte, error) {
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

// appendTexts appends what r.MarshalJSON returns. It reports false for what only that can write.
func appendTexts(b []byte, r *mcp.CallToolResult) ([]byte, bool) {
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

// appendString appends s as json.Marshal writes it.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !plainBytes[s[i]] {
			quoted, _ := json.Marshal(s) // there is no string that it refuses
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// plainBytes are the bytes that json.Marshal leaves as they are, as far as that needs no look at their neighbours.
var plainBytes = func() (t [256]bool) {
	for c := ' '; c <= '~'; c++ {
		t[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return t
}()
