package peer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// tool is one entry of the list as it is sent. broken says that no client can use it: it is no part of the true list.
type tool struct {
	name       string
	definition string
	broken     bool
}

const (
	toolInput = `{"type":"object","properties":{"call":{"type":"string"},"size":{"type":"integer","minimum":0}}}`
	// toolOutput is the schema of the structured result.
	toolOutput = `{"type":"object","properties":{"value":{"type":"integer"}},"required":["value"]}`
)

// define makes a tool. hint is a member of its annotations, or empty.
func define(name, description, hint string) tool {
	d := `{"name":` + quote(name) + `,"description":` + quote(description) + `,"inputSchema":` + toolInput +
		`,"outputSchema":` + toolOutput
	if hint != "" {
		d += `,"annotations":{` + quote(hint) + `:true}`
	}
	return tool{name: name, definition: d + "}"}
}

// list is the server's true tool list.
type list struct {
	tools []tool
	// rev counts its states, from 1; told says that the first one has been noted.
	rev  int
	told bool
	// changes counts what the changes made, for their names.
	changes int
}

func (l *list) fill(count int) {
	l.rev = 1
	l.tools = []tool{
		define("read", "Reads how often it was read.", "readOnlyHint"),
		define("put", "Puts a value where it may be already.", "idempotentHint"),
		define("write", "Writes one more value.", ""),
	}
	for i := 3; i < count; i++ {
		l.tools = append(l.tools, define(fmt.Sprintf("tool-%d", i), "Does what write does.", ""))
	}
	l.tools = l.tools[:min(count, len(l.tools))]
}

// announce notes the first state of the list before anything else is noted.
func (m *machine) announce() {
	if !m.list.told {
		m.list.told = true
		m.noteList()
	}
}

// changed notes that the list is another one now.
func (m *machine) changed() {
	m.announce()
	m.list.rev++
	m.noteList()
}

// noteList notes the list as a client that makes no mistake sees it: of two tools with one name the first, and none that
// cannot be used.
func (m *machine) noteList() {
	var names []string
	var tools []messages.Tool
	for _, t := range m.listed() {
		if !t.broken && !slices.Contains(names, t.name) {
			names = append(names, t.name)
			tools = append(tools, messages.Tool{Name: t.name, Raw: json.RawMessage(t.definition)})
		}
	}
	slices.Sort(names)
	m.note(history.Event{Kind: history.Changed, Rev: m.list.rev, Hash: history.HashTools(tools), Names: names})
}

// listed is the list as it is sent, with what the faults add to it.
func (m *machine) listed() []tool {
	all := m.list.tools
	for _, f := range m.faults {
		if f.hooks.tools != nil {
			all = f.hooks.tools(m, f, slices.Clip(all))
		}
	}
	return all
}

// find is the tool that a name means.
func (m *machine) find(name string) (tool, bool) {
	all := m.listed()
	i := slices.IndexFunc(all, func(t tool) bool { return t.name == name })
	if i < 0 {
		return tool{}, false
	}
	return all[i], true
}

// page answers tools/list. A cursor names the state of the list in which the listing began and the place of the page's
// first tool.
func (m *machine) page(c *conn, q *message) {
	rev, from, ok := readCursor(q.Params, m.list.rev)
	all := m.listed()
	if !ok || from > len(all) {
		m.refuse(c, q, codeInvalidParams, "Invalid cursor", "")
		return
	}
	if from == 0 {
		c.lists++
	}
	size := max((len(all)+m.cfg.Server.Pages-1)/m.cfg.Server.Pages, 1)
	to := min(from+size, len(all))
	p := &page{rev: rev, from: from, tools: all[from:to], last: to == len(all)}
	if !p.last {
		p.next = quote(fmt.Sprintf("%d-%d", rev, to))
	}
	for _, f := range m.faults {
		if f.hooks.page != nil && !m.over(c) {
			f.hooks.page(m, f, c, p)
		}
	}
	if p.next == "" && p.rev == m.list.rev {
		m.say(c, Note{history.Event{Side: history.World, Kind: history.Listed, Conn: c.id, Rev: p.rev}})
	}
	m.result(c, q, p.result(c))
}

// page is one page of the list on its way.
type page struct {
	rev, from int
	tools     []tool
	last      bool
	// next is the next cursor as JSON, empty for none.
	next string
}

func (p *page) result(c *conn) string {
	b := new(strings.Builder)
	b.WriteString(`{"tools":[`)
	for i, t := range p.tools {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.definition)
	}
	b.WriteByte(']')
	if p.next != "" {
		b.WriteString(`,"nextCursor":` + p.next)
	}
	if c.era == messages.EraModern {
		b.WriteString(`,"ttlMs":0,"cacheScope":"private"`)
	}
	b.WriteByte('}')
	return b.String()
}

func readCursor(params json.RawMessage, now int) (rev, from int, ok bool) {
	var p struct {
		Cursor *string `json:"cursor"`
	}
	if params == nil || json.Unmarshal(params, &p) == nil && p.Cursor == nil {
		return now, 0, true
	}
	if p.Cursor == nil || !utf8.ValidString(*p.Cursor) {
		return 0, 0, false
	}
	r, f, _ := strings.Cut(*p.Cursor, "-")
	rev, err := strconv.Atoi(r)
	if err != nil {
		return 0, 0, false
	}
	from, err = strconv.Atoi(f)
	return rev, from, err == nil && from >= 0
}
