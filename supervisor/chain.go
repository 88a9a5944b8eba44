package supervisor

import (
	"context"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// links is the way of every request of a caller, tool calls and reads alike: the list, from the caller to the server.
// newCalls composes it once, with [actors.Compose]; a link of an option that is not used is left out, and costs nothing. The end of the
// chain is actors.Calls.Send, which passes the admission gate of a connection to its session.
//
// Each row says why it stands where it stands.
func (m *Manager) links(calls *actors.Calls) []actors.Interceptor {
	var links []actors.Interceptor
	// Outermost: every end is recorded, also that of a request which another link refuses, or in which a function of the program
	// panics; and what is recorded is what the caller gets.
	if m.audit != nil {
		links = append(links, actors.Interceptor{Name: "record", Before: m.audit.Begin, After: m.audit.End})
	}
	// Before all that judges: what the program's interceptors change is judged by the rules, and the time that they measure is the
	// caller's, with every wait.
	if len(m.cfg.Interceptors) > 0 {
		links = append(links, actors.Interceptor{Name: "program", Around: m.intercept})
	}
	// Outside of all that asks a server: the caller gets nothing that Config.Sanitize has not seen.
	if m.cfg.Sanitize != nil {
		links = append(links, actors.Interceptor{Name: "sanitize", After: m.sanitize})
	}
	return append(links,
		// Before anything is looked for: a closed manager has no servers, and arguments that cannot be written need none.
		actors.Interceptor{Name: "admit", Before: m.admit},
		// Every later link needs to know the server, and the tool. A call may wait here until its server has listed its tools.
		actors.Interceptor{Name: "find", Before: m.find},
		// The events name what was found, so nothing is published of a name that leads nowhere; what is refused is an event as well.
		actors.Interceptor{Name: "watch", Before: calls.PublishStart, After: calls.PublishEnd},
		// Inside of all that shows an error to someone, outside of all whose errors may quote the server.
		actors.Interceptor{Name: "explain", After: calls.Explain},
		// Before a lazy server is connected, and before the timeout begins: a person may take long to answer. Once, however often
		// the request is sent.
		actors.Interceptor{Name: "permit", Before: m.permit},
		// What follows runs once for each connection that gets the request: at most twice.
		actors.Interceptor{Name: "repeat", Around: calls.Repeat},
		// Callers take turns at a server with a bound, which is known with the connection. A slot is held for one attempt only.
		actors.Interceptor{Name: "queue", Before: calls.TakeSlot, After: calls.LeaveSlot},
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

// find finds what the request names. A request that names its server, and no tool, needs no search.
func (m *Manager) find(ctx context.Context, r *actors.Request) (err error) {
	switch {
	case r.Method == actors.CallTool:
		return m.calls.FindTool(ctx, r)
	case r.Server != "":
	case r.Method == actors.ReadResource:
		r.Server, err = m.findOffering(ctx, r.Name)
	case r.Method == actors.GetPrompt:
		r.Server, r.Name, err = m.findPrompt(ctx, r.Name)
	}
	return err
}

// permit asks the rules: about a tool, or whether anything of the server may be read.
func (m *Manager) permit(ctx context.Context, r *actors.Request) error {
	switch {
	case r.Entry != nil:
		return m.permissions.AllowCall(ctx, r.Entry.Tool, r.Args, &r.Trace)
	case r.SkipsRules:
		return nil
	}
	return m.permissions.CheckRead(r.Server)
}

// sanitize lets Config.Sanitize rewrite the result of a tool. The result of a task belongs to a tool whose name is not known.
func (m *Manager) sanitize(_ context.Context, r *actors.Request, err error) error {
	switch {
	case err != nil:
	case r.Entry != nil:
		r.Result = m.cfg.Sanitize(r.Entry.Tool, r.Result)
	case r.Method == actors.TaskResult:
		r.Result = m.cfg.Sanitize(&Tool{Server: r.Server}, r.Result)
	}
	return err
}
