package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Interceptor runs around each tool call and each read, like gRPC's unary client interceptors: it calls next, and returns what next
// returned, or something else. It runs in a goroutine that is not the caller's, concurrently for different callers, and ctx is the
// caller's, with what WithCaller and AskedBy put into it.
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
// sends a second time, also what may have run already: the promise that nothing is repeated then is the interceptor's to keep. If one of
// several may have run, the request is not reported as not sent.
//
// An error of its own ends the request denied (ErrDenied), and not sent if next was not called. Otherwise the outcome is the one that
// next had: unknown for a request that was answered, because the tool ran and the caller does not get its result. errors.Is finds
// the error itself. A panic, and a runtime.Goexit, is such an error; a panic is logged.
//
// One that does not return holds its caller at most 0.1 s beyond the end of ctx, or of the manager. The request ends not sent if next was
// not called, with the error of next if that has returned with one, and otherwise unknown; a next that is called afterwards sends
// nothing, and returns an error. The goroutine is left behind and ends with the interceptor. The log names it if it has not ended a
// second later. While 256 are left for a server, requests to that server are not sent (messages.ClassExhausted).
// Those that run then are let run, so that a burst of calls may leave as many more as it has.
//
// With Config.InlineInterceptors it runs in the caller's goroutine instead. A call is cheaper then by the two times that the goroutines
// change, and one that does not return holds its caller until it does.
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

// intercept is the around of the link of the program's interceptors. They run in a goroutine of their own, so that one that does not
// return holds its caller no longer than the caller wants to wait.
func (m *Manager) intercept(next actors.Handler) actors.Handler {
	return func(ctx context.Context, r *actors.Request) error {
		if m.hooks.HasLeft() {
			if err := m.hooks.Begin(m.interceptorCall(r, m.shared.Catalog.Snapshot())); err != nil {
				return err
			}
		}
		c := m.newInterception(next, r)
		shared := c.shared
		m.hooks.Start(func() {
			hooks.SetLabels(ctx)
			c.run(ctx)
		})
		select {
		case <-shared.ended:
			return c.finish()
		case <-ctx.Done():
		case <-m.closed:
		}
		// Interceptors end with ctx, mostly, and know better than anybody what became of the request.
		timer := time.NewTimer(interceptorGrace)
		defer timer.Stop()
		select {
		case <-shared.ended:
			return c.finish()
		case <-timer.C:
			return c.leave(ctx)
		}
	}
}

// interceptInline is intercept for a program whose interceptors return: they run in the goroutine of their caller.
func (m *Manager) interceptInline(next actors.Handler) actors.Handler {
	return func(ctx context.Context, r *actors.Request) (err error) {
		c := m.newInterception(next, r)
		// Deferred, so that the request says what became of it also where an interceptor ends the goroutine.
		defer func() {
			<-c.shared.ended
			err = c.finish()
		}()
		c.run(ctx)
		return nil
	}
}

// newInterception begins the way of a request through the interceptors.
func (m *Manager) newInterception(next actors.Handler, r *actors.Request) *interception {
	shared, _ := m.interceptorRuns.Get().(*interceptorRun)
	if shared == nil {
		shared = &interceptorRun{ended: make(chan struct{}, 1)}
	}
	c := &interception{manager: m, next: next, request: r, shared: shared, known: m.shared.Catalog.Snapshot()}
	c.describe()
	return c
}

// interceptorGrace is how long interceptors may take to return after the end of ctx, or of the manager.
const interceptorGrace = 100 * time.Millisecond

// interceptorsName names the interceptors where a function of the program is named.
const interceptorsName = "Config.Interceptors"

// interceptorRun holds the parts of an interception that a pool lends to one call after another: the signal that the interceptors have
// ended, and the request that their first call of next sends. An interceptor sees neither, so it cannot have kept them.
type interceptorRun struct {
	ended   chan struct{}
	request actors.Request
}

// interception is one request on its way through the interceptors. The request itself stays as it is until the first of them has
// returned; each call of next sends a copy, so that one that goes on too long changes nothing of what the caller gets.
type interception struct {
	manager *Manager
	next    actors.Handler
	request *actors.Request
	shared  *interceptorRun
	// known are the tools when the request came: when it ends, the manager may be closed and know none.
	known *Snapshot
	hook  hooks.Run
	// The first interceptor gets asked, and the first call of next fills in first. Both stand here because each would else be allocated.
	asked Request
	first Response

	// mu guards what follows. over says that the caller waits no more: nothing may be sent any more. calls and running count the calls of
	// next, and those that have not returned. sent is the copy that has ended last, with its error, and mayHaveRun says that one of them
	// may have run; attempts are those of all copies.
	mu             sync.Mutex
	over           bool
	mayHaveRun     bool
	calls, running int
	sent           *actors.Request
	sentErr        error
	attempts       int
	// The goroutine that runs the interceptors sets response and err when the first interceptor returns.
	response *Response
	err      error
}

