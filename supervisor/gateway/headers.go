package gateway

import (
	"net/http"

	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// checkParamHeaders compares the headers of a call with the arguments that they repeat, as the definition of the tool says (x-mcp-header).
// Headers that it does not name are left alone.
func (v *view) checkParamHeaders(r *serve.Request, shown string, args []byte) *serve.Error {
	if r.Header == nil || !r.Modern() {
		return nil
	}
	entry := v.currentTools().find(shown)
	if entry == nil {
		return nil
	}
	if name := wire.FindHeaderMismatch(entry.Tool.InputSchema, args, decodeValues(r.Header)); name != "" {
		return &serve.Error{Code: serve.CodeHeaderMismatch, Message: "the header " + name + " does not match the argument"}
	}
	return nil
}

// decodeValues returns what the headers of a request with a name stand for; ok is false if one of them stands for nothing.
func decodeValues(h http.Header) func(name string) (values []string, ok bool) {
	return func(name string) (values []string, ok bool) {
		for _, written := range h.Values(name) {
			value, ok := serve.DecodeHeader(written)
			if !ok {
				return nil, false
			}
			values = append(values, value)
		}
		return values, true
	}
}
