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

// toolPage is one page of the tool list on its way.
type toolPage struct {
	// rev is the state of the list in which the listing began, from the place of the first tool.
	rev, from int
	tools     []tool
	last      bool
	// next is the next cursor as JSON, empty for none.
	next string
	// emptyCursor says that the page was asked for with the empty cursor.
	emptyCursor bool
	// delayed sends the page some time after it was made.
	delayed bool
}

// answerToolPage answers tools/list.
func (m *machine) answerToolPage(c *conn, q *message) {
	all := m.listedTools()
	p, ok := m.findPage(c, q.Params, len(all))
	if !ok {
		m.answerError(c, q, codeInvalidParams, "Invalid cursor", "")
		return
	}
	to := min(p.from+pageSize(len(all), m.cfg.Server.Pages), len(all))
	p.tools, p.last = all[p.from:to], to == len(all)
	if !p.last {
		p.next = encodeCursor(p.rev, to)
	}
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.editPage != nil {
			f.hooks.editPage(m, f, c, p)
		}
	}
	// An empty cursor that leads to all tools and an empty cursor is how some servers say that there is no more.
	complete := p.emptyCursor && p.next == `""` && len(p.tools) == len(all)
	if (p.next == "" || complete) && p.rev == m.list.rev {
		m.sendOrHold(c, Note{history.Event{Side: history.World, Kind: history.Listed, Conn: c.id, Rev: p.rev}})
	}
	a := &answer{q: q, result: []byte(p.encodePage(c.era)), page: p}
	if p.delayed {
		a.send.After = m.drawAround(max(m.cfg.Server.Latency, time.Millisecond))
	}
	m.sendAnswer(c, a)
}

// pageSize is how many tools stand on a page.
func pageSize(tools, pages int) int { return max((tools+pages-1)/pages, 1) }

// findPage finds the page that a cursor means: the first without one, an empty one behind the last with the empty one.
func (m *machine) findPage(c *conn, params json.RawMessage, tools int) (p *toolPage, ok bool) {
	var request struct {
		Cursor *string `json:"cursor"`
	}
	if params != nil && json.Unmarshal(params, &request) != nil {
		return nil, false
	}
	switch {
	case request.Cursor == nil:
		c.listingCount++
		c.listRev, c.secondPageAt = m.list.rev, 0
		return &toolPage{rev: c.listRev}, true
	case *request.Cursor == "" && c.secondPageAt > 0:
		return &toolPage{rev: c.listRev, from: min(c.secondPageAt, tools)}, true
	case *request.Cursor == "":
		return &toolPage{rev: c.listRev, from: tools, emptyCursor: true}, true
	}
	rev, from, ok := parseCursor(*request.Cursor)
	if !ok || from > tools && rev == m.list.rev {
		return nil, false
	}
	return &toolPage{rev: rev, from: min(from, tools)}, true // the list may have become shorter meanwhile
}

// encodeCursor names the state of the list in which the listing began, and the place of the page's first tool.
func encodeCursor(rev, from int) string { return quoteJSON(fmt.Sprintf("%d-%d", rev, from)) }

// parseCursor reads it. What stands behind a second dash makes cursors differ that mean the same.
func parseCursor(text string) (rev, from int, ok bool) {
	parts := strings.SplitN(text, "-", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	rev, revErr := strconv.Atoi(parts[0])
	from, fromErr := strconv.Atoi(parts[1])
	return rev, from, revErr == nil && fromErr == nil && from >= 0
}

// encodePage is the page as JSON.
func (p *toolPage) encodePage(era messages.Era) string {
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
