package session

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/lists"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/subscriptions"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/tasks"
)

// conversation is the session as its parts see it: the lists, the streams and the tasks, which each name in an interface what
// they need. It is a type of its own so that its methods are not part of the session's API.
type conversation Session

var (
	_ lists.Conversation         = (*conversation)(nil)
	_ subscriptions.Conversation = (*conversation)(nil)
	_ tasks.Conversation         = (*conversation)(nil)
)

// RequestPage sends one request for a page of a list and returns its result object.
func (k *conversation) RequestPage(ctx context.Context, method string, params []byte) ([]byte, *messages.Error) {
	return (*Session)(k).requestResult(ctx, "read", request{method: method, fields: params})
}

// Listen sends one request subscriptions/listen. It has no caller's context: the request must not end with the caller that
// opened the stream.
func (k *conversation) Listen(ctx context.Context, filter *subscriptions.Filter, begin func(id int64)) *messages.Error {
	s := (*Session)(k)
	f, e := s.registerRequest(context.Background(), nil, false)
	if e != nil {
		return e
	}
	s.mu.Lock()
	f.longLived = true
	s.mu.Unlock()
	begin(f.id)
	// Streams exist in the modern era only, so m is not nil.
	m := s.modern.Load()
	r := request{method: "subscriptions/listen", fields: filter.AppendParams(nil)}
	f.body = r.appendTo(f.body, f.id, m, nil)
	a, e := s.exchangeMessage(ctx, f, &transports.Message{ID: f.id, Method: r.method, Body: f.body, Version: m.version, Caller: s.caller})
	if e == nil {
		e = a.AsError(r.method)
	}
	return e
}

// Spawn runs f on a goroutine of the session.
func (k *conversation) Spawn(f func()) bool { return (*Session)(k).spawn(f) }

// Lifetime returns the context that ends with the session.
func (k *conversation) Lifetime() context.Context { return k.lifetime }

// EndedError returns the reason of the session's end.
func (k *conversation) EndedError(op string) *messages.Error { return (*Session)(k).endedError(op) }

// Rand draws a number in [0,1).
func (k *conversation) Rand() float64 { return k.cfg.Rand() }

// PerformTaskRequest sends a request about a task and sees it through.
func (k *conversation) PerformTaskRequest(ctx context.Context, method, id string, params []byte) (outcome.Answer, *messages.Error) {
	return (*Session)(k).performRequest(ctx, &request{method: method, name: id, fields: params})
}

// AnswerInputRequests has the handlers answer the questions of a server.
func (k *conversation) AnswerInputRequests(ctx context.Context, b, inputRequests []byte) (_ []byte, problem string) {
	return (*Session)(k).answerInputRequests(ctx, b, inputRequests)
}

// Protect runs f, whose panic ends the session.
func (k *conversation) Protect(f func()) {
	defer (*Session)(k).recoverPanic()
	f()
}

// Dead returns the channel that is closed when the session has ended.
func (k *conversation) Dead() <-chan struct{} { return k.dead }
