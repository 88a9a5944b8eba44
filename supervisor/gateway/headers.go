package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// paramPrefix begins the headers that repeat arguments, by the annotation x-mcp-header of their schema.
const paramPrefix = "Mcp-Param-"

// checkParamHeaders compares the headers of a request with the arguments that they repeat, as the definition of the tool says.
//
// 2026-07-28, Custom Headers: "Servers that process the request body MUST validate that header values match the corresponding values
// in the request body", and a header that is missing for an argument that is there is a mismatch. Headers that no definition names
// are left alone.
func (v *view) checkParamHeaders(r *serve.Request, shown string, args []byte) *serve.Error {
	if r.Header == nil || !r.Modern() {
		return nil
	}
	entry := v.currentTools().entries[shown]
	if entry == nil {
		return nil
	}
	properties := rawjson.Member(entry.Tool.InputSchema, "properties")
	if !rawjson.IsObject(properties) {
		return nil
	}
	for o := rawjson.ObjectAt(properties, 0, 0); o.Next(); {
		header, ok := rawjson.Text(rawjson.Member(o.Skip(), "x-mcp-header"))
		if !ok {
			continue
		}
		name := paramPrefix + header
		values := r.Header[http.CanonicalHeaderKey(name)]
		value := rawjson.Member(args, string(o.Name))
		matches := len(values) == 0
		if !rawjson.IsNull(value) {
			matches = len(values) == 1 && repeatsValue(values[0], value)
		}
		if !matches {
			return &serve.Error{Code: serve.CodeHeaderMismatch, Message: "the header " + name + " does not match the argument"}
		}
	}
	return nil
}

// repeatsValue reports whether a header has the value of an argument. Numbers may be written differently.
func repeatsValue(header string, value []byte) bool {
	got, ok := serve.DecodeHeader(header)
	if !ok {
		return false
	}
	if text, isText := rawjson.Text(value); isText {
		return got == text
	}
	if got == string(value) {
		return true
	}
	a, errA := strconv.ParseFloat(strings.TrimSpace(got), 64)
	b, errB := strconv.ParseFloat(string(value), 64)
	return errA == nil && errB == nil && a == b
}
