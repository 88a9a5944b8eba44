package peer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// offerCapability is what a server that has more than tools says of that.
func (m *machine) offerCapability(era messages.Era) string {
	switch {
	case !m.cfg.Server.Offers:
		return ""
	case era == messages.EraModern:
		return `,"resources":{},"prompts":{},"completions":{}`
	}
	return `,"resources":{"subscribe":true},"prompts":{},"completions":{}`
}

// offering are the methods of what a server may have beside tools.
func offering(method string) bool {
	return strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "prompts/") || method == "completion/complete"
}

// offer answers a request about resources, prompts and completion.
func (m *machine) offer(c *conn, q *message) {
	var p struct {
		URI  string `json:"uri"`
		Name string `json:"name"`
	}
	_ = json.Unmarshal(q.Params, &p) // what names nothing asks for nothing
	// 2026-07-28: lists and what is read say how long they may be kept.
	keep := ""
	if c.era == messages.EraModern {
		keep = `,"ttlMs":0,"cacheScope":"private"`
	}
	one := "chaos://" + m.cfg.Server.Name + "/one"
	switch q.Method {
	case "resources/list":
		m.result(c, q, `{"resources":[{"uri":`+quote(one)+`,"name":"one","mimeType":"text/plain"}]`+keep+`}`)
	case "resources/templates/list":
		m.result(c, q, `{"resourceTemplates":[{"uriTemplate":`+quote("chaos://"+m.cfg.Server.Name+"/{name}")+`,"name":"any"}]`+keep+`}`)
	case "resources/read":
		if p.URI != one {
			m.refuse(c, q, -32002, "Resource not found", `{"uri":`+quote(p.URI)+`}`)
			return
		}
		m.result(c, q, `{"contents":[{"uri":`+quote(one)+`,"mimeType":"text/plain","text":"one"}]`+keep+`}`)
		if c.subscribed && !m.over(c) {
			m.notify(c, "notifications/resources/updated", `{"uri":`+quote(one)+`}`, "")
		}
	case "resources/subscribe", "resources/unsubscribe":
		c.subscribed = q.Method == "resources/subscribe"
		m.result(c, q, "{}")
	case "prompts/list":
		m.result(c, q, `{"prompts":[{"name":"greet","arguments":[{"name":"who","required":true}]}]`+keep+`}`)
	case "prompts/get":
		if p.Name != "greet" {
			m.refuse(c, q, codeInvalidParams, "Unknown prompt: "+p.Name, "")
			return
		}
		m.result(c, q, `{"messages":[{"role":"user","content":{"type":"text","text":"Say hello."}}]}`)
	case "completion/complete":
		m.result(c, q, `{"completion":{"values":["one"],"total":1,"hasMore":false}}`)
	default:
		m.refuse(c, q, codeNoMethod, "Method not found: "+q.Method, "")
	}
}

// questions are what a server of the legacy era may ask, by the capability that a client must have said.
var questions = []struct{ needs, method, params string }{
	{"elicitation", "elicitation/create", `{"message":"Go on?","requestedSchema":{"type":"object","properties":{"go":{"type":"boolean"}}}}`},
	{"sampling", "sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"Go on?"}}],"maxTokens":10}`},
	{"roots", "roots/list", `{}`},
}

// question asks the caller of a call something before it begins, and reports whether it does.
func (m *machine) question(c *conn, k *call) bool {
	if !m.cfg.Server.Offers || c.era == messages.EraModern || k.q.task != nil {
		return false
	}
	if c.asks++; c.asks%3 != 0 {
		return false
	}
	q := questions[c.asks/3%len(questions)]
	if !slices.Contains(c.can, q.needs) {
		return false
	}
	id := "ask-" + strconv.Itoa(c.asks)
	if c.questions == nil {
		c.questions = map[string]*call{}
	}
	c.questions[id] = k
	m.say(c, Send{
		Conn: c.id, Reply: string(k.q.ID), More: true,
		Body: json.RawMessage(`{"jsonrpc":"2.0","id":` + quote(id) + `,"method":` + quote(q.method) + `,"params":` + q.params + `}`),
	})
	return true
}

// answered takes the answer to a question: whatever it is, the call goes on.
func (m *machine) answered(c *conn, id json.RawMessage) {
	var text string
	_ = json.Unmarshal(id, &text) // an id that is no text is none of ours
	if k := c.questions[text]; k != nil {
		delete(c.questions, text)
		m.begin(c, k)
	}
}
