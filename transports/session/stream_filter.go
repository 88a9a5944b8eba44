package session

// A streamFilter is the set of notifications that a stream asks for.
type streamFilter struct {
	// tools, prompts and resources ask for the changes of these lists; uris are watched resources.
	tools, prompts, resources bool
	uris                      []string
}

// appendParams appends the params of the request, without braces: the notifications that the stream wants.
//
// 2026-07-28, Subscriptions: "All fields are optional. Omitting a field is equivalent to not subscribing to that
// notification type."
func (w *streamFilter) appendParams(b []byte) []byte {
	b = append(b, `"notifications":{`...)
	empty := len(b)
	for _, f := range []struct {
		wanted bool
		name   string
	}{{w.tools, "toolsListChanged"}, {w.prompts, "promptsListChanged"}, {w.resources, "resourcesListChanged"}} {
		if f.wanted {
			b = append(appendString(appendComma(b, empty), f.name), `:true`...)
		}
	}
	if len(w.uris) > 0 {
		b = append(appendComma(b, empty), `"resourceSubscriptions":[`...)
		list := len(b)
		for _, uri := range w.uris {
			b = appendString(appendComma(b, list), uri)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}
