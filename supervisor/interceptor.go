package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Interceptor runs around each tool call and each read, like gRPC's unary client interceptors: it calls next, and returns what next
// returned, or something else. It runs in the goroutine of the caller, concurrently for different callers, and ctx is the caller's,
// with what WithCaller and AskedBy put into it.
//
//	func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
//		began := time.Now()
//		res, err := next(ctx, r)
//		log.Println(r.Method, res.Server, time.Since(began), err)
//		return res, err
//	}
//
// It stands inside the audit log and outside of everything else. So the audit log records how a request ended for the caller, with the
// arguments that were sent; rules, questions and Config.Allow judge what the interceptor made of the request; results have passed
// Config.Sanitize; and the time around next holds all waiting: for a person, for a connection, for a slot.
//
// An interceptor may send another request than it was given, refuse by an error without calling next, answer by itself, or call next
// again when it has returned. It must not call next at the same time as itself, nor return before next has. Calling next a second time
// sends a second time, also what may have run already: the promise that nothing is repeated then is the interceptor's to keep.
//
// An error of its own ends the request denied (ErrDenied), and not sent if next was not called. Otherwise the outcome is the one that
// next had: unknown for a request that was answered, because the tool ran and the caller does not get its result. errors.Is finds
// the error itself. A panic is such an error, and is logged. One that does not return holds up its own caller, beyond the caller's time:
// what it waits for must end with ctx.
type Interceptor func(ctx context.Context, r *Request, next Invoker) (*Response, error)

// Invoker sends a request: through the interceptors that follow, and then to its server. The error is an *Error with an Outcome, if
// no interceptor that follows has one of its own. With an error the Response is never nil.
type Invoker func(ctx context.Context, r *Request) (*Response, error)

// Request is a tool call or a read, as an Interceptor sees it.
type Request struct {
	// Method is that of the protocol: tools/call, resources/read, prompts/get, completion/complete, the lists of resources,
	// templates and prompts, subscriptions, ping, and those of tasks. Changing it has no effect.
	Method string
	// Server is the server's id, Name the tool's or prompt's own name, the URI of a resource or the id of a task. Where Server is
	// empty, the caller gave none: Name is then a qualified name, or a URI whose server is to be found. Changing them counts for
	// tools/call, resources/read and prompts/get.
	Server, Name string
	// Arguments are those of a call or a prompt, a JSON object or nothing. They must not be changed in place; other ones count for
	// tools/call.
	Arguments json.RawMessage
	// Meta has the members for the request's _meta, a JSON object: the caller's WithMeta, or nothing. Other ones, such as a trace
	// context, count for tools/call, resources/read and prompts/get.
	Meta json.RawMessage
}

// Response is the answer to a Request.
type Response struct {
	// Server and Name say what was found: the id of the server that got the request, and the name there.
	Server, Name string
	// Result is the result object of tools/call, resources/read, prompts/get and tasks/result: an Interceptor may replace it by another
	// JSON object. The other methods have none, and an Interceptor that does not call next for them must return an error.
	Result json.RawMessage
	// IsError says of a tool's result that the tool itself failed.
	IsError bool
}

// intercept is the Around of the link of the program's interceptors. Requests and responses pass by their addresses, so that a call
// with one interceptor fits into the stack of one without: see test/bench/supervision.
func (m *Manager) intercept(next actors.Handler) actors.Handler {
	interceptors := m.cfg.Interceptors
	return func(ctx context.Context, r *actors.Request) error {
		c := &interception{interceptors: interceptors, next: next, request: r}
		res, err := m.callInterceptor(ctx, c)
		return c.finish(res, err)
	}
}

// callInterceptor calls the first interceptor, which calls the others. A panic of one is an error of it.
func (m *Manager) callInterceptor(ctx context.Context, c *interception) (res *Response, err error) {
	defer func() {
		if r := recover(); r != nil {
			m.cfg.Logger.Error("an interceptor panicked", zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
			res, err = nil, fmt.Errorf("an interceptor panicked: %v", r)
		}
	}()
	return c.interceptors[0](ctx, c.describe(), c.invoker(1))
}

// interception is one request on its way through the interceptors. The request itself stays as it is until the first of them has
// returned; each call of next sends a copy, so that one that goes on too long changes nothing of what the caller gets.
type interception struct {
	interceptors []Interceptor
	next         actors.Handler
	request      *actors.Request
	// asked is what the first interceptor gets. one is what the first call of next needs, and nearly always the only one: so a call
	// costs one allocation here and not four.
	asked Request
	one   sending

	// mu guards oneUsed, sent, the copy that has ended last, its error, and the attempts of all copies.
	mu       sync.Mutex
	oneUsed  bool
	sent     *actors.Request
	err      error
	attempts int
}

// sending is what one call of next sends, and what it returns.
type sending struct {
	request  actors.Request
	response Response
}

// takeSending returns room for a call of next.
func (c *interception) takeSending() *sending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.oneUsed {
		return &sending{}
	}
	c.oneUsed = true
	return &c.one
}

