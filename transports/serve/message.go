package serve

import (
	"bytes"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// message is one message of an agent. Its slices lie in the body that it was read from.
type message struct {
	id, params, meta []byte
	result, problem  []byte
	method           string
}

// isRequest, isAnswer: what is neither is a notification.
func (m *message) isRequest() bool { return m.method != "" && m.id != nil }
func (m *message) isAnswer() bool  { return m.method == "" }

// maxID bounds an id, because it is kept and echoed.
const maxID = 1024

// readMessage takes a message apart, by one reading: a name that stands twice is refused, because another reader might take the
// other one. The id of the message is returned with an error, too, if it could be read.
func readMessage(body []byte) (m message, e *Error) {
	i := rawjson.SkipSpace(body, 0)
	switch {
	case !utf8.Valid(body):
		// 2025-11-25: "JSON-RPC messages MUST be UTF-8 encoded." A server that reads lines of UTF-8 would end at the bytes of one agent.
		return m, refused(CodeParse, "Parse error: the message is not UTF-8")
	case i < len(body) && body[i] == '[':
		return m, refused(CodeInvalidRequest, "a batch is not accepted: send each message by itself")
	case i < len(body) && body[i] != '{' && rawjson.Valid(body):
		return m, refused(CodeInvalidRequest, "the message is no JSON object")
	case i >= len(body) || body[i] != '{':
		return m, refused(CodeParse, "Parse error: the message is not valid JSON")
	}
	var version, method, answer []byte
	doubled := false
	put := func(to *[]byte, value []byte) {
		doubled = doubled || *to != nil
		*to = value
	}
	o := rawjson.ObjectAt(body, i, 0)
	for o.Next() {
		switch string(o.Name) {
		case "jsonrpc":
			put(&version, o.Skip())
		case "id":
			put(&m.id, o.Skip())
		case "method":
			put(&method, o.Skip())
		case "params":
			put(&m.params, o.Skip())
		case "result":
			put(&answer, o.Skip())
		case "error":
			put(&m.problem, o.Skip())
		default:
			o.Skip()
		}
	}
	if end := o.End(); end < 0 || rawjson.SkipSpace(body, end) != len(body) {
		return message{}, refused(CodeParse, "Parse error: the message is not valid JSON")
	}
	m.result = answer
	if m.id != nil && !isID(m.id) {
		m.id = nil
		return m, refused(CodeInvalidRequest, "the id must be a string or a number")
	}
	switch {
	case doubled:
		return m, refused(CodeInvalidRequest, "a member of the message stands twice")
	case string(version) != `"2.0"`:
		return m, refused(CodeInvalidRequest, "the message is not one of JSON-RPC 2.0")
	case method == nil && (m.id == nil || (m.result == nil) == (m.problem == nil)):
		return m, refused(CodeInvalidRequest, "the message is neither a request nor a notification nor an answer")
	case method == nil:
		return m, nil
	}
	var ok bool
	if m.method, ok = rawjson.Text(method); !ok || m.method == "" {
		return m, refused(CodeInvalidRequest, "the method must be a string")
	}
	if m.params != nil {
		if !rawjson.IsObject(m.params) {
			return m, refused(CodeInvalidParams, "params must be an object")
		}
		if m.meta = rawjson.Member(m.params, "_meta"); rawjson.IsNull(m.meta) {
			m.meta = nil
		}
		if m.meta != nil && !rawjson.IsObject(m.meta) {
			return m, refused(CodeInvalidParams, "_meta must be an object")
		}
	}
	return m, nil
}

// refused is the error of a message that cannot be handled at all.
func refused(code int, text string) *Error {
	return &Error{Code: code, Message: text, status: http.StatusBadRequest}
}

// isID reports whether a value can be an id: a string or a number, and not too long to be echoed.
func isID(value []byte) bool {
	c := value[0]
	return len(value) <= maxID && (c == '"' || c == '-' || c >= '0' && c <= '9')
}

// appendResult appends the answer to a request.
func appendResult(b, id, result []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	b = append(b, result...)
	return append(b, '}')
}

// appendError appends the answer with an error; a nil id is null.
func appendError(b, id []byte, e *Error) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		id = []byte("null")
	}
	b = append(b, id...)
	b = append(b, `,"error":`...)
	if e.Raw != nil {
		return append(append(b, e.Raw...), '}')
	}
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	b = append(b, `,"message":`...)
	b = rawjson.AppendText(b, e.Message)
	if e.Data != nil {
		b = append(b, `,"data":`...)
		b = append(b, e.Data...)
	}
	return append(b, "}}"...)
}

// appendAnswer appends the answer with a result, or with an error.
func appendAnswer(b, id, result []byte, e *Error) []byte {
	if e != nil {
		return appendError(b, id, e)
	}
	return appendResult(b, id, result)
}

func appendNotification(b []byte, method string, params []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","method":`...)
	b = rawjson.AppendText(b, method)
	if params != nil {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// appendOneLine appends valid JSON without line breaks, which stand between its tokens only.
func appendOneLine(b, value []byte) []byte {
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
