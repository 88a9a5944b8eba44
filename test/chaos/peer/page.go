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

// toolPage is one page of the tool list between its making and its sending, where the faults may change it.
type toolPage struct {
	// rev is the revision of the list in which the listing began, from the index of the page's first tool.
	rev, from int
	tools     []tool
	last      bool
	// next is the next cursor as a JSON string, empty for none.
	next string
	// emptyCursor is set if the client asked for the page with the empty cursor.
	emptyCursor bool
	// delayed sends the page after an extra time, so that a notification of the same turn overtakes it.
	delayed bool
}

// answerToolPage answers tools/list. It records Listed with the last page, if the list has not changed since the first: only
// then does the client hold one consistent list.
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
	// Some servers say "no more" with an empty cursor that leads to all tools and the empty cursor again; that page is a whole
	// list too.
	complete := p.emptyCursor && p.next == `""` && len(p.tools) == len(all)
	if (p.next == "" || complete) && p.rev == m.list.rev {
		c.listedRev, c.listedAt = p.rev, m.now
		m.sendOrHold(c, Note{history.Event{Side: history.World, Kind: history.Listed, Conn: c.id, Rev: p.rev}})
	}
	a := &answer{q: q, result: []byte(p.encodePage(c.era)), page: p}
	if p.delayed {
		a.send.After = m.drawAround(max(m.cfg.Server.Latency, time.Millisecond))
	}
	m.sendAnswer(c, a)
}

// pageSize returns how many tools fit on a page, at least one.
func pageSize(tools, pages int) int { return max((tools+pages-1)/pages, 1) }

// findPage finds the page of a cursor: the first page without one, by default an empty page behind the last for the empty
// cursor. ok is false for params or a cursor that the server never gave out.
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
	// The list may have become shorter since the cursor was given out.
	return &toolPage{rev: rev, from: min(from, tools)}, true
}

// encodeCursor encodes the revision of the list and the index of the page's first tool. The end of it says nothing: a client must give it back as it
// is, also what JSON escapes.
func encodeCursor(rev, from int) string {
	return quoteJSON(fmt.Sprintf("%d-%d-%s", rev, from, escaped))
}

// escaped ends each cursor.
const escaped = "\"\\é"

// parseCursor reads what encodeCursor wrote. It ignores a third part, by which cursor-loop makes cursors differ that mean the
// same page.
func parseCursor(text string) (rev, from int, ok bool) {
	parts := strings.SplitN(text, "-", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	rev, revErr := strconv.Atoi(parts[0])
	from, fromErr := strconv.Atoi(parts[1])
	return rev, from, revErr == nil && fromErr == nil && from >= 0
}

// encodePage encodes the page as the result of tools/list.
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
