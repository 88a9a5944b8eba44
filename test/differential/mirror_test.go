package differential

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// The mirror is the server of the differential test. What it answers depends on the request alone, and shows the request: whatever a
// gateway changes on the way there or back becomes a difference. The name of a tool, of a prompt or of a resource says what it does.
type mirror struct{ modern bool }

// A conversation is one request at the mirror, and its way back to the client.
type conversation struct {
	method string
	params []byte
	// notify sends a notification about the request; ask asks the client, in the legacy era.
	notify func(method string, params []byte)
	ask    func(method string, params []byte) []byte
	// answers is what the client can be asked.
	answers []byte
}

// refusal is an error as the mirror answers it: an object.
type refusal []byte

func refuse(code int, text string, data string) (result []byte, e refusal) {
	b := rawjson.AppendText(fmt.Appendf(nil, `{"code":%d,"message":`, code), text)
	if data != "" {
		b = append(append(b, `,"data":`...), data...)
	}
	return nil, append(b, '}')
}

// behaviours are the names of tools, and of prompts; the path of a resource is one of them, too.
var behaviours = []string{
	"echo", "odd", "fails", "refuses", "says", "logs", "elicits", "samples", "roots", "needs", "structured", "spaced", "unlisted", "große-Äpfel", "a.b/c",
}

const mirrorInfo = `"_meta":{"` + reservedPrefix + `serverInfo":{"name":"mirror","version":"1"}}`

const reservedPrefix = "io.modelcontextprotocol/"

// answer answers a request with a result or with an error, both objects.
func (m mirror) answer(c *conversation) (result []byte, e refusal) {
	if legacyOnly := []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}; m.modern && slices.Contains(legacyOnly, c.method) {
		return refuse(-32601, "Method not found", "")
	}
	switch c.method {
	case "initialize":
		version, _ := rawjson.Text(rawjson.Member(c.params, "protocolVersion"))
		return fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"mirror","version":"1"},"instructions":"Look."}`,
			version, mirrorAbilities), nil
	case "server/discover":
		return []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + mirrorAbilities +
			`,"ttlMs":0,"cacheScope":"private","instructions":"Look.",` + mirrorInfo + `}`), nil
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return m.list(c)
	case "tools/call", "prompts/get":
		name, ok := rawjson.Text(rawjson.Member(c.params, "name"))
		args := rawjson.Member(c.params, "arguments")
		if c.method == "tools/call" && name == "unlisted" {
			return refuse(-32602, "Unknown tool", "")
		}
		if !ok || name == "" || args != nil && !rawjson.IsObject(args) {
			return refuse(-32602, "Invalid params", "")
		}
		return m.behave(c, name)
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		uri, ok := rawjson.Text(rawjson.Member(c.params, "uri"))
		if !ok || uri == "" {
			return refuse(-32602, "Invalid params", "")
		}
		name, here := strings.CutPrefix(uri, "mirror://")
		if !here {
			return refuse(m.code(-32002, -32602), "Resource not found", string(rawjson.AppendText([]byte(`{"uri":`), uri))+"}")
		}
		if c.method != "resources/read" {
			if name == "refuses" {
				return refuse(-32001, "not this one", `{"é":1e400}`)
			}
			return []byte("{}"), nil
		}
		name, _, _ = strings.Cut(name, "/")
		return m.behave(c, name)
	case "completion/complete":
		ref := rawjson.Member(c.params, "ref")
		name, named := rawjson.Text(rawjson.Member(ref, "name"))
		uri, _ := rawjson.Text(rawjson.Member(ref, "uri"))
		if named && name == "" || !named && uri == "" {
			return refuse(-32602, "Invalid params", "")
		}
		return m.behave(c, "echo")
	case "ping":
		return []byte("{}"), nil
	case "logging/setLevel":
		if level, _ := rawjson.Text(rawjson.Member(c.params, "level")); level != "info" {
			return refuse(-32602, "Invalid params", "")
		}
		return []byte("{}"), nil
	}
	return refuse(-32601, "Method not found", "")
}

const mirrorAbilities = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}`

func (m mirror) code(legacy, modern int) int {
	if m.modern {
		return modern
	}
	return legacy
}

// list returns one page of two.
func (m mirror) list(c *conversation) ([]byte, refusal) {
	cursor := rawjson.Member(c.params, "cursor")
	text, ok := rawjson.Text(cursor)
	if string(cursor) == "null" {
		cursor = nil
	}
	if cursor != nil && (!ok || text != "second") {
		return refuse(-32602, "Invalid cursor", "")
	}
	member := map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources",
		"resources/templates/list": "resourceTemplates"}[c.method]
	names := behaviours[:6]
	if cursor != nil {
		names = behaviours[6:]
	}
	b := []byte(`{"` + member + `":[`)
	for i, name := range names {
		if name == "unlisted" {
			continue
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, m.definition(member, name)...)
	}
	b = append(b, ']')
	if cursor == nil {
		b = append(b, `,"nextCursor":"second"`...)
	}
	if m.modern {
		b = append(b, `,"resultType":"complete","ttlMs":0,"cacheScope":"private"`...)
	}
	return append(b, '}'), nil
}

