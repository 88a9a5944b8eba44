package jsonrpc

import (
	"bytes"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// An envelope is one JSON-RPC message, taken apart in one pass and not decoded further: its slices lie inside the body it
// came from. If a member stands twice, the last one counts, as in encoding/json.
type Envelope struct {
	// ID is the number of RawID if RawID has the form of an id of ours: a positive integer. Otherwise 0.
	ID int64
	// RawID is the member id as it stands in the message; nil if there is none.
	RawID []byte
	// Method is without quotes and escapes; nil if there is none or it is not a string. Params is nil if there are
	// none.
	Method []byte
	Params []byte
	// Result and ErrorObject are the members result and error; nil if absent or null.
	Result, ErrorObject []byte
	// IsError is the member isError of the result, as tools/call defines it.
	IsError bool
	// ResultType is the member resultType of the result, without quotes; empty for "complete", and if there is none.
	ResultType []byte
	// hasVersion is true if there is a member jsonrpc, with any value.
	hasVersion bool
}

// Kind is the role of a message for its receiver.
type Kind int

const (
	// kindNotRPC is valid JSON that is no JSON-RPC message, such as a line of a structured log.
	kindNotRPC Kind = iota
	// KindRequest is a request of the server, which needs an answer; KindNotification needs none.
	KindRequest
	KindNotification
	// KindAnswer is an answer to a request of ours, or claims to be.
	KindAnswer
)

// Classify tells the kind of a message. It is lenient where a server can be understood: a missing or wrong jsonrpc member is
// no reason to lose an answer. It is strict where a line of a structured log ({"level":"error","id":7,"error":"…"}) could be
// taken for an answer: without jsonrpc the result or error must be an object.
func (e *Envelope) Classify() Kind {
	switch {
	case e.Result != nil || e.ErrorObject != nil:
		if e.hasVersion || rawjson.IsObject(e.Result) || rawjson.IsObject(e.ErrorObject) {
			return KindAnswer
		}
	case e.Method != nil:
		if rawjson.IsNull(e.RawID) {
			return KindNotification
		}
		return KindRequest
	case e.hasVersion && e.RawID != nil:
		return KindAnswer // it holds neither a result nor an error: broken, and it costs only its own call
	}
	return kindNotRPC
}

// maxRequestID bounds the ids of the server's requests, in bytes, because the answer echoes them.
const maxRequestID = 1024

// HasUsableID reports whether the id of a request, which is not empty, is a string or a number and short enough to be echoed.
// With any other id there is no answer that the server could match.
func (e *Envelope) HasUsableID() bool {
	c := e.RawID[0]
	return len(e.RawID) <= maxRequestID && (c == '"' || c == '-' || isDigit(c))
}

// ScanEnvelope reads the object at b[i] and returns the index after it, -1 if it is not valid JSON. In that case the envelope
// holds the members before the fault. depth is the nesting of the object in what surrounds it (1 in a batch), because the
// nesting of a message is bounded.
func ScanEnvelope(b []byte, i, depth int) (e Envelope, end int) {
	// Members that a message may have and the session does not need are skipped without being decoded.
	m := rawjson.ObjectAt(b, i, depth)
	for m.Next() {
		switch string(m.Name) {
		case "id":
			e.RawID = m.Skip()
			e.ID = IDOf(e.RawID)
		case "method":
			e.Method = methodOf(m.Skip())
		case "params":
			e.Params = m.Skip()
		case "result":
			// scanResult moves m behind the value itself.
			e.scanResult(b, &m)
		case "error":
			if e.ErrorObject = m.Skip(); rawjson.IsNull(e.ErrorObject) {
				e.ErrorObject = nil
			}
		case "jsonrpc":
			m.Skip()
			e.hasVersion = true
		default:
			m.Skip()
		}
	}
	return e, m.End()
}

// scanResult reads the value of a result and, in the same pass, its members isError and resultType: a result can have many
// MiB, and a second pass would cost as much again.
//
// 2026-07-28: "For backward compatibility …, clients MUST treat an absent resultType as "complete"."
func (e *Envelope) scanResult(b []byte, m *rawjson.Object) {
	e.Result, e.IsError, e.ResultType = nil, false, nil
	start := m.Position()
	// A result that is no object has no members to look for.
	if start >= len(b) || b[start] != '{' {
		if result := m.Skip(); !rawjson.IsNull(result) {
			e.Result = result
		}
		return
	}
	isError, resultType := false, []byte(nil)
	inner := rawjson.ObjectAt(b, start, m.Depth())
	for inner.Next() {
		switch string(inner.Name) {
		case "isError":
			isError = string(inner.Skip()) == "true"
		case "resultType":
			resultType = methodOf(inner.Skip())
		default:
			inner.Skip()
		}
	}
	end := inner.End()
	if m.MoveTo(end); end < 0 {
		return
	}
	// The third index keeps a later append to the result from writing into the rest of the body.
	e.Result, e.IsError = b[start:end:end], isError
	if string(resultType) != "complete" {
		e.ResultType = resultType
	}
}

// IDOf returns the number of an id that can be ours, otherwise 0. We write ids as plain digits; "7", 7.0 and 7e0 are not
// ours. 18 digits always fit into an int64.
func IDOf(raw []byte) int64 {
	if len(raw) == 0 || len(raw) > 18 {
		return 0
	}
	var n int64
	for _, c := range raw {
		if !isDigit(c) {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// methodOf returns the text of a JSON string without its quotes, nil if value is no string. It decodes only if there is an
// escape: method names rarely have one, and the common case must not allocate.
func methodOf(value []byte) []byte {
	if !rawjson.IsText(value) {
		return nil
	}
	inside := value[1 : len(value)-1]
	if bytes.IndexByte(inside, '\\') >= 0 {
		if text, ok := rawjson.Text(value); ok {
			return []byte(text)
		}
	}
	return inside
}
