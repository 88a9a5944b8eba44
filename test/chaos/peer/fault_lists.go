package peer

import (
	"fmt"
	"slices"
	"strings"
)

// listFaults are the faults of the tool list.
var listFaults = map[string]hooks{
	"cursor-loop": {page: func(m *machine, f *fault, c *conn, p *page) {
		if !p.last {
			return
		}
		f.fired(m, c.id)
		p.next = cursor(p.rev, 0)
		if f.with.Text("what") == "endless" {
			f.times++
			p.next = quote(fmt.Sprintf("%d-0-%d", p.rev, f.times))
		}
	}},
	"empty-cursor": {page: func(m *machine, f *fault, c *conn, p *page) {
		if f.with.Text("what") == "second" {
			if p.from == 0 && !p.last && !p.blank {
				f.fired(m, c.id)
				c.second, p.next = len(p.tools), `""`
			}
			return
		}
		first := f.with.Text("what") == "first"
		if p.blank && first {
			f.fired(m, c.id)
			p.tools, p.next = m.firstPage(), `""`
		}
		if p.last && !p.blank {
			f.fired(m, c.id)
			p.next = `""`
		}
	}},
	"list-changed": {begin: func(m *machine, f *fault) {
		for range f.with.Int("times") {
			f.fired(m, 0)
			m.change(f.with.Text("what"))
			m.tellChanged()
		}
	}},
	"list-storm": {begin: func(m *machine, f *fault) {
		every, count := pace(f.with.Float("rate"))
		m.tick(f, every, func() {
			for range count {
				if f.with.Truth("change") {
					m.change("swap")
				}
				for _, c := range m.connections() {
					// What it could not say now would wait without a bound.
					if c.free() && c.wantsChanges() {
						f.fired(m, c.id)
						m.tellChangedOn(c)
					} else if f.with.Truth("change") {
						c.owes = true
					}
				}
			}
		})
	}},
	"change-during-list": {page: func(m *machine, f *fault, c *conn, p *page) {
		most := f.with.Int("times")
		if p.from > 0 || p.blank || most > 0 && f.perConn[c.id] >= most {
			return
		}
		f.perConn[c.id]++
		f.fired(m, c.id)
		p.tools = slices.Clone(p.tools)
		// A tool of the page that is on its way changes, so that what arrives is old whatever the later pages hold; and the
		// announcement arrives before the page does.
		m.change("first")
		m.tellChanged()
		p.late = true
	}},
	"quiet-change": {
		begin: func(m *machine, f *fault) {
			for _, c := range m.connections() {
				if c.lists > 0 {
					f.fired(m, c.id)
				}
			}
			m.change("swap")
		},
		end: func(m *machine, _ *fault) { m.tellChanged() },
	},
	"duplicate-names": adding(func(f *fault, all []tool) (more []tool) {
		for _, t := range all[:min(f.with.Int("count"), len(all))] {
			if f.with.Text("what") == "alike" {
				more = append(more, define(t.name+".too", "Has nearly the name of another.", ""),
					define(t.name+"_too", "Has nearly the name of another.", ""))
				continue
			}
			more = append(more, define(t.name, "Has the name of another.", ""))
		}
		return more
	}),
	"long-names": adding(func(f *fault, _ []tool) (more []tool) {
		length := min(max(f.with.Int("length"), 20), 1000)
		for i := range f.with.Int("count") {
			name := fmt.Sprintf("long-%d-", i+1)
			t := define(name+strings.Repeat("n", length-len(name)), "Has a long name.", "")
			t.broken = length > 128 // 2025-11-25: "Tool names SHOULD be between 1 and 128 characters in length (inclusive)."
			more = append(more, t)
		}
		return more
	}),
	"bad-schema": adding(func(f *fault, _ []tool) (more []tool) {
		for i := range f.with.Int("count") {
			name := fmt.Sprintf("bad-%d", i+1)
			more = append(more, tool{name: name, definition: badDefinition(name, f.with.Text("what")), broken: true})
		}
		return more
	}),
}

// badDefinition is a tool that cannot be used.
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
		return `{"name":` + quote(name) + `,"description":"` + strings.Repeat("x", 1<<20) + `","inputSchema":` + toolInput + `}`
	}
	return `{"name":` + quote(name) + `,"description":"Has a broken schema.","inputSchema":` + schema + `}`
}

// adding is a fault by which there are more tools while it lasts. It has an effect each time that a client is sent one of
// them.
func adding(more func(f *fault, all []tool) []tool) hooks {
	switched := func(m *machine, _ *fault) {
		m.changed()
		m.tellChanged()
	}
	return hooks{
		begin: switched,
		tools: func(f *fault, all []tool) []tool {
			extra := more(f, all)
			for i := range extra {
				extra[i].from = f
			}
			return append(all, extra...)
		},
		page: func(m *machine, f *fault, c *conn, p *page) {
			if slices.ContainsFunc(p.tools, func(t tool) bool { return t.from == f }) {
				f.fired(m, c.id)
			}
		},
		end: switched,
	}
}

// change makes another list of the true one, of about the same length: what comes is called after the change that
// brought it.
func (m *machine) change(what string) {
	l := &m.list
	l.changes++
	fresh := define(fmt.Sprintf("changed-%d", l.changes), "Came with a change.", "")
	last := len(l.tools) - 1
	switch extra := last >= m.cfg.Server.Tools; {
	case what == "add", what == "swap" && !extra:
		l.tools = append(l.tools[:last+1:last+1], fresh)
	case what == "remove" && last > 0:
		l.tools = l.tools[:last:last]
	case what == "swap":
		l.tools = append(l.tools[:last:last], fresh)
	default:
		which := last
		if what == "first" {
			which = 0
		}
		l.tools = slices.Clone(l.tools)
		l.tools[which] = l.tools[which].described(fmt.Sprintf("Was described anew by change %d.", l.changes))
	}
	m.changed()
}

// firstPage are the tools of the first page.
func (m *machine) firstPage() []tool {
	all := m.listed()
	return all[:min(pageSize(len(all), m.cfg.Server.Pages), len(all))]
}
