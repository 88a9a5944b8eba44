package session

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/internal/pause"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/calltimeout"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/questions"
)

const (
	// roundPause is the wait before a request is sent again for which the server wanted only time and no input. It
	// doubles with each round, up to roundPauseMost.
	roundPause     = 50 * time.Millisecond
	roundPauseMost = 5 * time.Second
)

// provideInput gives a server the input that it requires, and sends the request again with it, until the request is
// complete.
//
// 2026-07-28, Multi Round-Trip Requests: "If a client receives an InputRequiredResult that contains the inputRequests
// field, the client MUST construct the requested inputs before retrying the original request. … If an
// InputRequiredResult contains the requestState field, the client MUST echo back the exact value of that field … If
// [it] does not contain a requestState field, the client MUST NOT include one in the retry. The JSON-RPC id MUST be
// different between the initial request and the retry … Both the inputRequests and requestState fields affect only
// the client's retry of the original request. They MUST NOT be used for any other request".
//
// The request has ended at the server with each round, so sending it again is not a repetition.
func (s *Session) provideInput(ctx context.Context, r *request, a outcome.Answer) (outcome.Answer, *messages.Error) {
	switch r.method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		// 2026-07-28: "Servers MUST NOT send InputRequiredResult responses on any other client requests."
		return outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "asks for input, which it may not"}, nil
	}
	for round := range questions.MaxRounds {
		extra, waits, problem := s.nextRoundParams(ctx, a.Raw)
		if problem != "" {
			return s.endWithoutInput(ctx, problem)
		}
		if waits {
			if !pause.For(ctx, min(roundPause<<min(round, 10), roundPauseMost)) {
				e := outcome.ContextError(ctx, "before the server was done")
				e.Outcome = messages.OutcomeUnknown // the server has worked on the request
				return outcome.Answer{}, e
			}
		}
		var e *messages.Error
		r.continued = true
		if a, e = s.sendRequest(ctx, r, r.furtherParams(extra)); e != nil {
			if e.Outcome == messages.OutcomeNotSent {
				e.Outcome = messages.OutcomeUnknown // the effect of the earlier rounds is not known
			}
			return a, e
		}
		if a.Kind != outcome.AnswerResult || a.Detail != "input_required" {
			return a, nil
		}
	}
	return outcome.Answer{Kind: outcome.AnswerUnusable, Detail: fmt.Sprintf("asked for input more than %d times", questions.MaxRounds)}, nil
}

// endWithoutInput ends a request whose next round cannot be sent: with the error of the session or of the caller if
// one of them ended meanwhile, else with problem, the fault of the server's question.
func (s *Session) endWithoutInput(ctx context.Context, problem string) (outcome.Answer, *messages.Error) {
	e := s.endedError("")
	if e == nil && ctx.Err() != nil {
		e = outcome.ContextError(ctx, "before the server had the input that it asked for")
	}
	if e == nil {
		return outcome.Answer{Kind: outcome.AnswerUnusable, Detail: problem}, nil
	}
	e.Outcome = messages.OutcomeUnknown
	return outcome.Answer{}, e
}

// nextRoundParams returns the further members of params for the next round. waits is true if the server asked for
// nothing but a retry; problem is the fault of the server's question, "" if there is none.
func (s *Session) nextRoundParams(ctx context.Context, raw []byte) (extra []byte, waits bool, problem string) {
	var inputRequests, state []byte
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "inputRequests":
			inputRequests = value
		case "requestState":
			state = value
		}
	}
	switch {
	case rawjson.IsNull(inputRequests) && rawjson.IsNull(state):
		// 2026-07-28: "Servers MUST include at least one of inputRequests or requestState in every
		// InputRequiredResult response."
		return nil, false, "asks for input and does not say which"
	case !rawjson.IsNull(inputRequests) && !rawjson.IsObject(inputRequests):
		return nil, false, "asks for input in a form that is not known"
	}
	if waits = rawjson.IsNull(inputRequests); !waits {
		extra = append(extra, `"inputResponses":{`...)
		if extra, problem = s.answerInputRequests(ctx, extra, inputRequests); problem != "" {
			return nil, false, problem
		}
		extra = append(extra, '}')
	}
	if !rawjson.IsNull(state) {
		extra = append(jsonrpc.AppendComma(extra, 0), `"requestState":`...)
		// The state goes back as the bytes that came.
		extra = append(extra, state...)
	}
	return extra, waits, ""
}

// answerInputRequests runs the handlers of the input requests and appends their results to b. It runs them one after
// the other, in their order, because two questions at once confuse a person. The caller's idle timeout stands still
// meanwhile. The returned text is the problem, "" if there is none.
func (s *Session) answerInputRequests(ctx context.Context, b, inputRequests []byte) ([]byte, string) {
	empty := len(b)
	timeout := calltimeout.Of(ctx)
	timeout.PauseIdle()
	defer s.resumeTimeout(timeout)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The handlers end with the caller's context or with the session, whichever is first.
	defer context.AfterFunc(s.lifetime, cancel)()
	n := 0
	m := rawjson.ObjectAt(inputRequests, 0, 0)
	for m.Next() {
		inputRequest, key := m.Skip(), string(m.Name)
		if n++; n > questions.MaxInputs {
			return nil, fmt.Sprintf("asks for more than %d inputs at once", questions.MaxInputs)
		}
		method, _ := rawjson.Text(rawjson.Member(inputRequest, "method"))
		handle := s.cfg.Handlers.findHandler(method)
		if handle == nil {
			// 2026-07-28: "Servers MUST NOT send an inputRequests that the client has not declared support for in its
			// capabilities."
			return nil, "asks for " + messages.Line(method, 60) + ", which was not announced"
		}
		result, refused := s.runHandlerDetached(ctx, handle, rawjson.Member(inputRequest, "params"))
		if refused != nil {
			return nil, "asks for " + method + ", which could not be given: " + refused.Reason()
		}
		b = append(jsonrpc.AppendString(jsonrpc.AppendComma(b, empty), key), ':')
		b = jsonrpc.AppendOneLine(b, result)
	}
	return b, ""
}

// runHandlerDetached runs a handler on a goroutine of its own and waits for it no longer than ctx lasts: a handler
// may wait for a person at a terminal, and such a read cannot be interrupted. A panic of the handler ends the
// session, and with it ctx.
func (s *Session) runHandlerDetached(
	ctx context.Context, handle answerFunc, params []byte,
) ([]byte, *jsonrpc.ResponseError) {
	type handlerResult struct {
		result  []byte
		refused *jsonrpc.ResponseError
	}
	done := make(chan handlerResult, 1) // capacity 1: a handler that is late can still return
	if !s.spawn(func() {
		result, refused := handle(ctx, params)
		done <- handlerResult{result, refused}
	}) {
		return nil, questions.HandlerError(nil)
	}
	select {
	case g := <-done:
		return g.result, g.refused
	case <-ctx.Done():
		return nil, questions.HandlerError(nil)
	}
}
