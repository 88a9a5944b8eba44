package serve

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// A Service answers what agents ask. Its methods are called concurrently.
type Service interface {
	// Describe says what the service is for a session: for the answers to initialize and server/discover.
	Describe(s *Session) (Description, *Error)
	// Handle answers a request with a result, a JSON object, or with an error. ctx ends when the agent takes the request back, whose
	// answer is then dropped, and when the endpoint ends. The bytes of the request are valid until Handle returns.
	Handle(ctx context.Context, r *Request) ([]byte, *Error)
	// Notified gets the notifications of an agent that are not about a request.
	Notified(s *Session, method string, params []byte)
	// Closed says that a session of the legacy era, or a connection, has ended; there is one call for each.
	Closed(s *Session)
	// Ready reports whether requests can be served: what /readyz answers.
	Ready() bool
}

// Description is how a service introduces itself. The fields are JSON, but for Instructions.
type Description struct {
	Capabilities, ServerInfo []byte
	Instructions             string
	// CacheHints are members for the answer to server/discover, without braces: ttlMs and cacheScope.
	CacheHints string
}

// Principal is in whose name an agent asks: everything that is kept is kept apart by its name.
type Principal struct {
	Name string
	// View names the view that the credential of the agent is bound to; empty for none. No path leads out of it.
	View string
	// MaxSessions and MaxRequests bound this principal; 0 leaves those of Options.
	MaxSessions, MaxRequests int

	// credential is the token, or the lines, with which the agent has come; nil if there was none.
	credential *credential
}

// isSame reports whether requests of two principals may share a session: they must have come by one credential.
func (p Principal) isSame(q Principal) bool {
	return p.Name == q.Name && p.View == q.View && p.credential == q.credential
}

// credential is one token while it is known.
type credential struct {
	// known ends when the token is none any more, and with it everything that was begun by it.
	known  context.Context //nolint:containedctx // it is that of the token
	forget context.CancelFunc
	// person ends when the last token of the principal is gone; nil for lines, which say nothing of those that come later.
	person context.Context //nolint:containedctx // it is that of the principal's tokens
}

// AfterEnd calls f on a goroutine of its own once nobody can come as this principal with the same credential any more: the token was taken
// away, or the lines have ended. stop prevents it, as that of context.AfterFunc does.
func (p Principal) AfterEnd(f func()) (stop func() bool) {
	if p.credential == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(p.credential.known, f)
}

// AfterWithdrawal calls f on a goroutine of its own once the principal has no token any more: one that takes the place of another keeps
// what was begun with that. stop prevents it.
func (p Principal) AfterWithdrawal(f func()) (stop func() bool) {
	if p.credential == nil || p.credential.person == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(p.credential.person, f)
}

// A Request is one request of an agent.
type Request struct {
	Session *Session
	Method  string
	// ID is the agent's id as it wrote it. Params is an object, or nil; Meta is its member _meta, or nil.
	ID, Params, Meta []byte
	// Header are the headers of the request; nil on lines.
	Header http.Header
	// Capabilities is what the agent can be asked, an object: in the modern era each request says it by itself.
	Capabilities []byte
	// LogLevel is the level that a request of the modern era asks for; empty if it asks for no messages.
	LogLevel string

	stream stream
	load   *load // of its principal; nil on lines
	cancel context.CancelFunc
	ended  atomic.Bool
	// cancelled is true once the agent has taken the request back by a notification: it gets no answer any more.
	cancelled atomic.Bool
	// closing is closed when the endpoint ends.
	closing <-chan struct{}
	// holding is what AfterAnswer was given.
	holding Holding
}

// Modern reports whether the request is one of the modern era.
func (r *Request) Modern() bool { return r.Session.Modern }

// Closing is closed when the endpoint ends: a request that waits for nothing else, such as subscriptions/listen, should be
// answered then.
func (r *Request) Closing() <-chan struct{} { return r.closing }

// Notify sends a notification on the stream of the request. It never blocks: if the agent does not read, it is dropped. After the
// answer it does nothing.
func (r *Request) Notify(method string, params []byte) {
	if !r.ended.Load() {
		r.stream.sendMessage(appendNotification(nil, method, params), false)
	}
}

// Ended reports whether the request has its answer.
func (r *Request) Ended() bool { return r.ended.Load() }

// Ask asks the agent a question on the stream of the request, and waits for its answer: a result, or the error that the agent
// gave. It works in the legacy era only; in the modern era a question is an answer.
func (r *Request) Ask(ctx context.Context, method string, params []byte) ([]byte, *Error) {
	if r.Modern() {
		return nil, &Error{Code: CodeInternal, Message: "an agent of the modern era cannot be asked"}
	}
	return r.Session.askAgent(ctx, r.stream, method, params)
}

// Error is the error of a request, as JSON-RPC has it.
type Error struct {
	Code    int
	Message string
	// Data is JSON, or nil.
	Data []byte
	// Raw, if set, is the whole object, which is sent in the place of the other fields.
	Raw []byte
	// status is the status over HTTP, if it is not that of the code.
	status int
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// The codes of errors.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	// CodeSessionNotFound is what servers answer beside the status 404; the specification gives no code.
	CodeSessionNotFound = -32001
	// CodeBusy refuses what exceeds a bound.
	CodeBusy = -32000
)

// MethodNotFound is the error of a method that the service does not have.
func MethodNotFound(method string) *Error {
	return &Error{Code: CodeMethodNotFound, Message: "Method not found: " + messages.Line(method, 200)}
}

// InvalidParams is the error of a request whose params cannot be used.
func InvalidParams(text string) *Error { return &Error{Code: CodeInvalidParams, Message: text} }

// errorCode returns the code of an error, also of one that is passed on as it came.
func (e *Error) errorCode() int {
	if e.Raw == nil {
		return e.Code
	}
	code := 0
	for _, c := range rawjson.Member(e.Raw, "code") {
		switch {
		case c >= '0' && c <= '9' && code < 1<<24:
			code = code*10 + int(c-'0')
		case c != '-':
			return 0
		}
	}
	return -code // all codes of the protocol are negative
}

// httpStatus is the status of an answer over HTTP.
//
// 2026-07-28: "the server MUST return 400 Bad Request" for HeaderMismatch, MissingRequiredClientCapability and
// UnsupportedProtocolVersion, and 404 for a method that it does not have.
func (e *Error) httpStatus(modern bool) int {
	switch {
	case e == nil:
		return http.StatusOK
	case e.status != 0:
		return e.status
	case !modern:
		return http.StatusOK
	}
	switch e.errorCode() {
	case CodeHeaderMismatch, CodeMissingCapability, CodeUnsupportedVersion:
		return http.StatusBadRequest
	case CodeMethodNotFound:
		return http.StatusNotFound
	}
	return http.StatusOK
}
