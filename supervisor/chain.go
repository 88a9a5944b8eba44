package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// links is the way of every request of a caller, tool calls and reads alike: the list, from the caller to the server.
// newCalls composes it once, with compose; a link of an option that is not used is left out, and costs nothing. The end of the
// chain is actors.Calls.Send, which passes the admission gate of a connection to its session.
//
// Each row says why it stands where it stands.
func (m *Manager) links(calls *actors.Calls) []chainLink {
	var links []chainLink
	// Outermost: every end is recorded, also that of a request which another link refuses, or in which a function of the program
	// panics; and what is recorded is what the caller gets.
	if m.audit != nil {
		links = append(links, chainLink{name: "record", before: m.audit.Begin, after: m.audit.End})
	}
	// Before all that judges: what the program's interceptors change is judged by the rules, and the time that they measure is the
	// caller's, with every wait.
	if len(m.cfg.Interceptors) > 0 {
		around := m.intercept
		if m.cfg.InlineInterceptors {
			around = m.interceptInline
		}
		links = append(links, chainLink{name: "program", around: around})
	}
	// Outside of all that asks a server: the caller gets nothing that Config.Sanitize has not seen.
	if m.cfg.Sanitize != nil {
		links = append(links, chainLink{name: "sanitize", after: m.sanitize})
	}
	return append(links,
		// Before anything is looked for: a closed manager has no servers, and arguments that cannot be written need none.
		chainLink{name: "admit", before: m.admit, after: m.explainClosed},
		// Every later link needs to know the server, and the tool. A call may wait here until its server has listed its tools.
		// Of a server with share "principal", the request finds the instance of its caller, and uses it to the end.
		chainLink{name: "find", before: m.find, after: m.leaveInstance},
		// The events name what was found, so nothing is published of a name that leads nowhere; what is refused is an event as well.
		chainLink{name: "watch", before: calls.PublishStart, after: calls.PublishEnd},
		// Inside of all that shows an error to someone, outside of all whose errors may quote the server.
		chainLink{name: "explain", after: calls.Explain},
		// Before a lazy server is connected, and before the timeout begins: a person may take long to answer. Once, however often
		// the request is sent.
		chainLink{name: "permit", before: m.permit},
		// What follows runs once for each connection that gets the request: at most twice.
		chainLink{name: "repeat", around: calls.Repeat},
		// Callers take turns at a server with a bound, which is known with the connection. A slot is held for one attempt only.
		chainLink{name: "queue", before: calls.TakeSlot, after: calls.LeaveSlot},
	)
}

// admit refuses a request that cannot be sent, and any request of a manager that closes.
func (m *Manager) admit(_ context.Context, r *actors.Request) error {
	if r.Problem != nil {
		return r.Problem
	}
	if m.closing.Load() {
		return refusal.ClosedError(r.Operation())
	}
	return nil
}

// explainClosed has an admitted request that was not sent, because Close has taken its server away meanwhile, end as one that comes later.
func (m *Manager) explainClosed(_ context.Context, _ *actors.Request, err error) error {
	if err == nil || !m.closing.Load() {
		return err
	}
	var e *Error // declared here, because it costs each call an allocation
	if !errors.Is(err, messages.ErrUnknownServer) && !errors.Is(err, messages.ErrNotConnected) || !errors.As(err, &e) {
		return err
	}
	closed := *e
	closed.Class, closed.Text, closed.Fix, closed.Err = messages.ClassCanceled, "the manager is closed", "", messages.ErrClosed
	return &closed
}

// find finds what the request names. A request that names its server, and no tool, needs no search.
func (m *Manager) find(ctx context.Context, r *actors.Request) (err error) {
	switch {
	case r.Method == actors.CallTool:
		err = m.calls.FindTool(ctx, r)
	case r.Server != "":
	case r.Method == actors.ReadResource:
		r.Server, err = m.findOffering(ctx, r.Name)
	case r.Method == actors.GetPrompt:
		r.Server, r.Name, err = m.findPrompt(ctx, r.Name)
	}
	if err == nil && r.Method != actors.CallTool {
		// A server that no rule lets be read starts no instance.
		if err = m.permit(ctx, r); err == nil {
			err = m.calls.EnterInstance(ctx, r)
		}
	}
	if err != nil {
		return m.leaveInstance(ctx, r, err)
	}
	return nil
}

// leaveInstance ends the request's use of an instance. What it names may not exist: neither for us, nor for the server.
func (m *Manager) leaveInstance(ctx context.Context, r *actors.Request, err error) error {
	r.LeaveInstance()
	if err != nil {
		return m.withNearest(ctx, r, err)
	}
	return nil
}

// permit asks the rules: about a tool, or whether anything of the server may be read.
func (m *Manager) permit(ctx context.Context, r *actors.Request) error {
	switch {
	case r.Entry != nil:
		if err := m.permissions.AllowCall(ctx, r.Entry.Tool, r.Args, &r.Trace); err != nil {
			return err
		}
	case r.SkipsRules:
		return nil
	default:
		if err := m.permissions.CheckRead(r.Server); err != nil {
			return err
		}
	}
	if other := secondJudge(ctx); other != nil && other != m {
		if isHidden(ctx, r.Server) {
			return hiddenError(r.Operation(), r.Server)
		}
		return other.permit(withoutSecondJudge(ctx), r)
	}
	return nil
}

