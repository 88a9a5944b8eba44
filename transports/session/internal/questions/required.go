package questions

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// codeElicitRequired is the error code that refuses a request until a person has visited a URL (2025-11-25 only).
const codeElicitRequired = -32042

const (
	// MaxInputs bounds the inputs that a server may ask for at once.
	MaxInputs = 32
	// MaxRounds bounds how often a server may ask for input before a request is given up.
	MaxRounds = 32
)

// A URLElicitation is one elicitation of the error: its id at the server, and its params.
type URLElicitation struct {
	ID     string
	Params []byte
}

// RequiredElicitations returns the elicitations that an error object demands; nil if it has another code, or lists them in a
// way that cannot be used.
func RequiredElicitations(errorObject []byte) (elicitations []URLElicitation) {
	if jsonrpc.ReadError(errorObject).Code != codeElicitRequired {
		return nil
	}
	list := rawjson.Member(rawjson.Member(errorObject, "data"), "elicitations")
	if !rawjson.IsArray(list) {
		return nil
	}
	all := rawjson.ArrayAt(list, 0, 0)
	for all.Next() {
		params := all.Skip()
		mode, _ := rawjson.Text(rawjson.Member(params, "mode"))
		id, _ := rawjson.Text(rawjson.Member(params, "elicitationId"))
		// 2025-11-25: "Any elicitations returned in the error MUST be URL mode elicitations and have an elicitationId
		// property."
		if mode != messages.ElicitURL || id == "" || len(elicitations) == MaxInputs {
			return nil
		}
		elicitations = append(elicitations, URLElicitation{id, params})
	}
	return elicitations
}
