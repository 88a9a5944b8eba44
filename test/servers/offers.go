package servers

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// offers is a server with something of everything that is no tool.
func offers(p params) int {
	s := newServer(p)
	o := &offering{}
	s.extra = []string{`{"name":"count","description":"reports progress, and answers","inputSchema":{"type":"object",` +
		`"properties":{"to":{"type":"integer"}}}}`,
		`{"name":"meta","description":"answers the _meta of its call","inputSchema":{"type":"object"}}`,
		`{"name":"attach","description":"answers a text and images","inputSchema":{"type":"object","properties":` +
			`{"images":{"type":"integer"},"note":{"type":"string"}}}}`}
	s.tool = func(s *server, m message, c call) {
		var asked struct {
			Arguments struct{ To, Images int } `json:"arguments"`
			Meta      json.RawMessage          `json:"_meta"`
		}
		_ = json.Unmarshal(m.Params, &asked) // call has read it before
		switch c.Name {
		case "count":
			s.count(asked.Meta, asked.Arguments.To)
			s.answer(m, fmt.Sprintf("counted to %d", asked.Arguments.To))
		case "meta":
			s.answer(m, string(asked.Meta))
		case "attach":
			s.result(m, `{"content":[{"type":"text","text":"what was asked for"}`+
				strings.Repeat(`,{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}`, asked.Arguments.Images)+`]}`)
		default:
			s.refuse(m, -32602, "Unknown tool: "+c.Name)
		}
	}
	s.on["initialize"] = func(s *server, m message) {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(m.Params, &p) // a version that cannot be read is an unknown one
		s.result(m, strings.Replace(s.hello(p.ProtocolVersion), `"capabilities":{`,
			`"capabilities":{"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{},`, 1))
	}
	if p.text("unlisted", "") != "" {
		s.on["tools/list"] = func(s *server, m message) { s.refuse(m, -32603, "the tools are out for lunch") }
	}
	s.on["resources/list"] = func(s *server, m message) { s.result(m, `{"resources":[`+strings.Join(listed, ",")+`]}`) }
	s.on["resources/templates/list"] = func(s *server, m message) {
		s.result(m, `{"resourceTemplates":[{"uriTemplate":"item://{id}","name":"item","description":"any item"}]}`)
	}
	s.on["resources/read"] = o.read
	s.on["resources/subscribe"] = o.subscribe
	s.on["resources/unsubscribe"] = func(s *server, m message) { s.result(m, `{}`) }
	s.on["prompts/list"] = func(s *server, m message) {
		s.result(m, `{"prompts":[{"name":"greet","title":"A greeting","arguments":[{"name":"name","description":`+
			`"who is greeted","required":true},{"name":"style","description":"how"}]},{"name":"bare","description":"has no gaps"}]}`)
	}
	s.on["prompts/get"] = greet
	s.on["completion/complete"] = propose
	s.on["logging/setLevel"] = logs
	fmt.Fprintln(os.Stderr, "fixture: here is\x1b[31m standard error")
	return s.serve()
}

// listed are the resources; text://hidden and item://… can be read and are not among them.
var listed = []string{
	`{"uri":"text://hello","name":"hello","description":"a text","mimeType":"text/plain","size":12345}`,
	`{"uri":"text://odd\u001b[2J","name":"odd","title":"acts on \u202eterminals"}`,
	`{"uri":"bin://picture","name":"picture","mimeType":"image/png"}`,
	`{"uri":"many://parts","name":"parts"}`,
	`{"uri":"text://state","name":"state","description":"changes while it is watched"}`,
}

type offering struct{ changes growth }

