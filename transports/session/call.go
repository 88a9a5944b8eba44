package session

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// Result is the answer of a tool.
type Result struct {
	// Raw is the server's result object, byte for byte: valid JSON, untrusted content.
	Raw json.RawMessage
	// IsError is true if the tool ran and reports a failure of its own.
	IsError bool
	// OutputSchema is the schema of the answer that the tool's definition declared at the time of the call, nil if it
	// declared none. The session leaves it nil; the caller of the gate sets it, because it knows the definition.
	OutputSchema json.RawMessage
}

// callTool performs a call that the gate admitted. It checks the arguments before anything is sent, so that ClassInvalid
// always means not-sent; it sends a second time only if the server refused the first for its headers.
func (s *Session) callTool(ctx context.Context, tool string, args json.RawMessage, o *Options) (Result, error) {
	problem := callProblem(tool, args, o != nil && o.ArgumentsWritten)
	if problem == "" {
		problem = o.metaProblem()
	}
	if problem != "" {
		return Result{}, &messages.Error{
			Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Tool: tool, Text: problem,
		}
	}
	// Arguments that the tool's definition marks are repeated as HTTP headers; a value too long for a header fails here.
	header, tooLong := s.paramHeadersFor(tool).Values(args)
	if tooLong != nil {
		tooLong.Tool = tool
		return Result{}, tooLong
	}
	r := &request{method: "tools/call", name: tool, args: args, opts: o, header: header}
	// In the legacy era the call asks to become a task if the tool and the caller want that.
	if s.augmentWithTask(ctx, r); r.task != nil {
		defer s.endFollowing(r.task)
	}
	a, e := s.callOnce(ctx, r)
	// HeaderMismatch means that the headers came from an old definition of the tool. One new listing may correct them; a call
	// that became a task, or that went on after a question, has had effects and is not repeated.
	if e != nil && e.Code == jsonrpc.CodeHeaderMismatch && !r.becameTask && !r.continued && s.refreshParamHeaders(ctx, r) {
		a, e = s.callOnce(ctx, r)
	}
	if e != nil {
		e.Op, e.Tool = "call", tool
		return Result{}, e
	}
	return Result{Raw: a.Raw, IsError: a.IsError}, nil
}

// callOnce sends r once and sees it through to its answer; an answer that is no result becomes an error with its outcome.
func (s *Session) callOnce(ctx context.Context, r *request) (outcome.Answer, *messages.Error) {
	a, e := s.performRequest(ctx, r)
	if e == nil {
		e = a.AsError("tools/call")
	}
	return a, e
}

// callProblem returns the reason for which a call cannot be sent, "" if there is none. A server could answer such a message
// only with a parse error, which names no request (its id is null), so the caller would wait for its timeout.
//
// Arguments that the caller has written are an object: reading them again would cost as much as sending them.
func callProblem(tool string, args json.RawMessage, written bool) string {
	switch {
	case tool == "":
		return "the tool has no name"
	case !utf8.ValidString(tool):
		return "the tool's name is not valid UTF-8"
	case written || len(args) == 0:
		return ""
	}
	// The cheap check of the structure comes first: it accepts every valid object without a second pass.
	if jsonrpc.IsWholeObject(args) {
		return ""
	}
	if json.Valid(args) {
		return "the arguments are not a JSON object"
	}
	return "the arguments are not valid JSON"
}

// postTimeout bounds the writing of one background message. A server that does not read for so long loses the message.
const postTimeout = 5 * time.Second

// postMessage queues an answer or a notification for the server and never blocks; the queue sends in order. A full queue
// drops the message and counts it, unless it is mandatory: the sender of a mandatory message bounds how many there are.
func (s *Session) postMessage(m transports.Message, mandatory bool) {
	s.writeQueue.Put(len(m.Body), mandatory, func() {
		ctx, stop := context.WithTimeout(s.lifetime, postTimeout)
		defer stop()
		// A message that cannot be sent is lost. That does no harm for long: the request or the cancellation that it was
		// about ends with its connection.
		if _, err := s.conn.Send(ctx, m); err != nil {
			s.counts.unsent.Add(1)
		}
	})
}

// cancelRequest notifies the server that the caller of a request does not wait any more. It does not wait and is not certain:
// the notification may be dropped, and the server may ignore it.
//
// 2025-11-25: "When the request has not received a success or error response within the timeout period, the sender SHOULD
// issue a cancellation notification for that request and stop waiting for a response." And: "The initialize request MUST NOT
// be cancelled by clients". The same holds for server/discover, because a server that has not answered it has not agreed to
// any version, and so to no form of a cancellation.
//
// 2026-07-28, stdio: the client cancels by notifications/cancelled. Over HTTP "closing the SSE response stream is itself the
// cancellation signal", which the transport does when it sees the message's version.
func (s *Session) cancelRequest(ctx context.Context, id int64, method string) {
	switch method {
	case "initialize", "server/discover":
		return
	case "tasks/get", "tasks/result", "tasks/update", "tasks/cancel":
		return // a caller that leaves a task sends tasks/cancel; these requests end by themselves
	}
	// The server may still ask a question about this request: see requestOrigin.
	if allowsServerRequests(method) && s.modern.Load() == nil {
		s.rememberAbandoned(ctx, id)
	}
	// The reason is a text that the server may log or show; it has no other meaning.
	reason := "the caller does not wait any more"
	if outcome.DeadlinePassed(ctx) {
		reason = "the deadline passed"
	}
	// The reason is for the server's log only; no server is known to act on it.
	b := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"reason":`...)
	b = jsonrpc.AppendString(b, reason)
	m := transports.Message{Method: "notifications/cancelled", Body: append(b, `}}`...)}
	if era := s.modern.Load(); era != nil {
		m.Version = era.version
	}
	s.postMessage(m, false)
}
