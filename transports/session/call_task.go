package session

import (
	"context"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/calltimeout"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/tasks"
)

// TaskOptions are a caller's wishes for the task that its call may become.
//
// In the legacy era (2025-11-25) a call becomes a task only if the server declares tasks and the tool's definition in
// the last list allows one; a tool that requires a task gets one without any wish. In the modern era the server alone
// decides: 2026-07-28: "The server is the sole decider; clients do not signal task preference on the request itself."
type TaskOptions struct {
	// Want asks for a task if the tool leaves the choice to the client.
	Want bool
	// TTL is the time for which the server should keep the task from its creation on, rounded to milliseconds; 0
	// leaves it to the server, which may override any wish. It has an effect in the legacy era only.
	TTL time.Duration
}

// The values of execution.taskSupport that ListTools keeps; "forbidden" is the default and kept as no value.
const (
	taskRequired = "required"
	taskOptional = "optional"
)

// storeTaskSupport records the task support of the tools of a list. A list without any such tool costs nothing.
func (s *Session) storeTaskSupport(tools []messages.Tool) {
	var support map[string]string
	for i := range tools {
		if word := tools[i].TaskSupport; word != "" {
			if support == nil {
				support = make(map[string]string)
			}
			support[tools[i].Name] = word
		}
	}
	s.taskSupport.Store(&support)
}

// augmentWithTask decides whether a call of the legacy era becomes a task, and adds the member task to the request
// then. The caller must call endFollowing if r.task is set afterwards.
//
// 2025-11-25, Tool-Level Negotiation: "If a server's capabilities do not include tasks.requests.tools.call, then
// clients MUST NOT attempt to use task augmentation on that server's tools, regardless of the execution.taskSupport
// value. … If execution.taskSupport is not present or "forbidden", clients MUST NOT attempt to invoke the tool as a
// task. … If "optional", clients MAY invoke the tool as a task or as a normal request. … If "required", clients
// MUST".
func (s *Session) augmentWithTask(ctx context.Context, r *request) {
	support := s.taskSupport.Load()
	if support == nil || *support == nil || s.modern.Load() != nil {
		return
	}
	word := (*support)[r.name]
	// Without a wish only a tool that requires a task gets one.
	var wanted TaskOptions
	if r.opts != nil && r.opts.Task != nil {
		wanted = *r.opts.Task
	}
	if word != taskRequired && (word != taskOptional || !wanted.Want) || !s.info.Load().Capabilities.coreTasks {
		return
	}
	r.task = &followedTask{}
	// The task is followed before the request is sent, so that its progress and questions find the call at once.
	s.beginFollowing(ctx, r.task)
	r.fields = append(r.fields, `"task":{`...)
	if ms := wanted.TTL.Milliseconds(); ms > 0 {
		r.fields = append(r.fields, `"ttl":`...)
		r.fields = strconv.AppendInt(r.fields, ms, 10)
	}
	r.fields = append(r.fields, '}')
}

// A followedTask lets the reader find a call that is, or may become, a task. Session.mu guards it once it is in
// Session.followedTasks.
type followedTask struct {
	// id is empty until the server has created the task.
	id string
	// token is the progress token of the request that began the task, 0 if there is none.
	//
	// 2025-11-25: "The progressToken provided in the initial request remains valid throughout the task lifetime."
	token    int64
	progress *progressReporter
	timeout  *CallTimeout
	ctx      context.Context //nolint:containedctx // the caller's, as long as the task is followed
	// statusHint has room for one hint that the task's status may have changed; it makes the poller ask earlier.
	statusHint chan struct{}
}

// beginFollowing registers f with the reader. Each call needs one endFollowing.
func (s *Session) beginFollowing(ctx context.Context, f *followedTask) {
	f.statusHint, f.ctx, f.timeout = make(chan struct{}, 1), ctx, calltimeout.Of(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followedTasks == nil {
		s.followedTasks = make(map[*followedTask]struct{})
	}
	s.followedTasks[f] = struct{}{}
}

// nameTask records the id of a task that the server has created, and returns the hints about it.
func (s *Session) nameTask(f *followedTask, id string) (statusHint <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.id = id
	return f.statusHint
}

// endFollowing forgets f, withdraws the questions that belong to it, and ends its progress. It may call the
// progress callback, and wait for one that is running.
func (s *Session) endFollowing(f *followedTask) {
	s.mu.Lock()
	delete(s.followedTasks, f)
	p := f.progress
	withdraw := s.withdrawQuestions(0, f)
	s.mu.Unlock()
	withdraw()
	if p != nil {
		p.finish(f.ctx)
	}
}

// handleTaskStatus acts on the notification of either era that a task's status changed. It only makes the next poll
// come earlier, because "Requestors MUST NOT rely on receiving" it (2025-11-25), and because it may be older than the
// last answer.
func (s *Session) handleTaskStatus(params []byte) {
	id, _ := rawjson.Text(rawjson.Member(params, "taskId"))
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.followedTasks {
		if f.id != id {
			continue
		}
		select {
		case f.statusHint <- struct{}{}:
		default: // a hint is waiting already
		}
	}
}

// pollTask follows a task whose first status is raw, until the call has its answer. If the caller leaves before, the
// task is cancelled in the background.
func (s *Session) pollTask(ctx context.Context, r *request, raw []byte) (outcome.Answer, *messages.Error) {
	status, problem := tasks.ReadStatus(raw)
	if problem != "" {
		return outcome.Answer{Kind: outcome.AnswerUnusable, Detail: problem}, nil
	}
	f := r.task
	if f == nil { // modern era: the server made the call a task of its own accord
		f = &followedTask{}
		s.beginFollowing(ctx, f)
		defer s.endFollowing(f)
	}
	r.becameTask = true
	options := tasks.Options{Modern: s.modern.Load() != nil, StatusHint: s.nameTask(f, status.ID)}
	if r.opts != nil {
		options.OnTask = r.opts.OnTask
	}
	p := tasks.NewPoller((*conversation)(s), status, options)
	a, e := p.Run(ctx)
	// The caller gets an error, and the task may still run: its result would have no receiver.
	if e != nil && !p.HasEnded() && e.Class != messages.ClassRejected {
		s.abandonTask(status.ID)
	}
	if e != nil && (e.Class == messages.ClassProtocol || e.Class == messages.ClassExhausted) && s.cancelsTasks() {
		e.Task = "" // it was cancelled, because what its server says of it cannot be used: a look for it would find only that
	}
	return a, e
}

// taskCancelTimeout bounds the cancellation of a task whose caller has left.
const taskCancelTimeout = 10 * time.Second

// abandonTask cancels a task in the background after its caller has left. It does nothing if the server cannot cancel
// tasks; then the task runs to its end.
//
// 2026-07-28: "The notifications/cancelled notification MUST NOT be used for task cancellation." 2025-11-25 has
// tasks/cancel if the server declares it, and nothing else.
func (s *Session) abandonTask(id string) {
	if !s.cancelsTasks() {
		return
	}
	s.spawn(func() {
		ctx, stop := context.WithTimeout(s.lifetime, taskCancelTimeout)
		defer stop()
		// A task that has ended meanwhile refuses the cancellation, which is fine.
		_, _ = s.performRequest(ctx, &request{method: "tasks/cancel", name: id, fields: tasks.Params(id)})
	})
}

// cancelsTasks reports whether a task can be cancelled at the server: the session has not ended, and the server can do that.
func (s *Session) cancelsTasks() bool {
	return s.endedError("") == nil && (s.modern.Load() != nil || s.info.Load().Capabilities.TasksCancel)
}