// describe returns the request as the first interceptor gets it.
func (c *interception) describe() *Request {
	r, q := c.request, &c.asked
	q.Method, q.Server, q.Name, q.Arguments = r.Method, r.Server, r.Name, r.Args
	if r.Options != nil {
		q.Meta = r.Options.Meta
	}
	if len(r.PromptArgs) > 0 {
		q.Arguments, _ = json.Marshal(r.PromptArgs) // texts can always be written
	}
	return q
}

// invoker returns what the interceptor before number i calls.
func (c *interception) invoker(i int) Invoker {
	return func(ctx context.Context, q *Request) (*Response, error) {
		if i == len(c.interceptors) {
			return c.send(ctx, q)
		}
		res, err := c.interceptors[i](ctx, q, c.invoker(i+1))
		if res == nil && err != nil {
			res = &Response{Server: q.Server, Name: q.Name}
		}
		return res, err
	}
}

// send sends what the last interceptor has made of the request.
func (c *interception) send(ctx context.Context, q *Request) (*Response, error) {
	s := c.takeSending()
	r := &s.request
	c.copyInto(r, q)
	err := c.next(ctx, r)
	c.mu.Lock()
	c.sent, c.err, c.attempts = r, err, c.attempts+r.Trace.Attempts
	c.mu.Unlock()
	s.response = Response{Server: r.Server, Name: r.Name, Result: r.Result, IsError: r.Answer.IsError}
	return &s.response, err
}

// copyInto makes r a copy of the request with the changes that count.
func (c *interception) copyInto(r *actors.Request, q *Request) {
	*r = *c.request
	switch r.Method {
	case actors.CallTool:
		r.Args = q.Arguments
		fallthrough
	case actors.ReadResource, actors.GetPrompt:
		r.Server, r.Name = q.Server, q.Name
		if r.Options != nil || len(q.Meta) > 0 {
			o := session.Options{}
			if r.Options != nil {
				o = *r.Options
			}
			o.Meta = q.Meta
			r.Options = &o
		}
	}
}

// finish puts into the request what the caller gets, and what the audit log records.
func (c *interception) finish(res *Response, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.request
	if c.sent != nil {
		r.Server, r.Name, r.Args, r.Entry, r.Answer, r.Trace = c.sent.Server, c.sent.Name, c.sent.Args, c.sent.Entry, c.sent.Answer, c.sent.Trace
		r.Trace.Attempts = c.attempts
	}
	switch {
	case err != nil:
		return c.outcomeError(err)
	case res == nil:
		return c.outcomeError(errors.New("an interceptor returned neither a response nor an error"))
	case c.sent == nil && !hasResult(r.Method):
		return c.outcomeError(errors.New("an interceptor answered " + r.Method + " by itself"))
	// The server's own answer was read when it came; a whole object costs a look at every byte.
	case hasResult(r.Method) && (c.sent == nil || !isSame(res.Result, c.sent.Result)) && !isObject(res.Result):
		return c.outcomeError(errors.New("an interceptor returned a result that is no JSON object"))
	}
	r.Result, r.Answer.IsError = res.Result, res.IsError
	return nil
}

// isSame reports whether two results are the same bytes in memory.
func isSame(a, b json.RawMessage) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// outcomeError returns an error of next as it came, also out of one that wraps it. Any other is the interceptor's own; it may hold
// another request's, whose outcome says nothing of this one.
func (c *interception) outcomeError(err error) error {
	err = refusal.Readable(err)
	outcome := messages.OutcomeNotSent
	switch {
	case c.err != nil && errors.Is(err, c.err):
		return c.err
	case c.err != nil:
		outcome = messages.OutcomeOf(c.err)
	case c.sent != nil:
		outcome = messages.OutcomeUnknown
	}
	r, tool := c.request, ""
	if r.Method == actors.CallTool {
		tool = r.Name
	}
	return refusal.InterceptorError(r.Operation(), r.Server, tool, outcome, err)
}

// hasResult reports whether the answer to a method is a result object.
func hasResult(method string) bool {
	switch method {
	case actors.CallTool, actors.ReadResource, actors.GetPrompt, actors.TaskResult:
		return true
	}
	return false
}
