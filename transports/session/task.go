package session

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
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

// relatedTask is the key of _meta that ties a message of the legacy era to a task.
const relatedTask = "io.modelcontextprotocol/related-task"

const (
	// The values of execution.taskSupport that ListTools keeps; "forbidden" is the default and kept as no value.
	taskRequired = "required"
	taskOptional = "optional"
	// maxTaskID bounds the ids of tasks, in bytes, because they are sent back: in the modern era they travel in a
	// header.
	maxTaskID = 4096
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

// readTask reads the object of a task, in the form of either era. problem says why the task cannot be followed, empty
// if it can.
//
// All versions: "Task IDs MUST be a string value."
func readTask(raw []byte) (t messages.TaskStatus, problem string) {
	if !rawjson.IsObject(raw) {
		return t, "has a task that is not an object"
	}
	t.Raw = raw
	// The members of both eras are read together: their names do not collide.
	hasID, state := false, ""
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "taskId":
			t.ID, hasID = rawjson.Text(value)
		case "status":
			state, _ = rawjson.Text(value)
		case "statusMessage":
			t.Message, _ = rawjson.Text(value)
		case "createdAt":
			t.Created = timeOf(value)
		case "lastUpdatedAt":
			t.Updated = timeOf(value)
		case "ttl", "ttlMs":
			t.TTL = messages.Duration(millisOf(value))
		case "pollInterval", "pollIntervalMs":
			t.Poll = messages.Duration(millisOf(value))
		}
	}
	t.State = messages.TaskState(state)
	switch {
	case !hasID || t.ID == "":
		return t, "has a task without an id"
	// The id is sent back with every poll, so it is bounded before the first.
	case len(t.ID) > maxTaskID:
		return t, "has a task whose id is longer than 4 KiB"
	case !t.State.Known():
		return t, "has a task with the unknown status " + strconv.Quote(messages.Line(state, 60))
	}
	return t, ""
}

// timeOf reads an RFC 3339 time; the zero time for anything else.
func timeOf(value []byte) time.Time {
	text, _ := rawjson.Text(value)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// millisOf reads a number of milliseconds; 0 for anything else, for a negative number, and for one beyond a Duration,
// which is as good as no limit.
func millisOf(value []byte) time.Duration {
	ms, err := strconv.ParseFloat(string(value), 64)
	if err != nil || !(ms > 0) || ms > math.MaxInt64/1e6/2 {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// taskFields returns the params of a request about one task, without braces.
func taskFields(id string) []byte { return appendString([]byte(`"taskId":`), id) }

// withRelatedTask adds to our answer the task that the server's request (params) belongs to.
//
// 2025-11-25: "All requests, notifications, and responses related to a task MUST include the
// io.modelcontextprotocol/related-task key in their _meta field".
func withRelatedTask(result, params []byte) []byte {
	id, ok := rawjson.Text(rawjson.Member(rawjson.Member(rawjson.Member(params, "_meta"), relatedTask), "taskId"))
	start := rawjson.SkipSpace(result, 0)
	if !ok || start >= len(result) || result[start] != '{' {
		return result
	}
	related := appendString([]byte(`"`+relatedTask+`":{"taskId":`), id)
	related = append(related, '}')

	// The result is copied member by member, so that an existing _meta keeps its other members.
	b, empty := append([]byte(nil), '{'), 1
	var meta json.RawMessage
	m := rawjson.ObjectAt(result, start, 0)
	for m.Next() {
		value := m.Skip()
		if string(m.Name) == "_meta" {
			meta = value
			continue
		}
		b = append(appendString(appendComma(b, empty), string(m.Name)), ':')
		b = append(b, value...)
	}
	b = append(appendComma(b, empty), `"_meta":{`...)
	inside := len(b)
	if rawjson.IsObject(meta) {
		m := rawjson.ObjectAt(meta, 0, 0)
		for m.Next() {
			value := m.Skip()
			if string(m.Name) != relatedTask {
				b = append(appendString(appendComma(b, inside), string(m.Name)), ':')
				b = append(b, value...)
			}
		}
	}
	return append(append(appendComma(b, inside), related...), `}}`...)
}
