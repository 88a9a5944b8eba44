package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Result is what a tool answered.
type Result struct {
	// Raw is the server's result object, byte for byte: valid JSON, untrusted content.
	Raw json.RawMessage
	// IsError says that the tool ran and reports a failure.
	IsError bool
}

// call is Gate.Call behind the gate.
func (s *Session) call(ctx context.Context, tool string, args json.RawMessage) (Result, error) {
	if wrong := badCall(tool, args); wrong != "" {
		return Result{}, &messages.Error{
			Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Tool: tool, Text: wrong,
		}
	}
	a, e := s.callTool(ctx, tool, args)
	if e == nil {
		e = a.fault("tools/call")
	}
	if e != nil {
		e.Op, e.Tool = "call", tool
		return Result{}, e
	}
	return Result{Raw: a.raw, IsError: a.isError}, nil
}

func (s *Session) callTool(ctx context.Context, tool string, args json.RawMessage) (answer, *messages.Error) {
	if e := tooLate(ctx); e != nil {
		return answer{}, e
	}
	f, e := s.depart()
	if e != nil {
		return answer{}, e
	}
	f.body = appendCall(f.body, f.id, tool, args)
	return s.exchange(ctx, f, "tools/call", tool)
}

// badCall says what makes a call impossible to send, "" if nothing does.
func badCall(tool string, args json.RawMessage) string {
	switch {
	case tool == "":
		return "the tool has no name"
	case !utf8.ValidString(tool):
		return "the tool's name is not valid UTF-8"
	case len(args) == 0:
		return ""
	}
	i := skipSpace(args, 0)
	if i < len(args) && args[i] == '{' {
		if end := skipValue(args, i, 0); end >= 0 && skipSpace(args, end) == len(args) {
			return ""
		}
	}
	if json.Valid(args) {
		return "the arguments are not a JSON object"
	}
	return "the arguments are not valid JSON"
}

// appendCall writes a tools/call request. args is valid, or empty.
func appendCall(b []byte, id int64, tool string, args []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":"tools/call","params":{"name":`...)
	b = appendString(b, tool)
	b = append(b, `,"arguments":`...)
	if len(args) == 0 {
		b = append(b, `{}`...)
	} else {
		b = appendOneLine(b, args)
	}
	return append(b, `}}`...)
}

// appendRequest writes a request; params is a JSON object, or empty for none.
func appendRequest(b []byte, id int64, method string, params []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":`...)
	b = appendString(b, method)
	if len(params) > 0 {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// appendOneLine copies valid JSON without a newline in it: between tokens, the only place for one, a space is as good.
//
// All versions, stdio: "Messages are delimited by newlines, and MUST NOT contain embedded newlines."
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

// appendString writes valid UTF-8 as a JSON string.
func appendString(b []byte, s string) []byte {
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

// postBound is how long one message of the background may take to be written.
const postBound = 5 * time.Second

// post sends an answer or a notification in the background, in order, bounded, without blocking.
func (s *Session) post(method string, body []byte) {
	s.outbox.put(len(body), false, func() {
		ctx, stop := context.WithTimeout(s.life, postBound)
		defer stop()
		// A message that cannot be sent is lost: the server's request or our cancellation ends with its connection.
		_, err := s.conn.Send(ctx, transports.Message{Method: method, Body: body})
		if err != nil {
			s.counts.unsent.Add(1)
		}
	})
}

// cancel tells the server that nobody waits for a request any more.
//
// 2025-11-25: "When the request has not received a success or error response within the timeout period, the sender
// SHOULD issue a cancellation notification for that request and stop waiting for a response." And: "The initialize
// request MUST NOT be cancelled by clients".
func (s *Session) cancel(ctx context.Context, id int64, method string) {
	if method == "initialize" {
		return
	}
	reason := "the caller does not wait any more"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		reason = "the deadline passed"
	}
	b := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"reason":`...)
	b = appendString(b, reason)
	s.post("notifications/cancelled", append(b, `}}`...))
}
