package peer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// headerParam is an argument that is to be repeated in a header: the way to it, its schema without the keyword, and what its
// header is called.
type headerParam struct{ path, schema, header string }

// headerParams are the arguments of each tool of a server that says headers. The names of their headers change with the list, so that a
// call by an older list does not fit.
func headerParams(rev int) []headerParam {
	state := "-" + strconv.Itoa(rev)
	return []headerParam{
		{"call", `"type":"string"`, "Call" + state}, {"size", `"type":"integer","minimum":0`, "Size" + state},
		{"note", `"type":["string","null"]`, "Note" + state}, {"at.deep", `"type":"boolean"`, "Deep" + state},
	}
}

// headerInput is toolInput with the keyword x-mcp-header.
func headerInput(rev int) string {
	member := func(p headerParam) string {
		return quoteJSON(p.path[strings.LastIndexByte(p.path, '.')+1:]) + `:{` + p.schema + `,"x-mcp-header":` + quoteJSON(p.header) + `}`
	}
	all := headerParams(rev)
	return `{"type":"object","properties":{` + member(all[0]) + "," + member(all[1]) + "," + member(all[2]) +
		`,"at":{"type":"object","properties":{` + member(all[3]) + `}}}}`
}

// unusableHeaderInputs are schemas that ask for headers as no server may. A client that speaks HTTP does not offer such a tool.
var unusableHeaderInputs = []string{
	`{"type":"object","x-mcp-header":"Root"}`,
	`{"type":"object","properties":{"call":{"type":"string","x-mcp-header":""}}}`,
	`{"type":"object","properties":{"call":{"type":"string","x-mcp-header":7}}}`,
	`{"type":"object","properties":{"call":{"type":"string","x-mcp-header":"two words"}}}`,
	`{"type":"object","properties":{"size":{"type":"number","x-mcp-header":"Size"}}}`,
	`{"type":"object","properties":{"call":{"type":"string","x-mcp-header":"Same"},"size":{"type":"integer","x-mcp-header":"same"}}}`,
	`{"type":"object","properties":{"all":{"type":"array","items":{"type":"string","x-mcp-header":"Item"}}}}`,
	`{"type":"object","anyOf":[{"properties":{"call":{"type":"string","x-mcp-header":"Call"}}}]}`,
	`{"type":"object","$defs":{"one":{"type":"string","x-mcp-header":"One"}}}`,
}

// asksForHeaders reports whether the server checks headers of arguments now: over HTTP in the modern era.
func (m *machine) asksForHeaders() bool {
	return m.cfg.Server.Headers && m.cfg.Server.Kind == messages.HTTP && m.currentEra() == messages.EraModern
}

// withHeaderParams is the tools with their headers, and one that no client may offer where headers count.
func (m *machine) withHeaderParams(tools []tool) []tool {
	if !m.cfg.Server.Headers {
		return tools
	}
	all := make([]tool, 0, len(tools)+1)
	for _, t := range tools {
		t.definition = strings.Replace(t.definition, toolInput, headerInput(m.list.rev), 1)
		all = append(all, t)
	}
	if m.asksForHeaders() {
		input := unusableHeaderInputs[m.list.rev%len(unusableHeaderInputs)]
		all = append(all, tool{name: "unusable", definition: `{"name":"unusable","inputSchema":` + input + `}`, broken: true})
	}
	return all
}

// changeHeaderParams makes the list another one where headers count in one era and not in the other.
func (m *machine) changeHeaderParams() {
	if m.cfg.Server.Headers {
		m.recordListChange()
	}
}

// paramMismatch says which header of an argument is missing or contradicts it, empty if none does.
//
// 2026-07-28, Custom Headers from Tool Parameters: "Servers MUST reject requests where the header value does not match the body".
func (m *machine) paramMismatch(q *message) string {
	if q.Method != "tools/call" || !m.asksForHeaders() {
		return ""
	}
	var p struct {
		Arguments map[string]json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(q.Params, &p) // what has no arguments has no headers
	for _, h := range headerParams(m.list.rev) {
		value := p.Arguments[h.path]
		if outer, inner, nested := strings.Cut(h.path, "."); nested {
			var members map[string]json.RawMessage
			_ = json.Unmarshal(p.Arguments[outer], &members) // what is no object has no members
			value = members[inner]
		}
		name := http.CanonicalHeaderKey("Mcp-Param-" + h.header)
		got, present := q.header[name]
		want, needed := headerValueOf(value)
		switch {
		case needed && !present:
			return name + " is missing"
		case !needed && present:
			return name + " has a value, and its argument has none"
		case needed && decodeHeader(got) != want:
			return fmt.Sprintf("%s is %q, and its argument %q", name, messages.Line(got, 60), messages.Line(want, 60))
		}
	}
	return ""
}

// headerValueOf is an argument as a header has it, not needed if it has none.
func headerValueOf(value json.RawMessage) (text string, needed bool) {
	if value == nil || string(value) == "null" {
		return "", false
	}
	if json.Unmarshal(value, &text) == nil {
		return text, true
	}
	return string(value), true
}

// headerPatience bounds the time after a list in which a client may still make calls by the list before: calls may have waited.
const headerPatience = 10 * time.Second

// checkParamMismatch judges a call whose headers do not fit: its client was given the newest list long ago, and nothing broke since.
func (m *machine) checkParamMismatch(c *conn, problem string) {
	if c.listedRev == m.list.rev && m.now > c.listedAt+headerPatience && len(m.activeFaults) == 0 && m.lastFaultAt < c.listedAt {
		m.reportViolation("a call came with headers that do not fit its arguments by the list that it was given at " + c.listedAt.String() + ": " + problem)
	}
}
