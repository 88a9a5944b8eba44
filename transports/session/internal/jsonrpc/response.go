package jsonrpc

import (
	"strconv"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// A ResponseError is the JSON-RPC error with which we answer a request of the server.
type ResponseError struct {
	Code int
	Text string
	// Raw is the whole object, which is sent in the place of Code and Text if it is set.
	Raw []byte
}

// Reason returns what the error says to a person.
func (e *ResponseError) Reason() string {
	if e.Raw == nil {
		return e.Text
	}
	text, _ := rawjson.Text(rawjson.Member(e.Raw, "message"))
	return messages.Line(text, 200)
}

// AppendAnswer appends a response to a request of the server. The id is echoed byte for byte, because a server may
// compare it as a text.
func AppendAnswer(b []byte, id string, result []byte, refused *ResponseError) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	if refused == nil {
		b = append(b, `,"result":`...)
		b = AppendOneLine(b, result)
		return append(b, '}')
	}
	if refused.Raw != nil {
		return append(AppendOneLine(append(b, `,"error":`...), refused.Raw), '}')
	}
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(refused.Code), 10)
	b = append(b, `,"message":`...)
	b = AppendString(b, refused.Text)
	return append(b, `}}`...)
}
