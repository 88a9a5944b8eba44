package session

import (
	"bytes"
	"context"
	"encoding/json"
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
	// OutputSchema is what the tool's definition promised of the answer when it was called, nil if nothing. It is set by who
	// knows the definition, which a session does not.
	OutputSchema json.RawMessage
}

// callTool is Gate.Call behind the gate.
func (s *Session) callTool(ctx context.Context, tool string, args json.RawMessage, o *Options) (Result, error) {
	problem := callProblem(tool, args)
	if problem == "" {
		problem = o.metaProblem()
	}
	if problem != "" {
		return Result{}, &messages.Error{
			Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Tool: tool, Text: problem,
		}
	}
	header, tooLong := s.paramHeadersFor(tool).headerValues(args)
	if tooLong != nil {
		tooLong.Tool = tool
		return Result{}, tooLong
	}
	r := &request{method: "tools/call", name: tool, args: args, opts: o, header: header}
	if s.augmentWithTask(ctx, r); r.task != nil {
		defer s.endFollowing(r.task)
	}
	a, e := s.callOnce(ctx, r)
	if e != nil && e.Code == codeHeaderMismatch && !r.becameTask && !r.continued && s.refreshParamHeaders(ctx, r) {
		a, e = s.callOnce(ctx, r)
	}
	if e != nil {
		e.Op, e.Tool = "call", tool
		return Result{}, e
	}
	return Result{Raw: a.raw, IsError: a.isError}, nil
}

func (s *Session) callOnce(ctx context.Context, r *request) (answer, *messages.Error) {
	a, e := s.performRequest(ctx, r)
	if e == nil {
		e = a.asError("tools/call")
	}
	return a, e
}

// callProblem says what makes a call impossible to send, "" if nothing does.
func callProblem(tool string, args json.RawMessage) string {
	switch {
	case tool == "":
		return "the tool has no name"
	case !utf8.ValidString(tool):
		return "the tool's name is not valid UTF-8"
	case len(args) == 0:
		return ""
	}
	if isWholeObject(args) {
		return ""
	}
	if json.Valid(args) {
		return "the arguments are not a JSON object"
	}
	return "the arguments are not valid JSON"
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

// postTimeout is how long one message of the background may take to be written.
const postTimeout = 5 * time.Second

// postMessage sends an answer or a notification in the background, in order, bounded, without blocking. must is for what may
// not be dropped, and is bounded by its sender.
func (s *Session) postMessage(m transports.Message, mandatory bool) {
	s.writeQueue.put(len(m.Body), mandatory, func() {
		ctx, stop := context.WithTimeout(s.lifetime, postTimeout)
		defer stop()
		// A message that cannot be sent is lost: the server's request or our cancellation ends with its connection.
		if _, err := s.conn.Send(ctx, m); err != nil {
			s.counts.unsent.Add(1)
		}
	})
}

// cancelRequest tells the server that nobody waits for a request any more.
//
// 2025-11-25: "When the request has not received a success or error response within the timeout period, the sender
// SHOULD issue a cancellation notification for that request and stop waiting for a response." And: "The initialize
// request MUST NOT be cancelled by clients". A server that was asked which era it speaks has not agreed to anything yet.
//
// 2026-07-28, stdio: the client cancels by notifications/cancelled. Over HTTP "closing the SSE response stream is itself the
// cancellation signal", which the transport knows by the message's version.
func (s *Session) cancelRequest(ctx context.Context, id int64, method string) {
	switch method {
	case "initialize", "server/discover":
		return
	case "tasks/get", "tasks/result", "tasks/update", "tasks/cancel":
		return // who leaves a task ends it with tasks/cancel; these requests end by themselves
	}
	if allowsServerRequests(method) && s.modern.Load() == nil {
		s.rememberAbandoned(ctx, id)
	}
	reason := "the caller does not wait any more"
	if deadlinePassed(ctx) {
		reason = "the deadline passed"
	}
	b := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"reason":`...)
	b = appendString(b, reason)
	m := transports.Message{Method: "notifications/cancelled", Body: append(b, `}}`...)}
	if era := s.modern.Load(); era != nil {
		m.Version = era.version
	}
	s.postMessage(m, false)
}
