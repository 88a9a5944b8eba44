package servers

import "bytes"

// Fixed is a server of the legacy era whose answers are fixed, for measurements. It looks for what it needs in a message and
// decodes nothing: a decoder would cost more than the answer, and grow the stack of the goroutine that runs it, which a measurement
// would count as the client's.
type Fixed struct {
	// Name is what it says of itself.
	Name string
	// Capabilities, Tools and Call are JSON: its capabilities, {"tools":{}} if it is empty, and the results of tools/list and of
	// tools/call.
	Capabilities, Tools, Call string
}

// The methods that a Fixed knows; the others are answered with an empty result.
var (
	fixedInitialize = []byte(`"method":"initialize"`)
	fixedList       = []byte(`"method":"tools/list"`)
	fixedCall       = []byte(`"method":"tools/call"`)
	fixedEmpty      = [][]byte{[]byte(`"method":"ping"`), []byte(`"method":"logging/setLevel"`)}
)

// Answer returns the answer to a message as clients write it, without white space between the tokens; nil to a notification.
func (f *Fixed) Answer(msg []byte) []byte {
	id := textAfter(msg, echoID)
	end := bytes.IndexAny(id, ",}")
	if end < 0 {
		return nil
	}
	answer := append([]byte(`{"jsonrpc":"2.0","id":`), id[:end]...)
	switch {
	case IsInitialize(msg):
		capabilities := f.Capabilities
		if capabilities == "" {
			capabilities = `{"tools":{}}`
		}
		answer = append(append(answer, `,"result":{"protocolVersion":"2025-11-25","capabilities":`...), capabilities...)
		return append(append(append(answer, `,"serverInfo":{"name":"`...), f.Name...), `","version":"1"}}}`...)
	case bytes.Contains(msg, fixedList):
		return append(append(append(answer, `,"result":`...), f.Tools...), '}')
	case bytes.Contains(msg, fixedCall) && f.Call != "":
		return append(append(append(answer, `,"result":`...), f.Call...), '}')
	}
	for _, method := range fixedEmpty {
		if bytes.Contains(msg, method) {
			return append(answer, `,"result":{}}`...)
		}
	}
	return append(answer, `,"error":{"code":-32601,"message":"Method not found"}}`...)
}

// IsInitialize reports whether a message is the first one of a client of the legacy era, in the form that clients write.
func IsInitialize(msg []byte) bool { return bytes.Contains(msg, fixedInitialize) }