// definition describes one thing; the members that no specification names must reach the client, too.
func (m mirror) definition(member, name string) string {
	quoted := string(rawjson.AppendText(nil, name))
	odd := newRandom(hashOf(member + name))
	more := `"x-new":` + odd.value(3).String() + `, "_meta" : {"example.com/é":` + odd.value(2).String() + `}`
	switch member {
	case "tools":
		schema := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"type":["integer","null"],"maximum":` +
			`123456789012345678901234567890},"deep":{"oneOf":[true,{"$ref":"#/$defs/x"}]}},"$defs":{"x":{"x-odd":` + odd.value(2).String() + `}}}`
		return `{"description":"d\u00e9 ` + name + `","name":` + quoted + `,"inputSchema":` + schema + `,"annotations":{"readOnlyHint":true,"new":1.0},` + more + `}`
	case "prompts":
		return `{ "name" :` + quoted + `,"title":"T","arguments":[{"name":"a","required":false,"x":1}],` + more + `}`
	case "resources":
		return `{"uri":"mirror://` + name + `","name":` + quoted + `,"size":12345678901234567890,` + more + `}`
	}
	return `{"uriTemplate":"mirror://` + name + `/{x}","name":` + quoted + `,` + more + `}`
}

// behave does what a name says. Every result shows what was received.
func (m mirror) behave(c *conversation, name string) ([]byte, refusal) {
	seen := received(c.params)
	odd := newRandom(hashOf(seen))
	var heard []byte
	switch name {
	case "refuses":
		return refuse(one(odd, -32602, -32000, -1, 1, 42, -32603), "no: "+one(odd, "é", "\u2028", "a\nb", "", strings.Repeat("x", 3000)),
			`{"received":`+seen+`,"more":`+odd.value(3).String()+`}`)
	case "fails":
		return m.result(c, `,"isError":true`, seen, nil), nil
	case "odd":
		return m.result(c, `,`+odd.name()+`:`+odd.value(4).String()+`,"x-new":`+odd.value(4).String()+`,"_meta":{"example.com/a":`+
			odd.value(3).String()+`}`, seen, nil), nil
	case "structured":
		return m.result(c, `,"structuredContent":{"big":123456789012345678901234567890,"odd":`+odd.value(4).String()+`},"isError":false`, seen, nil), nil
	case "says":
		if token := rawjson.Member(rawjson.Member(c.params, "_meta"), "progressToken"); token != nil && strings.ContainsRune(`"-0123456789`, rune(token[0])) {
			for i := range 3 {
				c.notify("notifications/progress", fmt.Appendf(nil, `{"x":%s,"progressToken":%s,"progress":%d.50,"total":3e0,"message":"é%d"}`, odd.value(1), token, i, i))
			}
		}
	case "logs":
		for _, level := range []string{"debug", "info", "error"} {
			if m.wants(c, level) {
				c.notify("notifications/message", fmt.Appendf(nil, `{"level":%q,"logger":"é","data":%s,"x-new":1.0}`, level, odd.value(2)))
			}
		}
	case "elicits":
		heard = m.question(c, &odd, "elicitation", "elicitation/create",
			`{"message":"who? é","requestedSchema":{"type":"object","properties":{"n":{"type":"number","x-new":1.0}}},"x-new":`+odd.scalar().String()+`}`)
	case "samples":
		heard = m.question(c, &odd, "sampling", "sampling/createMessage",
			`{"messages":[{"role":"user","content":{"type":"text","text":"\u00e9","x":`+odd.scalar().String()+`}}],"maxTokens":100}`)
	case "roots":
		heard = m.question(c, &odd, "roots", "roots/list", "")
	case "needs":
		if responses := rawjson.Member(c.params, "inputResponses"); m.modern && responses == nil {
			return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"é","requestedSchema":`+
				`{"type":"object","properties":{}}}}},"requestState":%q}`, "state of "+fmt.Sprint(hashOf(seen))), nil
		} else if m.modern {
			heard = []byte(`{"state":` + orNull(rawjson.Member(c.params, "requestState")) + `,"responses":` + string(responses) + `}`)
		}
	case "spaced":
		b := m.result(c, `,"structuredContent":`+odd.object(3).spaced(odd.Rand), seen, nil)
		return append([]byte("{ \t "), b[1:]...), nil
	case "echo", "unlisted", "große-Äpfel", "a.b/c":
	default:
		return refuse(-32602, "there is no "+name+" here", `["é",1.0]`)
	}
	return m.result(c, "", seen, heard), nil
}

// result writes a result of the kind that the method has.
func (m mirror) result(c *conversation, more, seen string, heard []byte) []byte {
	text := string(rawjson.AppendText(nil, seen+" "+string(heard)))
	b := []byte("{")
	if m.modern {
		b = append(b, `"resultType":"complete",`...)
	}
	switch c.method {
	case "tools/call":
		b = append(b, `"content":[{"type":"text","text":`+text+`},{"type":"x-unknown","é":1.0}]`...)
	case "prompts/get":
		b = append(b, `"messages":[{"role":"user","content":{"type":"text","text":`+text+`}}]`...)
	case "resources/read":
		b = append(b, `"contents":[{"uri":"mirror://x","text":`+text+`}]`...)
		if m.modern {
			b = append(b, `,"ttlMs":0,"cacheScope":"private"`...)
		}
	default:
		b = append(b, `"completion":{"values":[`+text+`],"total":1.0,"x-new":true}`...)
	}
	return append(append(b, more...), '}')
}

// wants reports whether a client wants messages of a level: in the modern era the request says it.
func (m mirror) wants(c *conversation, level string) bool {
	if !m.modern {
		return level != "debug"
	}
	least, ok := rawjson.Text(rawjson.Member(rawjson.Member(c.params, "_meta"), reservedPrefix+"logLevel"))
	rank := map[string]int{"debug": 1, "info": 2, "error": 3}
	return ok && rank[level] >= rank[least]
}

// question asks the client, and returns its answer. It has no member twice: a gateway shows no person what can be read in two ways.
func (m mirror) question(c *conversation, _ *random, ability, method, params string) []byte {
	if m.modern || rawjson.IsNull(rawjson.Member(c.answers, ability)) {
		return []byte(`"not asked"`)
	}
	return c.ask(method, []byte(params))
}

// received writes the params as a server reads them, but for what belongs to one hop: of members with one name the last, in the
// order of the names.
func received(params []byte) string {
	if params == nil {
		return "null"
	}
	members := map[string][]byte{}
	for o := rawjson.ObjectAt(params, 0, 0); o.Next(); {
		name := string(o.Name)
		members[name] = o.Skip()
	}
	delete(members, "requestState")
	if meta := members["_meta"]; meta != nil {
		if members["_meta"] = kept(meta); members["_meta"] == nil {
			delete(members, "_meta")
		}
	}
	b := []byte("{")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(rawjson.AppendText(b, name), ':'), members[name]...)
	}
	return string(append(b, '}'))
}

// kept returns a _meta without the keys of one hop; nil if nothing is left.
func kept(meta []byte) []byte {
	if !rawjson.IsObject(meta) {
		return nil
	}
	b := []byte("{")
	for o := rawjson.ObjectAt(meta, 0, 0); o.Next(); {
		name := string(o.Name)
		text := o.Skip()
		if name == "progressToken" || strings.HasPrefix(name, reservedPrefix) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(rawjson.AppendText(b, name), ':'), text...)
	}
	if len(b) == 1 {
		return nil
	}
	return append(b, '}')
}

func orNull(b []byte) string {
	if b == nil {
		return "null"
	}
	return string(b)
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// A message is what the mirror and the clients of the test read.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// readMessage takes a message apart; problem is the error that a server answers to one that is none.
func readMessage(body []byte) (m message, problem refusal) {
	trimmed := strings.TrimSpace(string(body))
	if !rawjson.Valid([]byte(trimmed)) {
		_, problem = refuse(-32700, "Parse error", "")
		return m, problem
	}
	bad := strings.HasPrefix(trimmed, "[") || !strings.HasPrefix(trimmed, "{")
	if !bad {
		body = []byte(trimmed)
		m = message{ID: rawjson.Member(body, "id"), Params: rawjson.Member(body, "params"), Result: rawjson.Member(body, "result"), Error: rawjson.Member(body, "error")}
		method := rawjson.Member(body, "method")
		name, ok := rawjson.Text(method)
		m.Method = name
		bad = method != nil && (!ok || name == "") || method == nil && (m.Result == nil) == (m.Error == nil) ||
			string(rawjson.Member(body, "jsonrpc")) != `"2.0"` || m.ID != nil && !strings.ContainsRune(`"-0123456789`, rune(m.ID[0]))
	}
	if bad {
		_, problem = refuse(-32600, "Invalid Request", "")
		return m, problem
	}
	if m.Params != nil && !rawjson.IsObject(m.Params) || m.Params != nil && !rawjson.IsNull(rawjson.Member(m.Params, "_meta")) && !rawjson.IsObject(rawjson.Member(m.Params, "_meta")) {
		_, problem = refuse(-32602, "Invalid params", "")
	}
	return m, problem
}

// reply writes the answer to a request.
func reply(id, result []byte, e refusal) []byte {
	if e != nil {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, orNull(id), e)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, orNull(id), result)
}
