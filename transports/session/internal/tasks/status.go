package tasks

import (
	"math"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// MaxID bounds the ids of tasks, in bytes, because they are sent back: in the modern era they travel in a header.
const MaxID = 4096

// ReadStatus reads the object of a task, in the form of either era. problem says why the task cannot be followed, empty
// if it can.
//
// All versions: "Task IDs MUST be a string value."
func ReadStatus(raw []byte) (t messages.TaskStatus, problem string) {
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
	case len(t.ID) > MaxID:
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

// Params returns the params of a request about one task, without braces.
func Params(id string) []byte { return jsonrpc.AppendString([]byte(`"taskId":`), id) }
