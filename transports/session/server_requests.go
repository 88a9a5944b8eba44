package session

import (
	"context"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/tasks"
)

// maxServed bounds the requests of one server that handlers answer at the same time. One more is refused.
const maxServed = 32

// handleRequest answers a request of the server: ping and refusals at once, everything else on a goroutine of its
// own. streamID is the id of the request of ours on whose stream it came, 0 if that is not known.
//
// 2025-11-25, Ping: "The receiver MUST respond promptly with an empty response". 2026-07-28: "The client MUST NOT
// send JSON-RPC responses", as its servers must not send requests.
func (s *Session) handleRequest(e *jsonrpc.Envelope, streamID int64) {
	if !e.HasUsableID() {
		s.countNoise(e.RawID)
		return
	}
	if s.isModern() {
		s.counts.refused.Add(1)
		return
	}
	id, method := string(e.RawID), string(e.Method)
	if method == "ping" {
		s.postMessage(transports.Message{Body: jsonrpc.AppendAnswer(nil, id, []byte(`{}`), nil)}, false)
		return
	}
	handle := s.cfg.Handlers.findHandler(method)
	if handle == nil {
		s.counts.refused.Add(1)
		s.postMessage(transports.Message{Body: jsonrpc.AppendAnswer(nil, id, nil, methodNotFound)}, false)
		return
	}
	ctx, origin, refused := s.trackServerRequest(id, method, streamID, e.Params)
	if refused != nil {
		s.counts.refused.Add(1)
		s.postMessage(transports.Message{Body: jsonrpc.AppendAnswer(nil, id, nil, refused)}, false)
		return
	}
	params := append([]byte(nil), e.Params...) // without the copy the whole body would live as long as the handler
	// 2025-11-25, Tasks: "Receivers that do not declare the task capability for a request type MUST process requests of that type normally,
	// ignoring any task-augmentation metadata if present." It is not declared, and one to whom the question is passed on may take it up.
	params = rawjson.Without(params, "task")
	finish := sync.OnceFunc(func() { s.finishServerRequest(id) })
	if !s.spawn(func() {
		defer finish() // also if the handler panics
		result, refused := s.runHandlerPaused(ctx, origin, handle, params)
		if refused == nil {
			result = tasks.WithRelatedTask(result, params)
		}
		// A question whose call has ended gets an error; one that the server cancelled, or whose session has ended,
		// gets no answer.
		callEnded := context.Cause(ctx) == errCallEnded //nolint:errorlint // it is set as it is
		if callEnded {
			result, refused = nil, &jsonrpc.ResponseError{Code: jsonrpc.CodeInternal, Text: errCallEnded.Error()}
		}
		answered := ctx.Err() == nil || callEnded
		// The id is free before the server can have the answer: some servers use it again at once.
		finish()
		if answered && !s.isModern() { // the answer is mandatory in the queue: maxServed bounds how many there are
			s.postMessage(transports.Message{Body: jsonrpc.AppendAnswer(nil, id, result, refused)}, true)
		}
	}) {
		finish() // the session is over, and the goroutine did not start
	}
}

// isModern reports whether the conversation belongs to the modern era, also before the handshake if the era is
// pinned.
func (s *Session) isModern() bool { return s.cfg.Era == messages.EraModern || s.modern.Load() != nil }

// runHandlerPaused runs a handler with the values of its caller's context, and pauses the idle timeout of the
// caller's request meanwhile.
func (s *Session) runHandlerPaused(
	ctx context.Context, origin requestOrigin, handle answerFunc, params []byte,
) ([]byte, *jsonrpc.ResponseError) {
	defer s.pauseTimeout(ctx, origin.timeout)()
	if origin.callerCtx != nil {
		ctx = valuesContext{ctx, origin.callerCtx}
	}
	return handle(ctx, params)
}

// trackServerRequest records that a request is being answered and returns the context for its handler, and the
// request of ours that it belongs to. It refuses one more than maxServed, and one whose id is being answered already.
// roots/list belongs to a caller and to no call, because no person is asked: it is answered also when the call that it came
// with has ended, and pauses nothing.
func (s *Session) trackServerRequest(id, method string, streamID int64, params []byte) (context.Context, requestOrigin, *jsonrpc.ResponseError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, duplicate := s.serverRequests[id]; duplicate {
		return nil, requestOrigin{}, duplicateRequest
	}
	if len(s.serverRequests) >= maxServed {
		return nil, requestOrigin{}, tooManyRequests
	}
	if s.serverRequests == nil {
		s.serverRequests = make(map[string]servedRequest)
	}
	ctx, cancel := context.WithCancelCause(s.lifetime)
	origin := s.originOf(streamID, params)
	if origin.uncertain {
		s.extendIdleTimeouts()
	}
	if method == "roots/list" {
		origin = requestOrigin{callerCtx: origin.callerCtx}
	}
	s.serverRequests[id] = servedRequest{origin, cancel}
	return ctx, origin, nil
}

// finishServerRequest forgets a request of the server after its handler has returned.
func (s *Session) finishServerRequest(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, open := s.serverRequests[id]; open {
		q.cancel(nil)
		delete(s.serverRequests, id)
	}
}

// handleCancelled acts on the server's cancellation of a request of its own: it ends the handler's context. In the
// modern era the same notification ends a subscription of ours.
//
// 2025-11-25, Cancellation: "Receivers of cancellation notifications SHOULD: Stop processing the cancelled request …
// Not send a response for the cancelled request".
func (s *Session) handleCancelled(params []byte) {
	requestID := rawjson.Member(params, "requestId")
	if s.modern.Load() != nil {
		s.handleStreamTornDown(requestID)
		return
	}
	s.mu.Lock()
	q, open := s.serverRequests[string(requestID)]
	s.mu.Unlock()
	if open {
		q.cancel(nil)
	}
}

// RootsChanged tells the server that the list of roots has changed. It does nothing in the modern era, where a server
// asks anew with each call, and if no roots were announced. The notification is dropped if the queue to the server is
// full.
//
// 2025-11-25: "When roots change, clients that support listChanged MUST send a notification".
func (s *Session) RootsChanged() {
	if s.Era() != "legacy" || s.cfg.Handlers.Roots == nil {
		return
	}
	const method = "notifications/roots/list_changed"
	s.postMessage(transports.Message{Method: method, Body: []byte(`{"jsonrpc":"2.0","method":"` + method + `"}`)}, false)
}
