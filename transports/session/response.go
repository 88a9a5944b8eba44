package session

import "strconv"

// A responseError is the JSON-RPC error with which we answer a request of the server.
type responseError struct {
	code int
	text string
}

// appendAnswer appends a response to a request of the server. The id is echoed byte for byte, because a server may
// compare it as a text.
func appendAnswer(b []byte, id string, result []byte, refused *responseError) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	if refused == nil {
		b = append(b, `,"result":`...)
		b = appendOneLine(b, result)
		return append(b, '}')
	}
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(refused.code), 10)
	b = append(b, `,"message":`...)
	b = appendString(b, refused.text)
	return append(b, `}}`...)
}
