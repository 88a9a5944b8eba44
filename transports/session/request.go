package session

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// Options are a caller's wishes for one request. The zero value, and nil, wish nothing.
type Options struct {
	// Progress gets each progress notification of the request, in order, one at a time, and never after the request
	// has returned. It must return soon: notifications that come faster than it returns are dropped and counted, like
	// log messages. Each notification restarts the idle timeout of the request's [CallTimeout].
	Progress func(messages.Progress)
	// ProgressParams gets the params of each notification as sent, in the place of Progress.
	ProgressParams func(params json.RawMessage)
	// Meta holds further members of the request's _meta, a JSON object: a trace context, for one.
	Meta json.RawMessage
	// Task holds the caller's wishes for a task; nil wishes nothing.
	Task *TaskOptions
	// OnTask runs when the call has become a task, and at each change of its status, in order, on the goroutine of
	// the caller and never after the request has returned. It must return soon.
	OnTask func(messages.TaskStatus)
	// ArgumentsWritten says that the caller wrote the arguments of the call with [rawjson.AppendValue]: a JSON object in one
	// line. They are then not read before they are sent.
	ArgumentsWritten bool
	// OmitArguments leaves out arguments that the caller did not give; without it they are sent as an empty object.
	OmitArguments bool
	// Capabilities and LogLevel take the place of the session's own in the _meta of a request of the modern era, for a caller that
	// passes on what another client asks: an object, and one of messages.LogLevels. Empty means the session's own.
	Capabilities json.RawMessage
	LogLevel     string
	// PassInput returns a result that requires input as it came, in the place of asking the Handlers. Input are further members of
	// params as another client wrote them, without braces: those with which it asks again, and those that nobody knows.
	PassInput bool
	Input     json.RawMessage
}

func (o *Options) wantsProgress() bool { return o.Progress != nil || o.ProgressParams != nil }

// furtherParams returns the members of params that the request has beside its own, each time that it is sent: those that its caller
// gave, and those of one round.
func (r *request) furtherParams(round []byte) []byte {
	switch {
	case r.opts == nil || len(r.opts.Input) == 0:
		return round
	case len(round) == 0:
		return r.opts.Input
	}
	return slices.Concat(r.opts.Input, []byte{','}, round)
}

// A request is the content of one request before it has an id. It can be sent again under another id.
type request struct {
	method string
	// name is the tool, prompt or URI that the request is about, if any.
	name string
	// args are the arguments of tools/call, whose tool is name: a JSON object, or empty.
	args []byte
	// fields are the other members of params as JSON, without the braces around them.
	fields []byte
	// header holds further HTTP headers for the message; other transports ignore them.
	header map[string]string
	opts   *Options
	// task is set if the request asks to become a task (legacy era); becameTask is true once it has become one, in either
	// era.
	task       *followedTask
	becameTask bool
	// continued is true once the request was sent again with the input that the server had asked for: after that the server
	// has a state of this request, and a retry from the beginning would be a second call.
	continued bool
	// posted is called when the connection has the message, if it takes one without waiting until it is written, and else before it is sent; nil
	// is not called.
	posted func()
	// era replaces the session's own modern fields, for requests before the handshake is done; nil uses those of the session.
	era *modernParams
}

