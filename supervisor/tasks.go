package supervisor

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TaskStatus is a server's report of a task: a call that the server runs apart from the request that began it.
type TaskStatus = messages.TaskStatus

// WithTask asks for the call to run as a task where its tool leaves the choice to the client. ttl is how long the server should
// keep the task, 0 leaves that to the server. It matters in the legacy era only (2025-11-25): a tool that requires a
// task is called as one without this option, and in the modern era the server alone decides. The caller gets an ordinary
// result in any case.
func WithTask(ttl time.Duration) CallOption {
	return func(o *session.Options) { o.Task = &session.TaskOptions{Want: true, TTL: ttl} }
}

// WithTaskStatus has f called when the call has become a task, and whenever the server reports another status of it, in
// order and one at a time, by the rules of [WithProgress] for an f that is slow, panics or does not return. Keep the task's id if the
// result must survive this process: [Manager.TaskResult] fetches it later.
func WithTaskStatus(f func(TaskStatus)) CallOption {
	return func(o *session.Options) { o.OnTask = f }
}

// Tasks lists the tasks that a server keeps for this client. Only the legacy era has such a list, and only servers that declare
// it; for any other server it returns an *Error of class invalid and sends nothing.
func (m *Manager) Tasks(ctx context.Context, server string) ([]TaskStatus, error) {
	var tasks []TaskStatus
	err := m.sendUnqueued(ctx, "tasks/list", server, func(ctx context.Context, s *session.Session) (err error) {
		tasks, err = s.Tasks(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		tasks[i].Server = server
	}
	return tasks, nil
}

// Task asks a server for the status of a task. id is that of a WithTaskStatus or of an Error.Task, also one of an earlier
// connection or process.
func (m *Manager) Task(ctx context.Context, server, id string) (TaskStatus, error) {
	var task TaskStatus
	err := m.sendUnqueued(ctx, "tasks/get", server, func(ctx context.Context, s *session.Session) (err error) {
		task, err = s.Task(ctx, id)
		return err
	})
	task.Server = server
	return task, err
}

// TaskResult waits for the end of a task and returns its result, as the call that began it would have: the way to continue
// after an error whose Task is set. It is bounded as a call is. The end of ctx does not cancel the task. The tool's name is not
// known here, so Config.Sanitize gets a Tool without a name, and the result has no Flaw.
func (m *Manager) TaskResult(ctx context.Context, server, id string, opts ...CallOption) (*Result, error) {
	r := &actors.Request{Method: actors.TaskResult, Server: server, Name: id, Repeatable: true, SkipsQueue: true, SkipsRules: true,
		Send: func(ctx context.Context, s *session.Session, r *actors.Request) (err error) {
			r.Answer, err = s.TaskResult(ctx, id, r.Options)
			return err
		}}
	if err := m.handleWith(ctx, r, opts); err != nil {
		return nil, err
	}
	return m.newResult(r), nil
}

// CancelTask asks a server to end a task. In the modern era nil means only that the server has received the request: the
// task may still come to a result.
func (m *Manager) CancelTask(ctx context.Context, server, id string) error {
	return m.sendUnqueued(ctx, "tasks/cancel", server, func(ctx context.Context, s *session.Session) error { return s.CancelTask(ctx, id) })
}
