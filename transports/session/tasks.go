package session

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/lists"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/tasks"
)

// Tasks lists the tasks of this client that the server knows, all pages. Only the legacy era has such a list, and
// only servers that declare it; for any other server it is an error of ClassInvalid, and nothing is sent.
func (s *Session) Tasks(ctx context.Context) ([]messages.TaskStatus, error) {
	if e := s.checkTaskSupport("list its tasks", func(c *Capabilities) bool { return c.TasksList }, false); e != nil {
		return nil, e
	}
	l := lists.NewCollector(&taskKind, s.listLimits())
	if e := l.FetchPages(ctx, (*conversation)(s)); e != nil {
		return nil, e
	}
	return l.Entries, nil // a task that cannot be read is left out and spoils nothing else
}

// taskKind is the list of tasks.
var taskKind = lists.Kind[messages.TaskStatus]{
	Method: "tasks/list", Member: "tasks", Singular: "task", Plural: "tasks", Unique: "id",
	Read: func(raw []byte) (messages.TaskStatus, string, string) {
		t, problem := tasks.ReadStatus(raw)
		return t, t.ID, problem
	},
}

// Task returns the status of a task, which another connection may have begun. In the modern era the Raw of a task
// that has ended holds its result or its error.
func (s *Session) Task(ctx context.Context, id string) (messages.TaskStatus, error) {
	if e := s.checkTaskRequest(id, "tell of a task", true); e != nil {
		return messages.TaskStatus{}, e
	}
	t, e := s.getTask(ctx, id)
	if e != nil {
		return messages.TaskStatus{}, e
	}
	return t, nil
}

// getTask asks tasks/get once and checks that the answer is about this task.
func (s *Session) getTask(ctx context.Context, id string) (messages.TaskStatus, *messages.Error) {
	raw, e := s.requestResult(ctx, "read", request{method: "tasks/get", name: id, fields: tasks.Params(id)})
	if e != nil {
		return messages.TaskStatus{}, e
	}
	t, problem := tasks.ReadStatus(raw)
	if problem == "" && t.ID != id {
		problem = "is about another task"
	}
	if problem != "" {
		return messages.TaskStatus{}, &messages.Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassProtocol,
			Text: "the server's answer to tasks/get " + problem}
	}
	return t, nil
}

// TaskResult waits for the end of a task and returns its result, or the error, that the call that began it would have
// had. Another connection may have begun the task. The end of ctx does not cancel the task.
func (s *Session) TaskResult(ctx context.Context, id string, o *Options) (Result, error) {
	if e := s.checkTaskRequest(id, "tell of a task", true); e != nil {
		return Result{}, e
	}
	f := &followedTask{}
	// From here on notifications about the task hasten the next poll.
	s.beginFollowing(ctx, f)
	defer s.endFollowing(f)
	t, e := s.getTask(ctx, id)
	if e != nil {
		e.Op = "call"
		// A server that rejects the id does not know the task; after any other failure the caller can ask again.
		if e.Class != messages.ClassRejected {
			e.Outcome, e.Task = messages.OutcomeUnknown, id
		}
		return Result{}, e
	}
	options := tasks.Options{Modern: s.modern.Load() != nil, Detailed: true, StatusHint: s.nameTask(f, t.ID)}
	if o != nil {
		options.OnTask = o.OnTask
	}
	a, e := tasks.NewPoller((*conversation)(s), t, options).Run(ctx)
	if e == nil {
		e = a.AsError("tools/call")
	}
	if e != nil {
		e.Op = "call"
		return Result{}, e
	}
	return Result{Raw: a.Raw, IsError: a.IsError}, nil
}

// CancelTask asks the server to end a task. In the modern era nil means only that the server has received the
// request: 2026-07-28: "Eventual transition to cancelled is not guaranteed."
func (s *Session) CancelTask(ctx context.Context, id string) error {
	legacy := func(c *Capabilities) bool { return c.TasksCancel }
	e := checkTaskID(id)
	if e == nil {
		e = s.checkTaskSupport("cancel tasks", legacy, true)
	}
	if e == nil {
		_, e = s.requestResult(ctx, "read", request{method: "tasks/cancel", name: id, fields: tasks.Params(id)})
	}
	if e != nil {
		return e
	}
	return nil
}

// checkTaskRequest returns the error of a request about one task that cannot be sent, nil if it can.
func (s *Session) checkTaskRequest(id, what string, modern bool) *messages.Error {
	if e := checkTaskID(id); e != nil {
		return e
	}
	return s.checkTaskSupport(what, func(c *Capabilities) bool { return c.tasks }, modern)
}

// checkTaskID checks an id of a caller before it is sent.
func checkTaskID(id string) *messages.Error {
	if id == "" || len(id) > tasks.MaxID {
		return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
			Text: "the id of a task is 1 to 4,096 bytes long"}
	}
	return nil
}

// checkTaskSupport returns the not-sent error of a request that the server cannot answer, nil if it can. what
// completes the sentence "the server cannot …"; legacy looks at the capabilities of a server of the legacy era;
// modern is true if a server of the modern era has the request.
func (s *Session) checkTaskSupport(what string, legacy func(*Capabilities) bool, modern bool) *messages.Error {
	if e := s.endedError("read"); e != nil {
		return outcome.MarkNotSent(e)
	}
	info := s.info.Load()
	var text string
	switch {
	case info == nil:
		text = "the server was asked to " + what + " before the handshake"
	case s.modern.Load() != nil && !modern:
		text = "the server cannot " + what + ": version " + info.ProtocolVersion + " has no such request"
	case s.modern.Load() == nil && !legacy(&info.Capabilities):
		text = "the server cannot " + what + ": it does not declare it"
	default:
		return nil
	}
	return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: text}
}