func (o *offering) read(s *server, m message) {
	var p struct{ URI string }
	_ = json.Unmarshal(m.Params, &p) // no URI is an unknown one
	part := func(uri, rest string) string { return `{"uri":` + quoted(uri) + `,` + rest + `}` }
	one := func(rest string) { s.result(m, `{"contents":[`+part(p.URI, rest)+`],  "unknown":1.0}`) }
	switch {
	case p.URI == "text://hello", p.URI == "text://hidden":
		one(`"mimeType":"text/plain","text":"hello \u001b[31mred\nsecond line\n"`)
	case p.URI == "bin://picture":
		one(`"mimeType":"image/png","blob":"iVBORw0KGgo="`)
	case p.URI == "many://parts":
		s.result(m, `{"contents":[`+part("many://parts/1", `"text":"one"`)+`,`+
			part("many://parts/2", `"mimeType":"image/png","blob":"iVBORw0KGgo="`)+`]}`)
	case p.URI == "text://state":
		n := len(o.changes.get())
		one(fmt.Sprintf(`"text":"state %d"`, n))
		if file := s.text("told", ""); file != "" && n > 0 {
			_ = appendLine(file, "read again") // whoever waits for the file sees that it does not come
		}
	case strings.HasPrefix(p.URI, "item://"):
		one(`"text":` + quoted("item "+strings.TrimPrefix(p.URI, "item://")))
	default:
		s.refuse(m, -32002, "Resource not found")
	}
}

// subscribe changes the state a little later, once.
func (o *offering) subscribe(s *server, m message) {
	s.result(m, `{}`)
	if !s.pause(m, s.duration("change", 300*time.Millisecond)) {
		return
	}
	o.changes.set(fmt.Sprint(len(o.changes.get())), true)
	s.raw(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"text://state"}}`)
}

func greet(s *server, m message) {
	var p struct {
		Name      string
		Arguments map[string]string
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		s.refuse(m, -32602, "Invalid params: "+err.Error())
		return
	}
	switch p.Name {
	case "greet":
		s.result(m, `{"description":"a greeting", "messages":[{"role":"user","content":{"type":"text","text":`+
			quoted("Greet "+p.Arguments["name"]+".\nStyle: "+p.Arguments["style"]+"\x1b[2J")+`}},{"role":"assistant","content":`+
			`{"type":"image","mimeType":"image/png","data":"AAAA"}}]}`)
	case "bare":
		s.result(m, `{"messages":[]}`)
	default:
		s.refuse(m, -32602, "Unknown prompt: "+p.Name)
	}
}

func propose(s *server, m message) {
	var p struct {
		Argument struct{ Name, Value string }
		Context  struct{ Arguments map[string]string }
	}
	_ = json.Unmarshal(m.Params, &p) // nothing is proposed then
	var values []string
	for _, name := range []string{"Ann", "Anton", "Bea"} {
		if strings.HasPrefix(name, p.Argument.Value) {
			values = append(values, quoted(name+p.Context.Arguments["style"]))
		}
	}
	s.result(m, `{"completion":{"values":[`+strings.Join(values, ",")+`],"total":12,"hasMore":true}}`)
}

var severities = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// logs sends one message of each level that is asked for.
func logs(s *server, m message) {
	var p struct{ Level string }
	_ = json.Unmarshal(m.Params, &p) // an unknown level is refused
	from := slices.Index(severities, p.Level)
	if from < 0 {
		s.refuse(m, -32602, "Invalid level")
		return
	}
	s.result(m, `{}`)
	for _, level := range severities[from:] {
		s.raw(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level +
			`","logger":"fixture","data":` + quoted("a message of \x1b[31m"+level) + `}}`)
	}
}

// count reports the steps of a call that asked for it.
func (s *server) count(meta json.RawMessage, to int) {
	var token struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if json.Unmarshal(meta, &token) != nil || token.Token == nil {
		return
	}
	for i := 1; i <= to; i++ {
		s.raw(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,`+
			`"progress":%d,"total":%d,"message":"step \u001b[2J%d"}}`, token.Token, i, to, i))
		time.Sleep(20 * time.Millisecond) // what comes too fast may be dropped
	}
}
