package session

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
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

// CallWith is Call with the options o. If ctx was derived from a [CallTimeout], its idle timeout pauses while a handler
// answers the server, and begins anew with each progress notification.
func (g *Gate) CallWith(ctx context.Context, tool string, args json.RawMessage, o *Options) (Result, error) {
	if !g.calls.Enter() {
		return Result{}, g.session.gateClosedError(tool)
	}
	defer g.leave()
	defer g.session.awaitLogs(ctx)
	return g.session.callTool(ctx, tool, args, o)
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

// performRequest sends a request and sees it through: it provides the input that the server asks for, and follows the task
// that the request may become. The answer is of any kind but AnswerSessionEnded and AnswerTimedOut.
func (s *Session) performRequest(ctx context.Context, r *request) (outcome.Answer, *messages.Error) {
	a, e := s.sendRequest(ctx, r, r.furtherParams(nil))
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
		if r.opts != nil && r.opts.PassInput {
			return a, nil
		}
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