// run calls the first interceptor, which calls the others. A panic of one is an error of it.
func (c *interception) run(ctx context.Context) {
	hasReturned := false
	var res *Response
	var err error
	defer func() {
		if panicked := recover(); !hasReturned {
			res, err = nil, fmt.Errorf("an interceptor %w", c.manager.hooks.Broke(
				hooks.Call{Function: interceptorsName, Server: c.asked.Server, Tool: c.asked.Name}, panicked))
		}
		c.mu.Lock()
		if !c.over {
			c.response, c.err = res, err
			c.shared.ended <- struct{}{} // it has room
		}
		c.mu.Unlock()
		c.manager.hooks.Return(&c.hook)
	}()
	res, err = c.manager.cfg.Interceptors[0](ctx, &c.asked, c.invoker(1))
	hasReturned = true
}

// describeCall says about what a function of the program runs, for errors, for the log, and for the bound of each server. A tool call by a
// qualified name is looked up among the tools that are known.
func (m *Manager) describeCall(r *actors.Request, known *Snapshot) hooks.Call {
	call := hooks.Call{Op: r.Operation(), Server: r.Server}
	if r.Method != actors.CallTool {
		return call
	}
	if call.Tool = r.Name; call.Server == "" {
		if e, ok := known.Lookup(r.Name); ok {
			call.Server, call.Tool = e.Tool.Server, e.Tool.Name
		} else if server, tool := m.resolveToolName(r.Name); server != "" {
			call.Server, call.Tool = server, cmp.Or(tool, r.Name)
		} else if server, tool, plain := m.cfg.Naming.Split(r.Name); plain && m.closing.Load() {
			// A manager that closes has no server to compare the name with.
			call.Server, call.Tool = server, tool
		}
	}
	return call
}

// interceptorCall describes a run of the interceptors.
func (m *Manager) interceptorCall(r *actors.Request, known *Snapshot) hooks.Call {
	call := m.describeCall(r, known)
	call.Function = interceptorsName
	return call
}

// describe sets the request as the first interceptor gets it.
func (c *interception) describe() {
	r, q := c.request, &c.asked
	q.Method, q.Server, q.Name, q.Arguments = r.Method, r.Server, r.Name, r.Args
	if r.Options != nil {
		q.Meta = r.Options.Meta
	}
	if len(r.PromptArgs) > 0 {
		q.Arguments, _ = json.Marshal(r.PromptArgs) // texts can always be written
	}
}

// invoker returns what the interceptor before number i calls.
func (c *interception) invoker(i int) Invoker {
	return func(ctx context.Context, q *Request) (*Response, error) {
		switch {
		case ctx == nil:
			return &Response{}, c.incompleteNext("context")
		case q == nil:
			return &Response{}, c.incompleteNext("request")
		case q.Name == "" && c.request.Name != "":
			return &Response{}, c.incompleteNext("name in its request")
		}
		interceptors := c.manager.cfg.Interceptors
		if i == len(interceptors) {
			return c.send(ctx, q)
		}
		res, err := interceptors[i](ctx, q, c.invoker(i+1))
		if res == nil && err != nil {
			res = &Response{Server: q.Server, Name: q.Name}
		}
		return res, err
	}
}

// incompleteNext is the error of an interceptor's next that got no context, no request or one without its name: nothing was sent.
func (c *interception) incompleteNext(missing string) error {
	return &Error{Op: c.request.Operation(), Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
		Text: "an interceptor called next without a " + missing, Fix: "pass next what the interceptor was given, or a change of it"}
}

// send sends what the last interceptor has made of the request.
func (c *interception) send(ctx context.Context, q *Request) (*Response, error) {
	r, res, err := c.beginSend(q)
	if err != nil {
		return res, err
	}
	hasReturned := false
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		c.mayHaveRun = c.mayHaveRun || !hasReturned || err == nil || messages.OutcomeOf(err) == messages.OutcomeUnknown
		if hasReturned {
			c.sent, c.sentErr, c.attempts = r, err, c.attempts+r.Trace.Attempts
		}
	}()
	err = c.next(ctx, r)
	hasReturned = true
	*res = Response{Server: r.Server, Name: r.Name, Result: r.Result, IsError: r.Answer.IsError}
	return res, err
}

