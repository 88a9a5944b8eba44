package peer

import (
	"fmt"
	"slices"
	"strings"
)

// listFaults are the hooks of the faults of the tool list.
var listFaults = map[string]hooks{
	"cursor-loop": {editPage: func(m *machine, f *fault, c *conn, p *toolPage) {
		if !p.last {
			return
		}
		f.recordFired(m, c.id)
		// The last page points back at the first; with "endless" each cursor is a new one, so that a client that only remembers
		// cursors never stops.
		p.next = encodeCursor(p.rev, 0)
		if f.params.Text("what") == "endless" {
			f.effectCount++
			p.next = quoteJSON(fmt.Sprintf("%d-0-%d", p.rev, f.effectCount))
		}
	}},
	"list-error": {onMessage: func(m *machine, f *fault, c *conn, q *message) bool {
		if q.Method != "tools/list" || !f.drawChance(m) {
			return false
		}
		f.recordFired(m, c.id)
		m.answerError(c, q, -f.params.Int("code"), "the list cannot be read", "")
		return true
	}},
	"empty-cursor": {editPage: func(m *machine, f *fault, c *conn, p *toolPage) {
		if f.params.Text("what") == "second" {
			if p.from == 0 && !p.last && !p.emptyCursor {
				f.recordFired(m, c.id)
				c.secondPageAt, p.next = len(p.tools), `""`
			}
			return
		}
		// With "first" the empty cursor leads to the first page again, and that page names it again.
		first := f.params.Text("what") == "first"
		if p.emptyCursor && first {
			f.recordFired(m, c.id)
			p.tools, p.next = m.firstPage(), `""`
		}
		if p.last && !p.emptyCursor {
			f.recordFired(m, c.id)
			p.next = `""`
		}
	}},
	"list-changed": {onBegin: func(m *machine, f *fault) {
		for range f.params.Int("times") {
			f.recordFired(m, 0)
			m.changeTools(f.params.Text("what"))
			m.notifyListChanged()
		}
	}},
	"list-storm": {onBegin: func(m *machine, f *fault) {
		every, count := splitRate(f.params.Float("rate"))
		m.repeatWhileActive(f, every, func() {
			for range count {
				if f.params.Bool("change") {
					m.changeTools("swap")
				}
				for _, c := range m.sortedConns() {
					// A list that changes while the connection is held up owes its client one notice; queueing each would need
					// memory without a bound.
					if c.isUnblocked() && c.wantsChanges() {
						f.recordFired(m, c.id)
						m.notifyConnChanged(c)
					} else if f.params.Bool("change") {
						c.owesNotice = true
					}
				}
			}
		})
	}},
	"change-during-list": {editPage: func(m *machine, f *fault, c *conn, p *toolPage) {
		most := f.params.Int("times")
		if p.from > 0 || p.emptyCursor || most > 0 && f.countPerConn[c.id] >= most {
			return
		}
		f.countPerConn[c.id]++
		f.recordFired(m, c.id)
		p.tools = slices.Clone(p.tools)
		// A tool of the page under way changes, so that this page is outdated whatever the later pages hold; and the
		// announcement reaches the client before the page does.
		m.changeTools("first")
		m.notifyListChanged()
		p.delayed = true
	}},
	"quiet-change": {
		onBegin: func(m *machine, f *fault) {
			// The change affects only a client that has listed before; others read the new list anyway.
			for _, c := range m.sortedConns() {
				if c.listingCount > 0 {
					f.recordFired(m, c.id)
				}
			}
			m.changeTools("swap")
		},
		onEnd: func(m *machine, _ *fault) { m.notifyListChanged() },
	},
	"duplicate-names": extraToolHooks(func(f *fault, all []tool) (more []tool) {
		for _, t := range all[:min(f.params.Int("count"), len(all))] {
			if f.params.Text("what") == "alike" {
				more = append(more, newTool(t.name+".too", "Has nearly the name of another.", ""),
					newTool(t.name+"_too", "Has nearly the name of another.", ""))
				continue
			}
			more = append(more, newTool(t.name, "Has the name of another.", ""))
		}
		return more
	}),
	"long-names": extraToolHooks(func(f *fault, _ []tool) (more []tool) {
		length := min(max(f.params.Int("length"), 20), 1000)
		for i := range f.params.Int("count") {
			name := fmt.Sprintf("long-%d-", i+1)
			t := newTool(name+strings.Repeat("n", length-len(name)), "Has a long name.", "")
			// 2025-11-25: "Tool names SHOULD be between 1 and 128 characters in length (inclusive)."
			t.broken = length > 128 // 2025-11-25: "Tool names SHOULD be between 1 and 128 characters in length (inclusive)."
			more = append(more, t)
		}
		return more
	}),
	"bad-schema": extraToolHooks(func(f *fault, _ []tool) (more []tool) {
		for i := range f.params.Int("count") {
			name := fmt.Sprintf("bad-%d", i+1)
			more = append(more, tool{name: name, definition: badDefinition(name, f.params.Text("what")), broken: true})
		}
		return more
	}),
}

