package session

import (
	"bytes"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// envelope is one JSON-RPC message, taken apart in one pass and not decoded further: its slices lie inside the body it
// came from. A member that stands twice counts as it stands last, as in encoding/json.
type envelope struct {
	// id is the number of rawID if that is a kind of id that we give out: a positive integer. Otherwise 0.
	id    int64
	rawID []byte
	// method is without quotes and escapes; nil if there is none or it is not a string.
	method []byte
	params []byte
	// result and fault are the members result and error; nil if absent or null.
	result, errorObject []byte
	// isError is the member isError of the result, as tools/call defines it.
	isError bool
	// resultType is the member resultType of the result, without quotes; empty for "complete", and if there is none.
	resultType []byte
	// hasVersion says that there is a member jsonrpc, whatever its value.
	hasVersion bool
}

// messageKind is what an envelope is to its receiver.
type messageKind int

const (
	// kindNotRPC: valid JSON that is no JSON-RPC message, such as a line of a structured log.
	kindNotRPC messageKind = iota
	// kindRequest wants an answer; kindNotification does not.
	kindRequest
	kindNotification
	// kindAnswer is an answer to a request of ours, or claims to be.
	kindAnswer
)

// classify is lenient where a server can be understood: a missing or wrong jsonrpc member is no reason to lose an answer.
// It is strict where a line of a structured log ({"level":"error","id":7,"error":"…"}) could be taken for an answer.
func (e *envelope) classify() messageKind {
	switch {
	case e.result != nil || e.errorObject != nil:
		if e.hasVersion || rawjson.IsObject(e.result) || rawjson.IsObject(e.errorObject) {
			return kindAnswer
		}
	case e.method != nil:
		if rawjson.IsNull(e.rawID) {
			return kindNotification
		}
		return kindRequest
	case e.hasVersion && e.rawID != nil:
		return kindAnswer // neither a result nor an error: broken, and it costs its call
	}
	return kindNotRPC
}

// scanEnvelope reads the object at b[i] and returns the index after it, -1 if it is not valid JSON. The envelope holds
// then what came before the fault.
func scanEnvelope(b []byte, i, depth int) (e envelope, end int) {
	m := rawjson.ObjectAt(b, i, depth)
	for m.Next() {
		switch string(m.Name) {
		case "id":
			e.rawID = m.Skip()
			e.id = idOf(e.rawID)
		case "method":
			e.method = methodOf(m.Skip())
		case "params":
			e.params = m.Skip()
		case "result":
			e.scanResult(b, &m)
		case "error":
			if e.errorObject = m.Skip(); rawjson.IsNull(e.errorObject) {
				e.errorObject = nil
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

// scanResult reads the value of a result and, in the same pass, its members isError and resultType.
//
// 2026-07-28: "For backward compatibility …, clients MUST treat an absent resultType as "complete"."
func (e *envelope) scanResult(b []byte, m *rawjson.Object) {
	e.result, e.isError, e.resultType = nil, false, nil
	start := m.Position()
	if start >= len(b) || b[start] != '{' {
		if result := m.Skip(); !rawjson.IsNull(result) {
			e.result = result
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
	e.result, e.isError = b[start:end:end], isError
	if string(resultType) != "complete" {
		e.resultType = resultType
	}
}

// idOf is the number of an id that can be ours, otherwise 0. Ours are written as plain digits; "7", 7.0 and 7e0 are
// not.
func idOf(raw []byte) int64 {
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