// appendTo appends the request as one line of JSON. It writes by hand because a call should allocate no more than its buffer;
// an empty params is left out.
func (r *request) appendTo(b []byte, id int64, m *modernParams, extra []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":`...)
	b = jsonrpc.AppendString(b, r.method)
	// before and empty are the lengths with and without an empty params, so that it can be cut off again.
	before := len(b)
	b = append(b, `,"params":{`...)
	empty := len(b)
	// tools/call is written member by member, so that a call needs no buffer for its params.
	if r.method == "tools/call" {
		b = append(b, `"name":`...)
		b = jsonrpc.AppendString(b, r.name)
		switch {
		case len(r.args) > 0:
			b = append(b, `,"arguments":`...)
			if r.opts != nil && r.opts.ArgumentsWritten {
				b = append(b, r.args...)
			} else {
				b = jsonrpc.AppendOneLine(b, r.args)
			}
		case r.opts == nil || !r.opts.OmitArguments:
			b = append(b, `,"arguments":{}`...)
		}
	}
	for _, fields := range [2][]byte{r.fields, extra} {
		if len(fields) > 0 {
			b = jsonrpc.AppendOneLine(jsonrpc.AppendComma(b, empty), fields)
		}
	}
	// _meta is written only if it has members: servers of the legacy era then see the messages that they know.
	if m != nil || r.opts != nil && (r.opts.wantsProgress() || len(r.opts.Meta) > 0) {
		b = append(jsonrpc.AppendComma(b, empty), `"_meta":{`...)
		b = append(r.appendMeta(b, len(b), id, m), '}')
	}
	if len(b) == empty {
		b = b[:before]
	} else {
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendMeta appends the members of _meta, without braces. empty is the length of b before the first member.
func (r *request) appendMeta(b []byte, empty int, id int64, m *modernParams) []byte {
	switch {
	case m == nil:
	case r.opts != nil && (len(r.opts.Capabilities) > 0 || r.opts.LogLevel != ""):
		b = m.appendFor(b, r.opts)
	default:
		b = append(b, m.meta...)
	}
	if r.opts == nil {
		return b
	}
	if r.opts.wantsProgress() {
		// "Progress tokens MUST be a string or integer value" and "MUST be unique across all active requests": the id is
		// both.
		b = append(jsonrpc.AppendComma(b, empty), `"progressToken":`...)
		b = strconv.AppendInt(b, id, 10)
	}
	// Meta is a JSON object by now (metaProblem), so its first and last bytes, spaces aside, are braces.
	if inner := bytes.TrimSpace(r.opts.Meta); len(inner) > 2 {
		if inner = bytes.TrimSpace(inner[1 : len(inner)-1]); len(inner) > 0 {
			b = jsonrpc.AppendOneLine(jsonrpc.AppendComma(b, empty), inner)
		}
	}
	return b
}

// metaProblem returns the reason for which o.Meta cannot be sent, "" if there is none.
func (o *Options) metaProblem() string {
	if o == nil || len(o.Meta) == 0 || jsonrpc.IsWholeObject(o.Meta) {
		return ""
	}
	return "the further members of _meta are not a JSON object"
}

// requestResult performs a request and returns its result object, or an error with Op op that keeps its outcome.
func (s *Session) requestResult(ctx context.Context, op string, r request) ([]byte, *messages.Error) {
	a, e := s.performRequest(ctx, &r)
	if e == nil {
		e = a.AsError(r.method)
	}
	if e != nil {
		e.Op = op
		return nil, e
	}
	return a.Raw, nil
}

// requiredRequestError adapts the error of a request that a session cannot do without (a list): a server that refuses it
// breaks the protocol (ClassProtocol, not ClassRejected), and the error has no outcome, because no call failed.
func requiredRequestError(e *messages.Error) *messages.Error {
	e.Outcome = ""
	if e.Class == messages.ClassRejected {
		e.Class = messages.ClassProtocol
	}
	return e
}

// Ping asks the server for a sign of life: by ping in the legacy era, by server/discover in the modern one, which has no
// ping. Every answer is one, also an error: a server that does not know the method is alive. ctx bounds the wait.
func (s *Session) Ping(ctx context.Context) error {
	method := "ping"
	if s.modern.Load() != nil {
		method = "server/discover"
	}
	if _, e := s.sendRequest(ctx, &request{method: method}, nil); e != nil {
		e.Op, e.Outcome = "read", ""
		return e
	}
	return nil
}

// postTimeout bounds the writing of one background message. A server that does not read for so long loses the message.
const postTimeout = 5 * time.Second

// postMessage queues an answer or a notification for the server and never blocks; the queue sends in order. A full queue
// drops the message and counts it, unless it is mandatory: the sender of a mandatory message bounds how many there are.
func (s *Session) postMessage(m transports.Message, mandatory bool) {
	s.writeQueue.Put(len(m.Body), mandatory, func() {
		own := s.lifetime
		if m.Caller == "" {
			m.Caller = s.caller
		} else {
			own = messages.WithCaller(own, m.Caller)
		}
		ctx, stop := context.WithTimeout(own, postTimeout)
		defer stop()
		// A message that cannot be sent is lost. That does no harm for long: the request or the cancellation that it was
		// about ends with its connection.
		if _, err := s.sendMessage(ctx, m); err != nil {
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
	m := transports.Message{Method: "notifications/cancelled", Body: append(b, `}}`...), Caller: messages.CallerOf(ctx)}
	if era := s.modern.Load(); era != nil {
		m.Version = era.version
	}
	s.postMessage(m, false)
}
