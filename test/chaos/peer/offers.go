package peer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// stock is what a server has beside tools, over all connections. It is another one after every second read: one resource and one prompt
// more, up to mostItems, and another text in those that there are.
type stock struct {
	rev, reads int
	told       bool // the first state is noted
}

const (
	mostItems = 7
	// perPage is how many stand on one page of a list.
	perPage = 3
)

// offerCapability is what a server that has more than tools says of that.
func (m *machine) offerCapability() string {
	if !m.cfg.Server.Offers {
		return ""
	}
	return `,"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{}`
}

// offering are the methods of what a server may have beside tools.
func offering(method string) bool {
	return strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "prompts/") || method == "completion/complete"
}

// noteStock notes which state of them there is.
func (m *machine) noteStock() {
	m.note(history.Event{Kind: history.Offered, Rev: m.stock.rev})
}

// items are the names of what there is now, the newest last, of a kind.
func (s *stock) items(prefix string) (names []string) {
	for i := max(1, s.rev-mostItems+1); i <= s.rev; i++ {
		names = append(names, prefix+strconv.Itoa(i))
	}
	return names
}

// offer answers a request about resources, prompts and completion.
func (m *machine) offer(c *conn, q *message) {
	var p struct {
		URI    string `json:"uri"`
		Name   string `json:"name"`
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(q.Params, &p) // what names nothing asks for nothing
	// 2026-07-28: lists and what is read say how long they may be kept.
	keep := ""
	if c.era == messages.EraModern {
		keep = `,"ttlMs":1000,"cacheScope":"private"`
	}
	base := "chaos://" + m.cfg.Server.Name + "/"
	if !m.stock.told {
		m.stock.told, m.stock.rev = true, 1
		m.noteStock()
	}
	switch q.Method {
	case "resources/list":
		all := []string{`{"uri":` + quote(base+"one") + `,"name":"one","mimeType":"text/plain","size":12,` +
			`"annotations":{"audience":["user"],"priority":0.5},"icons":[{"src":"https://icons.sim/one.png","sizes":["48x48"]}]}`,
			`{"name":"without an address"}`}
		for _, name := range m.stock.items("item-") {
			all = append(all, `{"uri":`+quote(base+name)+`,"name":`+quote(name)+`,"title":"An item","description":"One more."}`)
		}
		m.listOf(c, q, "resources", all, p.Cursor, keep)
	case "resources/templates/list":
		m.listOf(c, q, "resourceTemplates", []string{`{"uriTemplate":` + quote(base+"{name}") + `,"name":"any","mimeType":"text/plain",` +
			`"annotations":{"lastModified":"2026-08-01T00:00:00Z"}}`}, p.Cursor, keep)
	case "prompts/list":
		all := []string{`{"name":"greet","title":"Greets","arguments":[{"name":"who","description":"Whom.","required":true}]}`}
		for _, name := range m.stock.items("greet-") {
			all = append(all, `{"name":`+quote(name)+`}`)
		}
		m.listOf(c, q, "prompts", all, p.Cursor, keep)
	case "resources/read":
		if name, own := strings.CutPrefix(p.URI, base); !own || name != "one" && !strings.HasPrefix(name, "item-") {
			m.refuse(c, q, -32002, "Resource not found", `{"uri":`+quote(p.URI)+`}`)
			return
		}
		m.readOut(c, q, func() string {
			return `{"contents":[{"uri":` + quote(p.URI) + `,"mimeType":"text/plain","text":` + quote(m.state()) +
				`},{"uri":` + quote(p.URI) + `,"mimeType":"image/png","blob":"AAAA"}]` + keep + `}`
		})
	case "resources/subscribe", "resources/unsubscribe":
		c.subscribed = q.Method == "resources/subscribe"
		m.result(c, q, "{}")
	case "prompts/get":
		if !strings.HasPrefix(p.Name, "greet") {
			m.refuse(c, q, codeInvalidParams, "Unknown prompt: "+p.Name, "")
			return
		}
		m.readOut(c, q, func() string {
			return `{"description":"A greeting","messages":[{"role":"user","content":{"type":"text","text":` + quote(m.state()) + `}}]}`
		})
	case "completion/complete":
		m.result(c, q, `{"completion":{"values":["one"],"total":1,"hasMore":false}}`)
	default:
		m.refuse(c, q, codeNoMethod, "Method not found: "+q.Method, "")
	}
}

// state is the text of everything that can be read.
func (m *machine) state() string {
	return "state " + strconv.Itoa(m.stock.rev) + " of " + m.cfg.Server.Name
}

// listOf answers with one page of a list. A cursor is the place of the page's first entry, and the state of the list: of one that has changed
// since there is no further page.
func (m *machine) listOf(c *conn, q *message, member string, all []string, cursor, keep string) {
	from, rev := 0, m.stock.rev
	if cursor != "" {
		if n, err := fmt.Sscanf(cursor, "%d of %d", &from, &rev); n != 2 || err != nil || rev != m.stock.rev || from > len(all) {
			m.refuse(c, q, codeInvalidParams, "Invalid cursor", "")
			return
		}
	}
	to, next := min(from+perPage, len(all)), ""
	if to < len(all) {
		next = `,"nextCursor":` + quote(fmt.Sprintf("%d of %d", to, rev))
	}
	m.result(c, q, `{`+quote(member)+`:[`+strings.Join(all[from:to], ",")+`]`+next+keep+`}`)
}

// readOut answers what is read, once whoever reads it has given what the server asks for. After every second read there is another state.
func (m *machine) readOut(c *conn, q *message, text func() string) {
	if m.wants(c, q) {
		return
	}
	m.result(c, q, text())
	if m.stock.reads++; m.stock.reads%2 != 0 {
		return
	}
	m.stock.rev++
	m.noteStock()
	for _, other := range m.connections() {
		m.tellStock(other)
	}
}

// tellStock tells a client of another state, as far as it wants to know.
func (m *machine) tellStock(c *conn) {
	const resources, prompts, updated = "notifications/resources/list_changed", "notifications/prompts/list_changed", "notifications/resources/updated"
	one := "chaos://" + m.cfg.Server.Name + "/one"
	tell := func(method, params, reply string) { m.acts(c, func() { m.notify(c, method, params, reply) }) }
	if m.over(c) || c.lost {
		return
	}
	if c.era != messages.EraModern {
		if c.initialized {
			tell(resources, "", "")
			tell(prompts, "", "")
		}
		if c.subscribed {
			tell(updated, `{"uri":`+quote(one)+`}`, "")
		}
		return
	}
	for _, l := range c.listens {
		if l.resources {
			tell(resources, "{"+subscription(l.id)+"}", string(l.id))
		}
		if l.prompts {
			tell(prompts, "{"+subscription(l.id)+"}", string(l.id))
		}
		for _, uri := range l.uris {
			if uri == one {
				tell(updated, `{"uri":`+quote(one)+`,`+subscription(l.id)+`}`, string(l.id))
			}
		}
	}
}
