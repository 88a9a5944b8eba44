package differential

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// A request is what is sent to the server and to the gateway. Its params are generated; whole is a message that is no request.
type request struct {
	method string
	id     string // JSON
	params *value // nil for none
	whole  string
	// spaces is the seed of the spaces between the tokens, 0 for none.
	spaces uint64
}

// String shows the request as it is sent to the server.
func (q request) String() string { return q.body(view{}, false) }

// body writes the message for a view; in the modern era with what each request says of its client.
func (q request) body(v view, modern bool) string {
	if q.whole != "" {
		return q.whole
	}
	params := q.params
	if v.prefix != "" && params != nil {
		params = v.named(q.method, params)
	}
	if modern {
		params = withHop(params)
	}
	text := ""
	if params != nil {
		if text = params.String(); q.spaces != 0 {
			text = params.spaced(newRandom(q.spaces).Rand)
		}
		text = `,"params":` + text
	}
	return `{"jsonrpc":"2.0","id":` + q.id + `,"method":` + string(rawjson.AppendText(nil, q.method)) + text + `}`
}

// withHop returns params with the members of _meta that the modern era demands.
func withHop(params *value) *value {
	c := object()
	if params != nil {
		if params.open != '{' {
			return params
		}
		c = params.clone()
	}
	var meta *value
	for i, name := range c.names {
		if text, _ := rawjson.Text([]byte(name)); text == "_meta" {
			if c.items[i].isNull() {
				c.items[i] = object()
			}
			meta = c.items[i]
		}
	}
	if meta == nil {
		meta = object()
		c.add("_meta", meta)
	}
	if meta.open == '{' {
		meta.add(reservedPrefix+"protocolVersion", scalar(`"2026-07-28"`))
		meta.add(reservedPrefix+"clientCapabilities", scalar(abilities))
		meta.add(reservedPrefix+"logLevel", scalar(`"info"`))
	}
	return c
}

// abilities is what the clients of the test can be asked.
const abilities = `{"elicitation":{"form":{},"x":1.0},"sampling":{},"roots":{"listChanged":true}}`

// member returns the last member with a name, as servers read it; nil if there is none.
func (v *value) member(name string) (found *value) {
	if v == nil || v.open != '{' {
		return nil
	}
	for i := range v.names {
		if text, _ := rawjson.Text([]byte(v.names[i])); text == name {
			found = v.items[i]
		}
	}
	return found
}

func (v *value) isText() bool  { return v != nil && v.open == 0 && v.text[0] == '"' }
func (v *value) isNull() bool  { return v == nil || v.text == "null" }
func (v *value) isEmpty() bool { return !v.isText() || v.text == `""` }

// reachesServer reports whether a gateway must pass the request on: it names something that a server can have. Of other requests
// the gateway answers itself that they are wrong, in its own words and with the same code.
func (q request) reachesServer(modern bool) bool {
	if q.whole != "" || q.params != nil && q.params.open != '{' {
		return false
	}
	if meta := q.params.member("_meta"); !meta.isNull() && meta.open != '{' {
		return false
	}
	name, uri := q.params.member("name"), q.params.member("uri")
	switch q.method {
	case "tools/call", "prompts/get":
		args := q.params.member("arguments")
		if name.isEmpty() || args != nil && args.open != '{' {
			return false
		}
		// A tool that is in no list cannot be called: rules and pins are about what is listed.
		return q.method == "prompts/get" || isListed(name.text)
	case "resources/subscribe", "resources/unsubscribe":
		return !modern && !uri.isEmpty() && (q.method != "resources/unsubscribe" || uri.text == `"mirror://echo"`)
	case "resources/read":
		return !uri.isEmpty()
	case "completion/complete":
		ref := q.params.member("ref")
		if ref == nil || ref.open != '{' {
			return false
		}
		return !ref.member("name").isEmpty() || ref.member("name") == nil && !ref.member("uri").isEmpty()
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return q.params.member("cursor").isNull()
	case "logging/setLevel":
		return !modern && q.params.member("level").isText()
	case "ping":
		return !modern
	}
	return false
}

func isListed(quoted string) bool {
	name, _ := rawjson.Text([]byte(quoted))
	for _, b := range behaviours {
		if b == name {
			return b != "unlisted"
		}
	}
	return false
}

// headers returns the headers that the modern era demands of a body.
func (q request) headers(body string) map[string]string {
	h := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": q.method}
	member := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[q.method]
	if name, ok := rawjson.Text(rawjson.Member(rawjson.Member([]byte(body), "params"), member)); ok && member != "" {
		h["Mcp-Name"] = encodeHeader(name)
	}
	if h["Mcp-Method"] != encodeHeader(q.method) {
		h["Mcp-Method"] = encodeHeader(q.method)
	}
	return h
}

func encodeHeader(text string) string {
	for _, r := range text {
		if r < 0x21 || r > 0x7e {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
		}
	}
	if strings.HasPrefix(text, "=?base64?") {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
	}
	return text
}

