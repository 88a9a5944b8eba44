package connect

import (
	"bytes"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// envelope is the frame of a message: JSON as it was written.
type envelope struct {
	id, method, params []byte
	// outcomes counts the members that an answer has one of: result and error.
	outcomes int
}

// readEnvelope reads the frame of a message. One that is no whole object, or has no id that can be echoed, is passed on as it is: the
// daemon says what is wrong with it, in an answer without an id, and so it must not be waited for.
func readEnvelope(line []byte) (e envelope) {
	at := rawjson.SkipSpace(line, 0)
	if at >= len(line) || line[at] != '{' {
		return e
	}
	o := rawjson.ObjectAt(line, at, 0)
	for o.Next() {
		value := o.Skip()
		switch string(o.Name) {
		case "id":
			e.id = bytes.TrimSpace(value)
		case "method":
			e.method = bytes.TrimSpace(value)
		case "params":
			e.params = bytes.TrimSpace(value)
		case "result", "error":
			e.outcomes++
		}
	}
	end := o.End()
	if end < 0 || rawjson.SkipSpace(line, end) < len(line) || e.id != nil && !isID(e.id) {
		return envelope{}
	}
	return e
}

// maxID is the length of the longest id that the daemon echoes.
const maxID = 1024

// isID reports whether an id is a string or a number.
func isID(id []byte) bool {
	return len(id) > 0 && len(id) <= maxID && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// methodName returns the method; empty for an answer.
func (e envelope) methodName() string {
	s, _ := rawjson.Text(e.method)
	return s
}

// isAnswer reports whether the message answers a question. What is neither that nor a request or a notification is passed on: the daemon
// says what is wrong with it.
func (e envelope) isAnswer() bool { return e.method == nil && e.id != nil && e.outcomes == 1 }

// isRequest reports whether the message wants an answer.
func (e envelope) isRequest() bool { return e.methodName() != "" && !rawjson.IsNull(e.id) }
