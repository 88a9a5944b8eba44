package gateway

import (
	"cmp"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

const (
	// defaultTaskTime is the time to live of a task for which neither the agent nor the server gives one; minTaskTime and maxTaskTime
	// bound those that they give.
	defaultTaskTime = time.Hour
	minTaskTime     = time.Second
	maxTaskTime     = 24 * time.Hour
	// defaultTaskPoll is the interval that agents are told if the server gives none; a call for a program is polled as often.
	defaultTaskPoll = time.Second
	// maxTaskMessage bounds the server's text about a task.
	maxTaskMessage = 1000
)

// taskState makes the answers about a call that an agent has taken over as a task. It decides, and does nothing else; one goroutine at a
// time changes it.
//
//	working ◀──▶ input_required
//	   └──────────────┴──▶ completed, failed, cancelled
//
// The task is that of this hop: it has an id of its own, and it has ended when its result is here, whatever its server has said before.
type taskState struct {
	id string
	// end says how the task has ended, notEnded while it runs.
	end taskEnd
	// message is the server's own text.
	message string
	// created and updated are of our clock. The time to live counts from created; wished is the one that the agent wishes, 0 for none.
	created, updated  time.Time
	wished, ttl, poll time.Duration
	// serverTask is the id of the server's own task, and began when it came, by our clock. A call that is sent again becomes another one.
	serverTask string
	began      time.Time
}

type taskEnd int

const (
	notEnded taskEnd = iota
	// endedResult and endedFault: there is a result, of which the second says isError.
	endedResult
	endedFault
	// endedError: there is the error of the request.
	endedError
	// endedCancelled: the agent has cancelled the task.
	endedCancelled
)

func newTaskState(id string, wished time.Duration, now time.Time) taskState {
	return taskState{id: id, created: now, updated: now, wished: wished, ttl: lifetimeOf(wished, 0), poll: defaultTaskPoll}
}

// lifetimeOf returns the time to live of a task: what its server says, else what the agent wishes.
//
// 2025-11-25: "Receivers MAY override the requested ttl duration."
func lifetimeOf(wished, granted time.Duration) time.Duration {
	switch {
	case granted > 0:
		wished = granted
	case wished <= 0:
		return defaultTaskTime
	}
	return min(max(wished, minTaskTime), maxTaskTime)
}

// noteStatus takes what the server says of the task, and reports whether agents are told of it.
func (t *taskState) noteStatus(s messages.TaskStatus, now time.Time) bool {
	if t.end != notEnded {
		return false
	}
	isOther := s.ID != t.serverTask
	if isOther {
		t.serverTask, t.began = s.ID, now
	}
	// What the server says counts from when its task began, which may be long after ours: the call may have waited for the server, or was sent again.
	if isOther || s.TTL > 0 {
		t.ttl = t.began.Sub(t.created) + lifetimeOf(t.wished, time.Duration(s.TTL))
	}
	if s.Poll > 0 {
		t.poll = time.Duration(s.Poll)
	}
	message := messages.Line(s.Message, maxTaskMessage)
	if message == t.message {
		return false
	}
	t.message, t.updated = message, now
	return true
}

// cancel records that the agent has cancelled the task; false if it has ended before.
func (t *taskState) cancel(now time.Time) bool {
	if t.end != notEnded {
		return false
	}
	t.end, t.message, t.updated = endedCancelled, "the task was cancelled by its agent; what it has done so far stays done", now
	return true
}

// finish records how the call has ended; message is the text of its error, which takes the place of what the server said last. A task that was
// cancelled stays so.
//
// 2025-11-25: "Once a task is cancelled, it MUST remain in cancelled status even if execution continues to completion or fails."
func (t *taskState) finish(end taskEnd, message string, now time.Time) {
	if t.end == notEnded {
		t.end, t.updated = end, now
		t.message = cmp.Or(messages.Line(message, maxTaskMessage), t.message)
	}
}

// expires returns when the task is forgotten.
func (t *taskState) expires() time.Time { return t.created.Add(t.ttl) }

// shown returns the state that agents are told; asks says whether questions to the agent are open.
//
// 2025-11-25: a task whose "tool call result has isError set to true" has failed. 2026-07-28: the failed status "MUST NOT be used for
// non-JSON-RPC errors".
func (t *taskState) shown(modern, asks bool) messages.TaskState {
	switch t.end {
	case endedResult:
		return messages.TaskCompleted
	case endedFault:
		if modern {
			return messages.TaskCompleted
		}
		return messages.TaskFailed
	case endedError:
		return messages.TaskFailed
	case endedCancelled:
		return messages.TaskCancelled
	default:
	}
	if asks {
		return messages.TaskInputRequired
	}
	return messages.TaskWorking
}

// appendTask appends the members of the task, without braces, as an era has them.
func (t *taskState) appendTask(b []byte, modern bool, state messages.TaskState) []byte {
	const clock = "2006-01-02T15:04:05.000Z07:00"
	b = rawjson.AppendText(append(b, `"taskId":`...), t.id)
	b = rawjson.AppendText(append(b, `,"status":`...), string(state))
	if t.message != "" {
		b = rawjson.AppendText(append(b, `,"statusMessage":`...), t.message)
	}
	b = rawjson.AppendText(append(b, `,"createdAt":`...), t.created.UTC().Format(clock))
	b = rawjson.AppendText(append(b, `,"lastUpdatedAt":`...), t.updated.UTC().Format(clock))
	ttl, poll := `,"ttl":`, `,"pollInterval":`
	if modern {
		ttl, poll = `,"ttlMs":`, `,"pollIntervalMs":`
	}
	b = strconv.AppendInt(append(b, ttl...), t.ttl.Milliseconds(), 10)
	return strconv.AppendInt(append(b, poll...), t.poll.Milliseconds(), 10)
}

// appendProblem appends the error of a request, as JSON-RPC has it.
func appendProblem(b []byte, e *serve.Error) []byte {
	if e.Raw != nil {
		return append(b, e.Raw...)
	}
	b = strconv.AppendInt(append(b, `{"code":`...), int64(e.Code), 10)
	b = rawjson.AppendText(append(b, `,"message":`...), e.Message)
	if e.Data != nil {
		b = append(append(b, `,"data":`...), e.Data...)
	}
	return append(b, '}')
}

// relatedTask is the key of _meta that ties a message of 2025-11-25 to its task.
const relatedTask = reserved + "related-task"

// withRelatedTask returns an object whose _meta names the task, in the place of another one that it names, and all else byte for byte.
//
// 2025-11-25: "The tasks/result operation MUST include this metadata in its response, as the result structure itself does not contain
// the task ID."
func withRelatedTask(object []byte, id string) []byte {
	meta := rawjson.Member(object, "_meta")
	if !rawjson.IsObject(meta) {
		meta = []byte("{}")
	}
	related := append(rawjson.AppendText([]byte(`{"taskId":`), id), '}')
	return rawjson.With(object, "_meta", rawjson.With(meta, relatedTask, related))
}

// retieTask is withRelatedTask for an object that names a task, which is that of the server; any other is returned as it is.
func retieTask(object []byte, id string) []byte {
	if rawjson.Member(rawjson.Member(object, "_meta"), relatedTask) == nil {
		return object
	}
	return withRelatedTask(object, id)
}
