package session

import (
	"encoding/json"
	"strconv"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// maxText bounds the characters of a server's own words that an error repeats.
const maxText = 300

// rpcError is the error object of JSON-RPC, neutralised for logs and terminals.
type rpcError struct {
	// code is 0 if the server gave none.
	code    int
	message string
	data    json.RawMessage
}

// String returns the server's words with the code.
func (f rpcError) String() string {
	if f.code == 0 {
		return f.message
	}
	return f.message + " (code " + strconv.Itoa(f.code) + ")"
}

// readRPCError reads the member error. It is lenient: any value of that member says that the server refused, even a plain
// string.
func readRPCError(raw []byte) rpcError {
	var f rpcError
	if rawjson.IsObject(raw) {
		m := rawjson.ObjectAt(raw, 0, 0)
		for m.Next() {
			value := m.Skip()
			switch string(m.Name) {
			case "code":
				// A code may be written as 1e3 or -32602.0, or not fit: ParseFloat takes all of them.
				if n, err := strconv.ParseFloat(string(value), 64); err == nil {
					f.code = int(n)
				}
			case "message":
				f.message, _ = rawjson.Text(value)
			case "data":
				if !rawjson.IsNull(value) {
					f.data = value
				}
			}
		}
	} else {
		f.message, _ = rawjson.Text(raw)
	}
	if f.message = messages.Line(f.message, maxText); f.message == "" {
		f.message = "it gave no reason"
	}
	return f
}

// findRPCError finds a JSON-RPC error in the body of an HTTP answer. ok is false for a body that is anything else, such as
// the HTML page of a proxy.
func findRPCError(body []byte) (rpcError, bool) {
	i := rawjson.SkipSpace(body, 0)
	if i >= len(body) || body[i] != '{' {
		return rpcError{}, false
	}
	e, end := scanEnvelope(body, i, 0)
	if end < 0 || !rawjson.IsObject(e.errorObject) {
		return rpcError{}, false
	}
	return readRPCError(e.errorObject), true
}