// sanitize lets Config.Sanitize rewrite the result of a tool. The result of a task belongs to a tool whose name is not known.
func (m *Manager) sanitize(ctx context.Context, r *actors.Request, err error) error {
	switch {
	case err != nil:
	case r.Entry != nil:
		return m.callSanitize(ctx, r, r.Entry.Tool)
	case r.Method == actors.TaskResult:
		return m.callSanitize(ctx, r, &Tool{Server: r.Server})
	}
	return err
}

// callSanitize puts into the request what the program's function makes of its result. One that panics, does not return, or returns no
// JSON object, ends the request as unknown: the tool ran, and the caller must not get what was not sanitized.
func (m *Manager) callSanitize(ctx context.Context, r *actors.Request, tool *Tool) error {
	raw := r.Result
	r.Result = nil
	failed := func(class messages.Class, text string, cause error) error {
		return &Error{Op: r.Operation(), Outcome: messages.OutcomeUnknown, Class: class, Server: r.Server, Tool: tool.Name, Text: text, Err: cause}
	}
	// The server's timeout bounds the work on its result once more, where the caller has set no time.
	ctx, cancel := context.WithTimeout(ctx, m.callTime(r.Server))
	defer cancel()
	clean, err := hooks.Do(ctx, m.hooks, m.closed, hooks.Call{Function: "Config.Sanitize", Server: r.Server, Tool: tool.Name},
		func() json.RawMessage { return m.cfg.Sanitize(tool, raw) })
	var broken *hooks.Broken
	var refused *Error
	switch {
	case err == nil && isObject(clean):
		r.Result = clean
		return nil
	case err == nil:
		return failed(messages.ClassInvalid, "Config.Sanitize returned no JSON object", nil)
	case errors.As(err, &broken):
		return failed(messages.ClassPanic, "Config.Sanitize "+broken.Error(), nil)
	case errors.As(err, &refused):
		return failed(refused.Class, "the tool ran, and its result cannot be sanitized: "+refused.Text, nil)
	case errors.Is(err, hooks.ErrOver):
		return failed(messages.ClassCanceled, "the manager closed before Config.Sanitize had returned", messages.ErrClosed)
	}
	return failed(messages.ClassOf(err), "Config.Sanitize did not return in time", err)
}

// callTime returns how long the program's functions may work on what came of a call: as long as the server for the call itself.
func (m *Manager) callTime(server string) time.Duration {
	if cell := m.shared.CellOf(server); cell != nil && cell.View().Spec.CallTimeout > 0 {
		return time.Duration(cell.View().Spec.CallTimeout)
	}
	return actors.DefaultCallTimeout
}

// isObject reports whether what a function of the program returned is one whole JSON object.
func isObject(b json.RawMessage) bool {
	return rawjson.IsObject(bytes.TrimLeft(b, " \t\r\n")) && rawjson.Valid(b)
}

// A chainLink is one link of the chain that every request passes: a pair of functions that are called before and after all that
// follows, or one function around it. compose makes one Handler of a list of them.
//
// A pair is for what every call passes, because neighbouring pairs have one frame on the stack together, and none while the
// request waits; an around is for what must decide how often, or in which goroutine, the rest runs.
type chainLink struct {
	// name is for readers of the list.
	name string
	// before is called on the way in; nil does nothing. Its error ends the request: nothing that follows is called, nor its own after.
	before func(ctx context.Context, r *actors.Request) error
	// after is called on the way out with the error that the request has so far, and returns the one that the caller gets; nil
	// changes nothing. It is called as well if a function of the program panics; the panic goes on afterwards.
	after func(ctx context.Context, r *actors.Request, err error) error
	// around returns a Handler that calls next, or does not. A link with an around has neither before nor after.
	around func(next actors.Handler) actors.Handler
}

// compose returns last with the links around it, the first one outermost. A manager composes its chain once: a link that it does
// not need is not in the list, and costs nothing.
func compose(links []chainLink, last actors.Handler) actors.Handler {
	next := last
	for end := len(links); end > 0; {
		if around := links[end-1].around; around != nil {
			next, end = around(next), end-1
			continue
		}
		begin := end - 1
		for begin > 0 && links[begin-1].around == nil {
			begin--
		}
		next, end = handlePairs(links[begin:end], next), begin
	}
	return next
}

// handlePairs returns one Handler for neighbouring pairs. It is a single function with a loop, because a function for each pair
// would keep its frame on the stack of every call that waits: see test/bench/supervision.
func handlePairs(pairs []chainLink, next actors.Handler) actors.Handler {
	return func(ctx context.Context, r *actors.Request) (err error) {
		entered, returned := 0, false
		defer func() {
			if !returned {
				err = panickedError(r)
			}
			for entered > 0 {
				entered--
				if after := pairs[entered].after; after != nil {
					err = after(ctx, r, err)
				}
			}
		}()
		for ; entered < len(pairs); entered++ {
			if before := pairs[entered].before; before != nil {
				if err = before(ctx, r); err != nil {
					returned = true
					return err
				}
			}
		}
		err = next(ctx, r)
		returned = true
		return err
	}
}

// panickedError returns the error that the links before a program's function get when that function panics, so that the record and
// the watchers have an end of the request. The panic itself goes on to the caller.
func panickedError(r *actors.Request) error {
	return &messages.Error{Op: r.Operation(), Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a function of the program panicked"}
}
