package peer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// page is one page of the tool list on its way.
type page struct {
	// rev is the state of the list in which the listing began, from the place of the first tool.
	rev, from int
	tools     []tool
	last      bool
	// next is the next cursor as JSON, empty for none.
	next string
	// blank says that the page was asked for with the empty cursor.
	blank bool
	// late sends the page some time after it was made.
	late bool
}

// page answers tools/list.
func (m *machine) page(c *conn, q *message) {
	all := m.listed()
	p, ok := m.turnTo(c, q.Params, len(all))
	if !ok {
		m.refuse(c, q, codeInvalidParams, "Invalid cursor", "")
		return
	}
	to := min(p.from+pageSize(len(all), m.cfg.Server.Pages), len(all))
	p.tools, p.last = all[p.from:to], to == len(all)
	if !p.last {
		p.next = cursor(p.rev, to)
	}
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.page != nil {
			f.hooks.page(m, f, c, p)
		}
	}
	// An empty cursor that leads to all tools and an empty cursor is how some servers say that there is no more.
	whole := p.blank && p.next == `""` && len(p.tools) == len(all)
	if (p.next == "" || whole) && p.rev == m.list.rev {
		m.say(c, Note{history.Event{Side: history.World, Kind: history.Listed, Conn: c.id, Rev: p.rev}})
	}
	a := &answer{q: q, result: []byte(p.result(c.era)), page: p}
	if p.late {
		a.send.After = m.about(max(m.cfg.Server.Latency, time.Millisecond))
	}
	m.answer(c, a)
}

// pageSize is how many tools stand on a page.
func pageSize(tools, pages int) int { return max((tools+pages-1)/pages, 1) }

// turnTo finds the page that a cursor means: the first without one, an empty one behind the last with the empty one.
func (m *machine) turnTo(c *conn, params json.RawMessage, tools int) (p *page, ok bool) {
	var asked struct {
		Cursor *string `json:"cursor"`
	}
	if params != nil && json.Unmarshal(params, &asked) != nil {
		return nil, false
	}
	switch {
	case asked.Cursor == nil:
		c.lists++
		c.rev, c.second = m.list.rev, 0
		return &page{rev: c.rev}, true
	case *asked.Cursor == "" && c.second > 0:
		return &page{rev: c.rev, from: min(c.second, tools)}, true
	case *asked.Cursor == "":
		return &page{rev: c.rev, from: tools, blank: true}, true
	}
	rev, from, ok := readCursor(*asked.Cursor)
	if !ok || from > tools && rev == m.list.rev {
		return nil, false
	}
	return &page{rev: rev, from: min(from, tools)}, true // the list may have become shorter meanwhile
}

// cursor names the state of the list in which the listing began, and the place of the page's first tool.
func cursor(rev, from int) string { return quote(fmt.Sprintf("%d-%d", rev, from)) }

// readCursor reads it. What stands behind a second dash makes cursors differ that mean the same.
func readCursor(text string) (rev, from int, ok bool) {
	parts := strings.SplitN(text, "-", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	rev, wrong := strconv.Atoi(parts[0])
	from, wrongToo := strconv.Atoi(parts[1])
	return rev, from, wrong == nil && wrongToo == nil && from >= 0
}

// result is the page as JSON.
func (p *page) result(era messages.Era) string {
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
	if era == messages.EraModern {
		b.WriteString(`,"ttlMs":0,"cacheScope":"private"`)
	}
	b.WriteByte('}')
	return b.String()
}
