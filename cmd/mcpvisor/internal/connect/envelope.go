package connect

import (
	"bytes"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// envelope is the frame of a message: JSON as it was written.
type envelope struct {
	id, method, params []byte
}

// readEnvelope reads the frame of a message. One that is no object has an empty frame, and is passed on as it is: the daemon
// says what is wrong with it.
func readEnvelope(line []byte) (e envelope) {
	at := rawjson.SkipSpace(line, 0)
	if at >= len(line) || line[at] != '{' {
		return e
	}
	for o := rawjson.ObjectAt(line, at, 0); o.Next(); {
		value := o.Skip()
		switch string(o.Name) {
		case "id":
			e.id = bytes.TrimSpace(value)
		case "method":
			e.method = bytes.TrimSpace(value)
		case "params":
			e.params = bytes.TrimSpace(value)
		}
	}
	return e
}

// methodName returns the method; empty for an answer.
func (e envelope) methodName() string {
	s, _ := rawjson.Text(e.method)
	return s
}

// isRequest reports whether the message wants an answer.
func (e envelope) isRequest() bool { return e.methodName() != "" && !rawjson.IsNull(e.id) }
