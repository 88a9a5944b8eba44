package session

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Tasks lists the tasks that the server knows of ours, all pages. Only the legacy era has such a list, and only servers
// that declare it; of any other it is an error of ClassInvalid, and nothing is sent.
func (s *Session) Tasks(ctx context.Context) ([]messages.TaskStatus, error) {
	if e := s.knowsTasks("list its tasks", func(c *Capabilities) bool { return c.TasksList }, false); e != nil {
		return nil, e
	}
	l := newListing(&taskKind, s.cfg.MaxTools)
	if e := l.fetch(ctx, s); e != nil {
		return nil, e
	}
	return l.entries, nil // what cannot be read spoils nothing else
}

var taskKind = listKind[messages.TaskStatus]{
	method: "tasks/list", member: "tasks", one: "task", many: "tasks", unique: "id",
	read: func(raw []byte) (messages.TaskStatus, string, string) {
		t, wrong := readTask(raw)
		return t, t.ID, wrong
	},
}

// Task asks how far a task has got. It may be one that another connection began. In the modern era the Raw of one that
// has ended holds its result or its error.
func (s *Session) Task(ctx context.Context, id string) (messages.TaskStatus, error) {
	if e := s.knowsTask(id, "tell of a task", true); e != nil {
		return messages.TaskStatus{}, e
	}
	t, e := s.task(ctx, id)
	if e != nil {
		return messages.TaskStatus{}, e
	}
	return t, nil
}

func (s *Session) task(ctx context.Context, id string) (messages.TaskStatus, *messages.Error) {
	raw, e := s.requestResult(ctx, "read", request{method: "tasks/get", name: id, fields: taskFields(id)})
	if e != nil {
		return messages.TaskStatus{}, e
	}
	t, wrong := readTask(raw)
	if wrong == "" && t.ID != id {
		wrong = "is about another task"
	}
	if wrong != "" {
		return messages.TaskStatus{}, &messages.Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassProtocol,
			Text: "the server's answer to tasks/get " + wrong}
	}
	return t, nil
}

// TaskResult waits for the end of a task and gives its result, as the call that began it would have; the same errors
// too. It may be one that another connection began. That ctx ends does not cancel the task.
func (s *Session) TaskResult(ctx context.Context, id string, o *Options) (Result, error) {
	if e := s.knowsTask(id, "tell of a task", true); e != nil {
		return Result{}, e
	}
	f := &following{}
	s.beginFollowing(ctx, f)
	defer s.endFollowing(f)
	t, e := s.task(ctx, id)
	if e != nil {
		e.Op = "call"
		if e.Class != messages.ClassRejected {
			e.Outcome, e.Task = messages.OutcomeUnknown, id
		}
		return Result{}, e
	}
	p := &pursuit{s: s, f: f, opts: o, modern: s.modern.Load() != nil, detailed: true}
	p.take(t)
	a, e := p.run(ctx)
	if e == nil {
		e = a.fault("tools/call")
	}
	if e != nil {
		e.Op = "call"
		return Result{}, e
	}
	return Result{Raw: a.raw, IsError: a.isError}, nil
}

// CancelTask asks the server to end a task. In the modern era that it returns nil means no more than that the server
// has heard it: 2026-07-28: "Eventual transition to cancelled is not guaranteed."
func (s *Session) CancelTask(ctx context.Context, id string) error {
	legacy := func(c *Capabilities) bool { return c.TasksCancel }
	e := badTaskID(id)
	if e == nil {
		e = s.knowsTasks("cancel tasks", legacy, true)
	}
	if e == nil {
		_, e = s.requestResult(ctx, "read", request{method: "tasks/cancel", name: id, fields: taskFields(id)})
	}
	if e != nil {
		return e
	}
	return nil
}

func (s *Session) knowsTask(id, what string, modern bool) *messages.Error {
	if e := badTaskID(id); e != nil {
		return e
	}
	return s.knowsTasks(what, func(c *Capabilities) bool { return c.tasks }, modern)
}

func badTaskID(id string) *messages.Error {
	if id == "" || len(id) > maxTaskID {
		return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
			Text: "the id of a task is 1 to 4,096 bytes long"}
	}
	return nil
}

// knowsTasks says why a server cannot be asked, nil if it can. legacy looks into what a server of the legacy era
// declares; modern says that one of the modern era can be asked.
func (s *Session) knowsTasks(what string, legacy func(*Capabilities) bool, modern bool) *messages.Error {
	if e := s.ended("read"); e != nil {
		return notSent(e)
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