// beginSend returns the request that a call of next sends, and room for what it returns. It refuses a call whose caller waits no more:
// that one has been told what became of the request.
func (c *interception) beginSend(q *Request) (*actors.Request, *Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, &Response{Server: q.Server, Name: q.Name}, &Error{Op: actors.OperationOf(q.Method), Outcome: messages.OutcomeNotSent,
			Class: messages.ClassCanceled, Server: q.Server, Text: "an interceptor called next after the end of its request"}
	}
	r, res := &c.shared.request, &c.first
	if c.calls > 0 {
		r, res = new(actors.Request), new(Response)
	}
	c.calls++
	c.running++
	c.copyInto(r, q)
	return r, res, nil
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
func (c *interception) finish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takeSent()
	err := c.judge(c.response, c.err)
	// What a call of next still uses, against the rule, is left to it.
	if c.running == 0 {
		c.shared.request = actors.Request{}
		c.manager.interceptorRuns.Put(c.shared)
	}
	return err
}

// takeSent ends the interception: it puts into the request what became of the copy that has ended last.
func (c *interception) takeSent() {
	c.over = true
	if r := c.request; c.sent != nil {
		r.Server, r.Name, r.Args, r.Entry, r.Answer, r.Trace = c.sent.Server, c.sent.Name, c.sent.Args, c.sent.Entry, c.sent.Answer, c.sent.Trace
		r.Trace.Attempts = c.attempts
	}
}

// judge returns the error of a request whose interceptors have returned, and sets its result where there is none.
func (c *interception) judge(res *Response, err error) error {
	r := c.request
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

// leave ends a request whose interceptors have not returned in time. Their goroutine is left behind: it sends nothing any more.
func (c *interception) leave(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	// They may have returned just now.
	select {
	case <-c.shared.ended:
		c.takeSent()
		return c.judge(c.response, c.err)
	default:
	}
	call := c.manager.interceptorCall(c.request, c.known)
	c.takeSent()
	c.manager.hooks.Leave(&c.hook, call)
	if c.running == 0 && c.sentErr != nil {
		return c.withOutcome(c.sentErr)
	}
	e := &Error{Op: c.request.Operation(), Outcome: messages.OutcomeUnknown, Class: messages.ClassCanceled, Server: call.Server, Tool: call.Tool,
		Fix: "make each interceptor return when its ctx ends", Err: messages.ErrClosed}
	ended := "the manager closed"
	if err := ctx.Err(); err != nil {
		e.Class, e.Err, ended = messages.ClassOf(err), err, "the context ended"
	}
	switch {
	case c.running > 0:
		e.Text = ended + " while an interceptor waited for its answer"
	case c.mayHaveRun:
		e.Text = ended + ", and an interceptor had not returned after it was answered"
	default:
		e.Outcome, e.Text = messages.OutcomeNotSent, ended+" before an interceptor had sent it"
	}
	return e
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
	case c.sentErr != nil && errors.Is(err, c.sentErr):
		return c.withOutcome(c.sentErr)
	case c.mayHaveRun || c.running > 0:
		outcome = messages.OutcomeUnknown
	case c.sentErr != nil:
		outcome = messages.OutcomeOf(c.sentErr)
	}
	call := c.manager.interceptorCall(c.request, c.known)
	return refusal.InterceptorError(c.request.Operation(), call.Server, call.Tool, outcome, err)
}

// withOutcome returns an error of the last call of next. It says nothing of an earlier call, which may have run.
func (c *interception) withOutcome(err error) error {
	var e *Error
	if !c.mayHaveRun && c.running == 0 || !errors.As(err, &e) || e.Outcome == messages.OutcomeUnknown {
		return err
	}
	unknown := *e
	unknown.Outcome, unknown.Text = messages.OutcomeUnknown, e.Text+"; an interceptor had sent the request before, and that may have run"
	return &unknown
}

// hasResult reports whether the answer to a method is a result object.
func hasResult(method string) bool {
	switch method {
	case actors.CallTool, actors.ReadResource, actors.GetPrompt, actors.TaskResult:
		return true
	}
	return false
}
