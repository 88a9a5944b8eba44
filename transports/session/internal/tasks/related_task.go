package tasks

import (
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
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
	start := rawjson.SkipSpace(result, 0)
	if !ok || start >= len(result) || result[start] != '{' {
		return result
	}
	related := jsonrpc.AppendString([]byte(`"`+relatedTask+`":{"taskId":`), id)
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
		b = append(jsonrpc.AppendString(jsonrpc.AppendComma(b, empty), string(m.Name)), ':')
		b = append(b, value...)
	}
	b = append(jsonrpc.AppendComma(b, empty), `"_meta":{`...)
	inside := len(b)
	if rawjson.IsObject(meta) {
		m := rawjson.ObjectAt(meta, 0, 0)
		for m.Next() {
			value := m.Skip()
			if string(m.Name) != relatedTask {
				b = append(jsonrpc.AppendString(jsonrpc.AppendComma(b, inside), string(m.Name)), ':')
				b = append(b, value...)
			}
		}
	}
	return append(append(jsonrpc.AppendComma(b, inside), related...), `}}`...)
}
