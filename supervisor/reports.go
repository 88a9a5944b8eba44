package supervisor

import (
	"context"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Progress says how far a request has got: see [messages.Progress].
type Progress = messages.Progress

// handleWith sends a request with the wishes of its caller.
func (m *Manager) handleWith(ctx context.Context, r *actors.Request, opts []CallOption) error {
	if ctx == nil {
		return refusal.NilContextError(r.Operation(), r.Server, "")
	}
	reports := m.setOptions(ctx, r, opts)
	err := m.calls.Handle(ctx, r)
	reports.awaitReports(ctx)
	return err
}

// setOptions puts the wishes of the caller into the request; none spare the usual call an allocation. The session calls the functions
// between the messages of the connection, and with the call's slot, so it gets ones that never wait. What it returns must be finished
// when the request has ended.
func (m *Manager) setOptions(ctx context.Context, r *actors.Request, opts []CallOption) *callReports {
	if len(opts) == 0 {
		return nil
	}
	o := &session.Options{}
	for _, wish := range opts {
		if wish != nil {
			wish(o)
		}
	}
	r.Options = o
	if o.Progress == nil && o.OnTask == nil {
		return nil
	}
	reports := &callReports{manager: m}
	call := m.describeCall(r, m.shared.Catalog.Snapshot())
	reports.server = call.Server
	if f := o.Progress; f != nil {
		call.Function = "WithProgress"
		reports.progress = hooks.NewStream(ctx, m.hooks, call, progressSize, f)
		o.Progress = reports.progress.Put
	}
	if f := o.OnTask; f != nil {
		call.Function = "WithTaskStatus"
		reports.tasks = hooks.NewStream(ctx, m.hooks, call, taskStatusSize, f)
		o.OnTask = reports.tasks.Put
	}
	return reports
}

// callReports hands what the server of one call reports before its answer to the functions of the caller. A nil one hands over nothing.
type callReports struct {
	manager  *Manager
	server   string
	progress *hooks.Stream[Progress]
	tasks    *hooks.Stream[TaskStatus]
}

// awaitReports waits until the functions have got all that was reported: a caller who got an answer wants to have seen what came before it. A
// function that does not return holds the caller no longer than the caller's ctx, or than the server's time for the call.
func (c *callReports) awaitReports(ctx context.Context) {
	if c == nil {
		return
	}
	longest := c.manager.callTime(c.server)
	if c.tasks != nil {
		c.tasks.Finish(ctx, c.manager.closed, longest)
	}
	if c.progress != nil {
		c.progress.Finish(ctx, c.manager.closed, longest)
	}
}

// progressSize and taskStatusSize return how many bytes the texts of a report hold, which may be as long as a message.
func progressSize(p Progress) int { return len(p.Message) }

func taskStatusSize(t TaskStatus) int { return len(t.ID) + len(t.Message) + len(t.Raw) }
