package session

import (
	"context"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
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