// newRequest generates the request of a seed.
func newRequest(seed uint64, modern bool) request {
	r := newRandom(seed)
	q := request{id: one(r, "1", `"a"`, "0", "-7", "9007199254740993", `""`, `"é\u0041"`, "1.5", `"1"`)}
	if r.IntN(4) == 0 {
		q.spaces = seed
	}
	if r.IntN(50) == 0 {
		q.whole = r.noRequest()
		return q
	}
	switch r.IntN(20) {
	case 0:
		q.method = one(r, "tools/list", "prompts/list", "resources/list", "resources/templates/list")
		q.params = object()
		if r.IntN(6) == 0 {
			q.params.add("cursor", r.value(2))
		}
	case 1, 2, 3:
		q.method = "resources/read"
		q.params = object("uri", r.uri())
	case 4:
		q.method = one(r, "resources/subscribe", "resources/unsubscribe")
		q.params = object("uri", r.uri())
		if q.method == "resources/unsubscribe" { // of what nobody watches the gateway says so itself
			q.params = object("uri", textOf("mirror://"+behaviours[0]))
		}
	case 5, 6, 7:
		q.method = "prompts/get"
		q.params = r.named()
	case 8, 9:
		q.method = "completion/complete"
		ref := object("type", scalar(`"ref/prompt"`), "name", r.thing().plain())
		if r.IntN(2) == 0 {
			ref = object("type", scalar(`"ref/resource"`), "uri", one(r, textOf("mirror://echo/{x}"), textOf("mirror://odd/{x}"), r.uri()))
		}
		q.params = object("ref", ref, "argument", object("name", r.value(1), "value", r.value(1)))
		if r.IntN(3) == 0 {
			q.params.add("context", r.object(2))
		}
	case 10:
		q.method = one(r, "ping", "logging/setLevel")
		q.params = object("level", scalar(`"info"`))
	case 11:
		q.method = one(r, "tools/nothing", "x-new/é", "", "initialized", "TOOLS/CALL", "roots/list", "sampling/createMessage", "rpc.discover", "tasks/unknown")
		q.params = r.object(2)
	default:
		q.method = "tools/call"
		q.params = r.named()
	}
	if q.method == "" {
		q.method = "x"
	}
	r.decorate(&q)
	return q
}

// thing returns a name: one that is known to the mirror, mostly.
func (r random) thing() *value {
	switch r.IntN(14) {
	case 0:
		return r.value(1)
	case 1:
		return one(r, textOf("nothing"), textOf("other__echo"), textOf(strings.Repeat("long", 20)), scalar(r.name()))
	}
	return textOf(behaviours[r.IntN(len(behaviours))])
}

// plain returns a text without escapes that it does not need: where a gateway writes a name anew, its spelling is not the client's.
func (v *value) plain() *value {
	if text, ok := rawjson.Text([]byte(v.text)); ok {
		return textOf(text)
	}
	return v
}

func (r random) named() *value {
	v := object("name", r.thing())
	switch r.IntN(12) {
	case 0:
	case 1:
		v.add("arguments", r.value(2))
	default:
		v.add("arguments", r.object(4))
	}
	return v
}

func (r random) uri() *value {
	switch r.IntN(12) {
	case 0:
		return r.value(1)
	case 1:
		return scalar(one(r, `"file:///x"`, `"mirror:"`, `"MIRROR://echo"`, `"ui://x/é"`, `"mirror://\u0065cho"`, `"é"`))
	}
	return textOf("mirror://" + behaviours[r.IntN(len(behaviours))] + one(r, "", "", "/a%20b", "/é"))
}

// decorate adds what any request may have.
func (r random) decorate(q *request) {
	if r.IntN(3) == 0 {
		meta := r.object(2)
		if r.IntN(2) == 0 {
			meta.add("progressToken", one(r, scalar("1"), scalar(`"é"`), scalar(`"\u0041"`), scalar("9007199254740993")))
		}
		if r.IntN(3) == 0 {
			meta.add("traceparent", scalar(`"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`))
		}
		q.params.add("_meta", meta)
	}
	for range r.IntN(5) / 4 * 2 {
		name := "x-new"
		if r.IntN(2) == 0 {
			name = one(r, "é", "timeout", "a b", "arguments", "__proto__")
		}
		q.params.add(name, r.value(2))
	}
	switch r.IntN(120) {
	case 0:
		q.params = nil
	case 1:
		q.params = r.value(2)
	case 2:
		q.params.add("_meta", r.value(2))
	}
}

// noRequest returns a message that asks for nothing.
func (r random) noRequest() string {
	v := r.value(3).String()
	return one(r, `[]`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{}`, `{"jsonrpc":"2.0","id":1}`, `{"id":1,"method":"ping"}`,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":[1],"method":"ping"}`,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":7}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",}}`, `nothing`, `"x"`, `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"ping","params":%s`, v), fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[%s]}`, v))
}
