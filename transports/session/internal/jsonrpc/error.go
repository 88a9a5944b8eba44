package jsonrpc

import (
	"encoding/json"
	"strconv"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// MaxText bounds the characters of a server's own words that an error repeats.
const MaxText = 300

// Error is the error object of JSON-RPC, neutralised for logs and terminals.
type Error struct {
	// Code is 0 if the server gave none.
	Code    int
	Message string
	Data    json.RawMessage
	// Raw is the whole object as sent; nil for any other value of the member error.
	Raw json.RawMessage
}

// String returns the server's words with the code.
func (f Error) String() string {
	if f.Code == 0 {
		return f.Message
	}
	return f.Message + " (code " + strconv.Itoa(f.Code) + ")"
}

// ReadError reads the member error. It is lenient: any value of that member says that the server refused, even a plain
// string.
func ReadError(raw []byte) Error {
	var f Error
	if rawjson.IsObject(raw) {
		f.Raw = raw
		m := rawjson.ObjectAt(raw, 0, 0)
		for m.Next() {
			value := m.Skip()
			switch string(m.Name) {
			case "code":
				// A code may be written as 1e3 or -32602.0, or not fit: ParseFloat takes all of them.
				if n, err := strconv.ParseFloat(string(value), 64); err == nil {
					f.Code = int(n)
				}
			case "message":
				f.Message, _ = rawjson.Text(value)
			case "data":
				if !rawjson.IsNull(value) {
					f.Data = value
				}
			}
		}
	} else {
		f.Message, _ = rawjson.Text(raw)
	}
	if f.Message = messages.Line(f.Message, MaxText); f.Message == "" {
		f.Message = "it gave no reason"
	}
	return f
}

// FindError finds a JSON-RPC error in the body of an HTTP answer. ok is false for a body that is anything else, such as
// the HTML page of a proxy.
func FindError(body []byte) (Error, bool) {
	i := rawjson.SkipSpace(body, 0)
	if i >= len(body) || body[i] != '{' {
		return Error{}, false
	}
	e, end := ScanEnvelope(body, i, 0)
	if end < 0 || !rawjson.IsObject(e.ErrorObject) {
		return Error{}, false
	}
	return ReadError(e.ErrorObject), true
}
