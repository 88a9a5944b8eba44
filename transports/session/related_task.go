package session

import (
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// relatedTask is the key of _meta that ties a message of the legacy era to a task.
const relatedTask = "io.modelcontextprotocol/related-task"

// relatedTaskID returns the id of the task that a message with these params belongs to; ok is false if it names none.
func relatedTaskID(params []byte) (id string, ok bool) {
	return rawjson.Text(rawjson.Member(rawjson.Member(rawjson.Member(params, "_meta"), relatedTask), "taskId"))
}

// withRelatedTask adds to our answer the task that the server's request (params) belongs to.
//
// 2025-11-25: "All requests, notifications, and responses related to a task MUST include the
// io.modelcontextprotocol/related-task key in their _meta field".
func withRelatedTask(result, params []byte) []byte {
	id, ok := relatedTaskID(params)
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
