package sent

import (
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A listing holds the cursors of one list method.
type listing struct {
	// given holds the cursors that the server gave, and asked those that the client has sent since its list began.
	given, asked map[string]bool
	// names are those of the tools in the newest list that the server gave, nil before the first; begins is set until the first page of the next
	// one comes.
	names  map[string]bool
	begins bool
}

// listOf returns the cursors of a method, none at first.
func (c *conversation) listOf(method string) *listing {
	l := c.lists[method]
	if l == nil {
		l = &listing{given: map[string]bool{}, asked: map[string]bool{}}
		c.lists[method] = l
	}
	return l
}

// observeList remembers the cursor of a page. Beyond keptRequests it forgets, and receiveListRequest then judges unknown
// cursors no more.
func (c *conversation) observeList(method string, cursor json.RawMessage) {
	if l := c.listOf(method); cursor != nil && len(l.given) < keptRequests {
		l.given[textOf(cursor)] = true
	}
}

// observeTools remembers the names of a page of tools.
func (c *conversation) observeTools(tools json.RawMessage) {
	l := c.listOf("tools/list")
	if l.begins || l.names == nil {
		l.names, l.begins = map[string]bool{}, false
	}
	var page []struct{ Name string }
	_ = json.Unmarshal(tools, &page) // a result of another form has none
	for _, t := range page {
		if len(l.names) < keptRequests {
			l.names[t.Name] = true
		}
	}
}

// receiveListRequest judges the cursor of a request. A request without one begins a new list.
//
// 2025-11-25: "Clients MUST treat cursors as opaque tokens: Don't make assumptions about cursor format; Don't attempt to parse
// or modify cursors; Don't persist cursors across sessions".
func (c *conversation) receiveListRequest(m *message, r *request) {
	l, cursor := c.listOf(*m.Method), m.params["cursor"]
	if cursor == nil {
		clear(l.asked)
		l.begins = true
		return
	}
	text := textOf(cursor)
	switch {
	case len(cursor) == 0 || cursor[0] != '"':
		c.reportProblem("the cursor of %s is %s", *m.Method, messages.Line(string(cursor), 60))
	case !l.given[text] && len(l.given) < keptRequests:
		c.reportProblem("%s was asked for by the cursor %q, which it has not given", *m.Method, messages.Line(text, 60))
	case l.asked[text] && *m.Method == "tools/list" && !c.server.Headers: // there a call whose headers were refused lists beside another list
		c.reportProblem("%s was asked for by the cursor %q twice in one list", *m.Method, messages.Line(text, 60))
	}
	if !l.asked[text] {
		l.asked[text] = true
		r.takeBacks = append(r.takeBacks, func() { delete(l.asked, text) })
	}
}