// badDefinition returns the JSON of a tool that a client must reject, by the kind of mistake.
func badDefinition(name, what string) string {
	schema := map[string]string{
		"type":       `{"type":"string"}`,
		"array":      `[]`,
		"properties": `{"type":"object","properties":["call"]}`,
		"required":   `{"type":"object","required":[1]}`,
		"text":       `"object"`,
	}[what]
	switch what {
	case "name":
		return `{"description":"Has no name.","inputSchema":` + toolInput + `}`
	case "huge":
		return `{"name":` + quoteJSON(name) + `,"description":"` + strings.Repeat("x", 1<<20) + `","inputSchema":` + toolInput + `}`
	}
	return `{"name":` + quoteJSON(name) + `,"description":"Has a broken schema.","inputSchema":` + schema + `}`
}

// extraToolHooks returns the hooks of a fault that adds tools while it lasts. The fault has an effect each time the server
// sends one of them to a client.
func extraToolHooks(more func(f *fault, all []tool) []tool) hooks {
	announceChange := func(m *machine, _ *fault) {
		m.recordListChange()
		m.notifyListChanged()
	}
	return hooks{
		onBegin: announceChange,
		// from marks the tools, so that editPage can tell a page that shows them.
		editTools: func(f *fault, all []tool) []tool {
			extra := more(f, all)
			for i := range extra {
				extra[i].from = f
			}
			return append(all, extra...)
		},
		editPage: func(m *machine, f *fault, c *conn, p *toolPage) {
			if slices.ContainsFunc(p.tools, func(t tool) bool { return t.from == f }) {
				f.recordFired(m, c.id)
			}
		},
		onEnd: announceChange,
	}
}

// changeTools changes the true tool list and keeps its length within one of the configured count, so that a long storm does not
// grow it. A new tool bears the number of the change that brought it.
func (m *machine) changeTools(what string) {
	l := &m.list
	l.changes++
	fresh := newTool(fmt.Sprintf("changed-%d", l.changes), "Came with a change.", "")
	last := len(l.tools) - 1
	switch extra := last >= m.cfg.Server.Tools; {
	case what == "add", what == "swap" && !extra:
		l.tools = append(l.tools[:last+1:last+1], fresh)
	case what == "remove" && last > 0:
		l.tools = l.tools[:last:last]
	case what == "swap":
		l.tools = append(l.tools[:last:last], fresh)
	case what == "meta":
		l.tools = slices.Clone(l.tools)
		l.tools[last] = l.tools[last].withMeta(l.changes)
	default:
		// The remaining kinds describe one tool anew: "first" the first, others the last.
		which := last
		if what == "first" {
			which = 0
		}
		l.tools = slices.Clone(l.tools)
		l.tools[which] = l.tools[which].withDescription(fmt.Sprintf("Was described anew by change %d.", l.changes))
	}
	m.recordListChange()
}

// firstPage returns the tools of the first page, for the empty cursor that leads back to it.
func (m *machine) firstPage() []tool {
	all := m.listedTools()
	return all[:min(pageSize(len(all), m.cfg.Server.Pages), len(all))]
}
