package tasks

import (
	"bytes"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// relatedTask is the key of _meta that ties a message of the legacy era to a task.
const relatedTask = "io.modelcontextprotocol/related-task"

// RelatedTaskID returns the id of the task that a message with these params belongs to; ok is false if it names none.
func RelatedTaskID(params []byte) (id string, ok bool) {
	return rawjson.Text(rawjson.Member(rawjson.Member(rawjson.Member(params, "_meta"), relatedTask), "taskId"))
}

// WithRelatedTask adds to our answer the task that the server's request (params) belongs to.
//
// 2025-11-25: "All requests, notifications, and responses related to a task MUST include the
// io.modelcontextprotocol/related-task key in their _meta field".
func WithRelatedTask(result, params []byte) []byte {
	id, ok := RelatedTaskID(params)
	if !ok {
		return result
	}
	result = bytes.TrimSpace(result) // a program may have written it
	meta := rawjson.Member(result, "_meta")
	if !rawjson.IsObject(meta) {
		meta = []byte("{}")
	}
	related := append(rawjson.AppendText([]byte(`{"taskId":`), id), '}')
	return rawjson.With(result, "_meta", rawjson.With(meta, relatedTask, related))
}
