package connect

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// This file makes the messages that the bridge writes itself, or changes in one place.

// withID returns a message with another id; everything else keeps its bytes.
func withID(line, id []byte) []byte { return rawjson.With(line, "id", id) }

// cancelNotice tells the agent that a question needs no answer.
func cancelNotice(id []byte) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`), id...)
	return append(out, `,"reason":"mcpvisor was started anew"}}`...)
}

// unknownAnswer is the answer to a request of which it is not known whether it has run.
func unknownAnswer(r openRequest) []byte {
	return failedAnswer(r, "unknown", "the daemon of mcpvisor ended before it answered. The call may have run: look at what it would have "+
		"changed before calling again.")
}

// refusedAnswer is the answer to a request that was not sent.
func refusedAnswer(r openRequest, reason string) []byte {
	return failedAnswer(r, "not-sent", reason+". Nothing was sent, so calling again cannot run it twice.")
}

// tooLargeAnswer is the answer to a message that the daemon would not take; a nil id is not known.
func tooLargeAnswer(id []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	return fmt.Appendf(out, `,"error":{"code":%d,"message":"the message is larger than %d bytes: nothing of it was sent",`+
		`"data":{"mcpvisor/outcome":"not-sent"}}}`, serve.CodeInvalidRequest, maxMessage)
}

// failedAnswer is a result that the model reads, for a call of a tool, and an error for any other request.
func failedAnswer(r openRequest, outcome, text string) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), r.id...)
	if r.method == "tools/call" {
		out = rawjson.AppendText(append(out, `,"result":{"content":[{"type":"text","text":`...), text)
		out = rawjson.AppendText(append(out, `}],"isError":true,"resultType":"complete","_meta":{"mcpvisor/outcome":`...), outcome)
		return append(out, `}}}`...)
	}
	out = rawjson.AppendText(append(out, `,"error":{"code":-32603,"message":`...), text)
	out = rawjson.AppendText(append(out, `,"data":{"mcpvisor/outcome":`...), outcome)
	return append(out, `}}}`...)
}
