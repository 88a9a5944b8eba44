package agents

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// taskStatus holds the members of a task that the gateway sends to an agent, in either era.
type taskStatus struct {
	ID         string             `json:"taskId"`
	State      messages.TaskState `json:"status"`
	Created    time.Time          `json:"createdAt"`
	Updated    time.Time          `json:"lastUpdatedAt"`
	TTL        int                `json:"ttl"`
	TTLMs      int                `json:"ttlMs"`
	Interval   int                `json:"pollInterval"`
	IntervalMs int                `json:"pollIntervalMs"`
	Result     json.RawMessage    `json:"result"`
	Error      json.RawMessage    `json:"error"`
	Asked      map[string]struct {
		Method string `json:"method"`
	} `json:"inputRequests"`
}

// readTask reads a status of a task: the result of tasks/get, or of a call that has become a task. It has no id if there is none.
func readTask(result []byte) (s taskStatus) {
	if inside := rawjson.Member(result, "task"); inside != nil {
		result = inside
	}
	if err := json.Unmarshal(result, &s); err != nil {
		return taskStatus{}
	}
	return s
}

// isTask reports whether the answer to a call is the task that it has become.
func isTask(result []byte) bool {
	return string(rawjson.Member(result, "resultType")) == `"task"` || rawjson.IsObject(rawjson.Member(result, "task"))
}

func (s *taskStatus) ttl() time.Duration { return time.Duration(s.TTL+s.TTLMs) * time.Millisecond }

func (s *taskStatus) interval() time.Duration {
	return time.Duration(s.Interval+s.IntervalMs) * time.Millisecond
}

// hasEnded reports whether the task goes on no more.
func (s *taskStatus) hasEnded() bool {
	return s.State == messages.TaskCompleted || s.State == messages.TaskFailed || s.State == messages.TaskCancelled
}

// problemAfter returns what is wrong with a status that follows another one of its task; "" for nothing. A failure of the tool is a failed task in
// the legacy era, and a completed one in the modern era.
func (s *taskStatus) problemAfter(before *taskStatus) string {
	switch {
	case s.State != messages.TaskWorking && s.State != messages.TaskInputRequired && !s.hasEnded():
		return "it has the status " + messages.Line(string(s.State), 60) + ", which is none"
	case s.ttl() <= 0 || s.interval() <= 0:
		return "it has no time to live, or no interval in which it may be asked about"
	case before.ID == "":
		return ""
	case !s.Created.Equal(before.Created):
		return "it was created at another time than it was before"
	case s.Updated.Before(before.Updated):
		return "its last update is before that of the status before"
	case before.hasEnded() && (!s.hasEnded() || (s.State == messages.TaskCancelled) != (before.State == messages.TaskCancelled)):
		return "it was " + string(before.State) + ", which is the end of it, and was told later to be " + string(s.State)
	}
	return ""
}

// isTaskGone reports whether an error says that a task is not known.
func isTaskGone(problem []byte) bool {
	text, _ := rawjson.Text(rawjson.Member(problem, "message"))
	return codeOf(answer{problem: problem}) == serve.CodeInvalidParams && (strings.HasPrefix(text, taskGone) || strings.HasPrefix(text, serverGone))
}

// taskGone is the text of the error with which the gateway answers an agent for which a task does not exist. serverGone begins the text of
// its error when the server of the task was removed.
const (
	taskGone   = "Task not found: "
	serverGone = "there is no server "
)
