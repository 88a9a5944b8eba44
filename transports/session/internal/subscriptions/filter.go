package subscriptions

import "github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"

// A Filter is the set of notifications that a stream asks for.
type Filter struct {
	// Tools, Prompts and Resources ask for the changes of these lists; URIs are watched resources.
	Tools, Prompts, Resources bool
	URIs                      []string
}

// AppendParams appends the params of the request, without braces: the notifications that the stream wants.
//
// 2026-07-28, Subscriptions: "All fields are optional. Omitting a field is equivalent to not subscribing to that
// notification type."
func (w *Filter) AppendParams(b []byte) []byte {
	b = append(b, `"notifications":{`...)
	empty := len(b)
	for _, f := range []struct {
		wanted bool
		name   string
	}{{w.Tools, "toolsListChanged"}, {w.Prompts, "promptsListChanged"}, {w.Resources, "resourcesListChanged"}} {
		if f.wanted {
			b = append(jsonrpc.AppendString(jsonrpc.AppendComma(b, empty), f.name), `:true`...)
		}
	}
	if len(w.URIs) > 0 {
		b = append(jsonrpc.AppendComma(b, empty), `"resourceSubscriptions":[`...)
		list := len(b)
		for _, uri := range w.URIs {
			b = jsonrpc.AppendString(jsonrpc.AppendComma(b, list), uri)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}
