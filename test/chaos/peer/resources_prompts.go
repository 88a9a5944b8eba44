package peer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// offerState is the state of resources and prompts, over all connections. After every second read there is a new state: one
// resource and one prompt more, up to maxItems of each, another template, and a new text in those that exist.
type offerState struct {
	// rev counts the states from 1, reads the answered reads; announced is set once the first state is recorded.
	rev, reads int
	announced  bool
}

// maxItems bounds the growing resources and prompts; the oldest disappear first.
const (
	maxItems = 7
	// pageLength is the number of entries on one page of a list.
	pageLength = 3
)

// offerCapability returns the capabilities of a server that has more than tools, as further JSON members.
func (m *machine) offerCapability() string {
	s, all := m.cfg.Server, ""
	if s.Has(scenario.HasResources) {
		var parts []string
		if s.Has(scenario.HasSubscribe) {
			parts = append(parts, `"subscribe":true`)
		}
		if s.Has(scenario.HasResourceChanges) {
			parts = append(parts, `"listChanged":true`)
		}
		all += `,"resources":{` + strings.Join(parts, ",") + `}`
	}
	switch {
	case s.Has(scenario.HasPromptChanges):
		all += `,"prompts":{"listChanged":true}`
	case s.Has(scenario.HasPrompts):
		all += `,"prompts":{}`
	}
	if s.Has(scenario.HasCompletions) {
		all += `,"completions":{}`
	}
	return all
}

// recordOffers records the current state of resources and prompts.
func (m *machine) recordOffers() {
	m.recordEvent(history.Event{Kind: history.Offered, Rev: m.offers.rev})
}

// itemNames returns the names of the growing items that exist now, the newest last.
func (s *offerState) itemNames(prefix string) (names []string) {
	for i := max(1, s.rev-maxItems+1); i <= s.rev; i++ {
		names = append(names, prefix+strconv.Itoa(i))
	}
	return names
}

// answerOffer answers a request about resources, prompts or completion.
func (m *machine) answerOffer(c *conn, q *message) {
	var p struct {
		URI    string `json:"uri"`
		Name   string `json:"name"`
		Cursor string `json:"cursor"`
		Ref    struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"ref"`
		Argument struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"argument"`
		Context struct {
			Arguments map[string]string `json:"arguments"`
		} `json:"context"`
	}
	// Params without these members name nothing and get the first page, or an error below.
	_ = json.Unmarshal(q.Params, &p)
	// 2026-07-28: lists and what is read say how long they may be kept.
	cacheFields := ""
	if c.era == messages.EraModern {
		cacheFields = `,"ttlMs":1000,"cacheScope":"private"`
	}
	base := "chaos://" + m.cfg.Server.Name + "/"
	if !m.offers.announced {
		m.offers.announced, m.offers.rev = true, 1
		m.recordOffers()
	}
	switch q.Method {
	case "resources/list":
		all := []string{
			scenario.ResourceOf(m.cfg.Server.Name, "one"),
			// The second entry lacks its uri: the client must leave it out and show the rest.
			`{"name":"without an address"}`,
		}
		for _, name := range m.offers.itemNames("item-") {
			all = append(all, scenario.ResourceOf(m.cfg.Server.Name, name))
		}
		m.answerListPage(c, q, "resources", all, p.Cursor, cacheFields)
	case "resources/templates/list":
		m.answerListPage(c, q, "resourceTemplates", []string{scenario.TemplateOf(m.cfg.Server.Name, 0), scenario.TemplateOf(m.cfg.Server.Name, m.offers.rev)}, p.Cursor, cacheFields)
	case "prompts/list":
		all := []string{scenario.PromptOf("greet", "greet")}
		for _, name := range m.offers.itemNames("greet-") {
			all = append(all, scenario.PromptOf(name, name))
		}
		m.answerListPage(c, q, "prompts", all, p.Cursor, cacheFields)
	case "resources/read":
		if name, own := strings.CutPrefix(p.URI, base); !own || name != "one" && !strings.HasPrefix(name, "item-") {
			m.answerError(c, q, -32002, "Resource not found", `{"uri":`+quoteJSON(p.URI)+`}`)
			return
		}
		m.answerRead(c, q, func() string {
			return `{"contents":[{"uri":` + quoteJSON(p.URI) + `,"mimeType":"text/plain","text":` + quoteJSON(m.stateText()) +
				`},{"uri":` + quoteJSON(p.URI) + `,"mimeType":"image/png","blob":"AAAA"}]` + cacheFields + `}`
		})
	case "resources/subscribe", "resources/unsubscribe":
		if p.URI == base+"briefly" {
			if q.Method == "resources/subscribe" && !c.hasBrief() {
				m.answerError(c, q, -32002, "Resource not found", `{"uri":`+quoteJSON(p.URI)+`}`)
				return
			}
			m.answerResult(c, q, "{}")
			return
		}
		// The gateway asks the only server that may have a resource which no list has.
		if !strings.HasPrefix(p.URI, base) {
			m.answerError(c, q, -32002, "Resource not found", `{"uri":`+quoteJSON(p.URI)+`}`)
			return
		}
		c.subscribed = q.Method == "resources/subscribe"
		m.answerResult(c, q, "{}")
	case "prompts/get":
		if !strings.HasPrefix(p.Name, "greet") {
			m.answerError(c, q, codeInvalidParams, "Unknown prompt: "+p.Name, "")
			return
		}
		m.answerRead(c, q, func() string {
			return `{"description":"A greeting","messages":[{"role":"user","content":{"type":"text","text":` + quoteJSON(m.stateText()) + `}}]}`
		})
	case "completion/complete":
		m.answerResult(c, q, scenario.EncodeCompletion(scenario.CompletionOf(p.Ref.Name+p.Ref.URI, p.Argument.Name, p.Argument.Value, p.Context.Arguments["to"])))
	default:
		m.answerError(c, q, codeMethodNotFound, "Method not found: "+q.Method, "")
	}
}

