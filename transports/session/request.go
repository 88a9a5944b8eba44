package session

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
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
	// era replaces the session's own modern fields, for requests before the handshake is done; nil uses those of the session.
	era *modernParams
}

// performRequest sends a request and sees it through: it provides the input that the server asks for, and follows the task
// that the request may become. The answer is of any kind but AnswerSessionEnded and AnswerTimedOut.
func (s *Session) performRequest(ctx context.Context, r *request) (outcome.Answer, *messages.Error) {
	a, e := s.sendRequest(ctx, r, nil)
	if s.modern.Load() == nil {
		// Legacy era: URLElicitationRequired is an error that asks to send a person to a URL and to try again.
		if e == nil && a.Kind == outcome.AnswerRPCError && s.cfg.Handlers.Elicit != nil && s.cfg.Handlers.ElicitURL {
			a, e = s.retryAfterElicitation(ctx, r, a)
		}
		if e == nil && a.Kind == outcome.AnswerResult && r.task != nil {
			if task := rawjson.Member(a.Raw, "task"); task != nil {
				return s.pollTask(ctx, r, task)
			}
			// A server that answers at once has done what was asked, although a server that accepts tasks MUST answer with a
			// task.
		}
		return a, e
	}
	// Modern era: a question of the server is the answer to our request, which is sent again with the input.
	if e == nil && a.Kind == outcome.AnswerResult && a.Detail == "input_required" {
		a, e = s.provideInput(ctx, r, a)
	}
	if e != nil || a.Kind != outcome.AnswerResult || a.Detail == "" {
		return a, e
	}
	if a.Detail == "task" && r.method == "tools/call" {
		return s.pollTask(ctx, r, a.Raw)
	}
	// Tasks extension: "A client that receives CreateTaskResult in response to an unsupported request type MUST interpret
	// this as an invalid response to the request." 2026-07-28, ResultType: "A resultType of any value unrecognized by the
	// client MUST be considered invalid."
	return outcome.Answer{Kind: outcome.AnswerUnusable, ToolRan: true,
		Detail: "has the unknown result type " + messages.Line(a.Detail, 60)}, nil
}

// sendRequest sends a request once, under a fresh id, and returns its answer. extra are further members of params, without
// braces. If the caller's context has ended already, nothing is sent.
func (s *Session) sendRequest(ctx context.Context, r *request, extra []byte) (outcome.Answer, *messages.Error) {
	if e := outcome.CallerLeftError(ctx); e != nil {
		return outcome.Answer{}, e
	}
	var p *progressReporter
	if r.opts != nil && r.opts.Progress != nil {
		p = &progressReporter{callback: r.opts.Progress}
		if r.task == nil { // a task reports progress after its first answer, too; endFollowing finishes its reporter
			defer p.finish(ctx)
		}
	}
	f, e := s.registerRequest(ctx, p, allowsServerRequests(r.method))
	if e != nil {
		return outcome.Answer{}, e
	}
	// The id is the progress token, and a task keeps that token after this request has been answered.
	if r.task != nil && p != nil {
		s.mu.Lock()
		r.task.token, r.task.progress = f.id, p
		s.mu.Unlock()
	}
	m := r.era
	if m == nil {
		m = s.modern.Load()
	}
	f.body = r.appendTo(f.body, f.id, m, extra)
	msg := transports.Message{ID: f.id, Method: r.method, Name: r.name, Body: f.body, Header: r.header}
	if m != nil {
		msg.Version = m.version
	}
	return s.exchangeMessage(ctx, f, &msg)
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
		b = append(b, `,"arguments":`...)
		switch {
		case len(r.args) == 0:
			b = append(b, `{}`...)
		case r.opts != nil && r.opts.ArgumentsWritten:
			b = append(b, r.args...)
		default:
			b = jsonrpc.AppendOneLine(b, r.args)
		}
	}
	for _, fields := range [2][]byte{r.fields, extra} {
		if len(fields) > 0 {
			b = jsonrpc.AppendOneLine(jsonrpc.AppendComma(b, empty), fields)
		}
	}
	// _meta is written only if it has members: servers of the legacy era then see the messages that they know.
	if m != nil || r.opts != nil && (r.opts.Progress != nil || len(r.opts.Meta) > 0) {
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
	if m != nil {
		b = append(b, m.meta...)
	}
	if r.opts == nil {
		return b
	}
	if r.opts.Progress != nil {
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