// hasBrief reports whether the server has, on this connection, the resource that is there on every second one only. It stands in no list,
// and can only be watched.
func (c *conn) hasBrief() bool { return c.id%2 == 1 }

// stateText is the text in every resource and prompt. It names state and server, so that an outdated or misrouted read is seen.
func (m *machine) stateText() string {
	return "state " + strconv.Itoa(m.offers.rev) + " of " + m.cfg.Server.Name
}

// answerListPage answers with one page of a list. A cursor holds the index of the page's first entry and the state of the list;
// the cursor of an earlier state is invalid.
func (m *machine) answerListPage(c *conn, q *message, member string, all []string, cursor, cacheFields string) {
	from, rev := 0, m.offers.rev
	if cursor != "" {
		if n, err := fmt.Sscanf(cursor, "%d of %d", &from, &rev); n != 2 || err != nil || !strings.HasSuffix(cursor, " "+escaped) || rev != m.offers.rev || from > len(all) {
			m.answerError(c, q, codeInvalidParams, "Invalid cursor", "")
			return
		}
	}
	to, next := min(from+pageLength, len(all)), ""
	if to < len(all) {
		next = `,"nextCursor":` + quoteJSON(fmt.Sprintf("%d of %d %s", to, rev, escaped))
	}
	m.answerResult(c, q, `{`+quoteJSON(member)+`:[`+strings.Join(all[from:to], ",")+`]`+next+cacheFields+`}`)
}

// answerRead answers a read, after the input that the server may ask for. Every second read makes a new state and notifies the
// clients of all connections.
func (m *machine) answerRead(c *conn, q *message, text func() string) {
	if m.askBeforeRead(c, q) {
		return
	}
	m.answerResult(c, q, text())
	if m.offers.reads++; m.offers.reads%2 != 0 {
		return
	}
	m.offers.rev++
	m.recordOffers()
	for _, other := range m.sortedConns() {
		m.notifyOffersChanged(other)
	}
}

// notifyOffersChanged notifies a client of a new state, as far as it listens. Only the resource "one" exists in every state, so
// only it is watched. Every third update tells of a part of it.
//
// 2025-11-25: the URI of an update "might be a sub-resource of the one that the client actually subscribed to".
func (m *machine) notifyOffersChanged(c *conn) {
	const resources, prompts, updated = "notifications/resources/list_changed", "notifications/prompts/list_changed", "notifications/resources/updated"
	one := "chaos://" + m.cfg.Server.Name + "/one"
	hasResourceChanges, hasPromptChanges := m.cfg.Server.Has(scenario.HasResourceChanges), m.cfg.Server.Has(scenario.HasPromptChanges)
	changed := one
	if m.offers.rev%3 == 0 {
		changed = scenario.PartURI(one)
	}
	notifyUpdated := func(params, reply string) {
		e := notifiedEvent(c.id, updated)
		e.About = changed
		m.runOrHold(c, func() { m.sendRecorded(c, e, params, reply) })
	}
	notify := func(method, params, reply string) {
		m.runOrHold(c, func() { m.sendNotification(c, method, params, reply) })
	}
	if m.isEnded(c) || c.sessionLost {
		return
	}
	if c.era != messages.EraModern {
		if c.initialized && hasResourceChanges {
			notify(resources, "", "")
		}
		if c.initialized && hasPromptChanges {
			notify(prompts, "", "")
		}
		if c.subscribed {
			notifyUpdated(`{"uri":`+quoteJSON(changed)+`}`, "")
		}
		return
	}
	for _, l := range c.streams {
		if l.resources {
			notify(resources, "{"+subscriptionMeta(l.id)+"}", string(l.id))
		}
		if l.prompts {
			notify(prompts, "{"+subscriptionMeta(l.id)+"}", string(l.id))
		}
		for _, uri := range l.uris {
			if uri == one {
				notifyUpdated(`{"uri":`+quoteJSON(changed)+`,`+subscriptionMeta(l.id)+`}`, string(l.id))
			}
		}
	}
}
