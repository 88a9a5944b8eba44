package servers

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// offersAll runs a server with resources, templates, prompts, completion, log messages and progress.
func offersAll(p params) int {
	s := newServer(p)
	o := &offerState{}
	s.extra = []string{`{"name":"count","description":"reports progress, and answers","inputSchema":{"type":"object",` +
		`"properties":{"to":{"type":"integer"}}}}`,
		`{"name":"meta","description":"answers the _meta of its call","inputSchema":{"type":"object"}}`,
		`{"name":"attach","description":"answers a text and images","inputSchema":{"type":"object","properties":` +
			`{"images":{"type":"integer"},"note":{"type":"string"}}}}`}
	s.tool = func(s *server, m message, c callParams) {
		var extra struct {
			Arguments struct{ To, Images int } `json:"arguments"`
			Meta      json.RawMessage          `json:"_meta"`
		}
		// callTool has read the same params before, so that they are JSON.
		_ = json.Unmarshal(m.Params, &extra)
		switch c.Name {
		case "count":
			s.reportProgress(extra.Meta, extra.Arguments.To)
			s.sendText(m, fmt.Sprintf("counted to %d", extra.Arguments.To))
		case "meta":
			s.sendText(m, string(extra.Meta))
		case "attach":
			s.sendResult(m, `{"content":[{"type":"text","text":"what was asked for"}`+
				strings.Repeat(`,{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}`, extra.Arguments.Images)+`]}`)
		default:
			s.sendError(m, -32602, "Unknown tool: "+c.Name)
		}
	}
	s.handlers["initialize"] = func(s *server, m message) {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(m.Params, &p) // a version that cannot be read is an unknown one
		s.sendResult(m, strings.Replace(s.initializeResult(p.ProtocolVersion), `"capabilities":{`,
			`"capabilities":{"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{},`, 1))
	}
	if p.textOr("unlisted", "") != "" {
		s.handlers["tools/list"] = func(s *server, m message) { s.sendError(m, -32603, "the tools are out for lunch") }
	}
	s.handlers["resources/list"] = func(s *server, m message) { s.sendResult(m, `{"resources":[`+strings.Join(listedResources, ",")+`]}`) }
	s.handlers["resources/templates/list"] = func(s *server, m message) {
		s.sendResult(m, `{"resourceTemplates":[{"uriTemplate":"item://{id}","name":"item","description":"any item"}]}`)
	}
	s.handlers["resources/read"] = o.readResource
	s.handlers["resources/subscribe"] = o.subscribeResource
	s.handlers["resources/unsubscribe"] = func(s *server, m message) { s.sendResult(m, `{}`) }
	s.handlers["prompts/list"] = func(s *server, m message) {
		s.sendResult(m, `{"prompts":[{"name":"greet","title":"A greeting","arguments":[{"name":"name","description":`+
			`"who is greeted","required":true},{"name":"style","description":"how"}]},{"name":"bare","description":"has no gaps"}]}`)
	}
	s.handlers["prompts/get"] = getPrompt
	s.handlers["completion/complete"] = completeArgument
	s.handlers["logging/setLevel"] = setLogLevel
	// The escape tests that the client neutralises standard error.
	fmt.Fprintln(os.Stderr, "fixture: here is\x1b[31m standard error")
	return s.serve()
}

// listedResources holds the resources of the list. text://hidden and item://… can be read and are not in it.
var listedResources = []string{
	`{"uri":"text://hello","name":"hello","description":"a text","mimeType":"text/plain","size":12345}`,
	`{"uri":"text://odd\u001b[2J","name":"odd","title":"acts on \u202eterminals"}`,
	`{"uri":"bin://picture","name":"picture","mimeType":"image/png"}`,
	`{"uri":"many://parts","name":"parts"}`,
	`{"uri":"text://state","name":"state","description":"changes while it is watched"}`,
}

// offerState counts the changes of text://state as names in dynamicTools, whose lock it uses.
type offerState struct{ changes dynamicTools }

// readResource answers with texts, binary data or several parts, and with unusual white space and an unknown member,
// which a client that passes results on must keep.
func (o *offerState) readResource(s *server, m message) {
	var p struct{ URI string }
	_ = json.Unmarshal(m.Params, &p) // no URI is an unknown one
	part := func(uri, rest string) string { return `{"uri":` + quoteJSON(uri) + `,` + rest + `}` }
	one := func(rest string) { s.sendResult(m, `{"contents":[`+part(p.URI, rest)+`],  "unknown":1.0}`) }
	switch {
	case p.URI == "text://hello", p.URI == "text://hidden":
		one(`"mimeType":"text/plain","text":"hello \u001b[31mred\nsecond line\n"`)
	case p.URI == "bin://picture":
		one(`"mimeType":"image/png","blob":"iVBORw0KGgo="`)
	case p.URI == "many://parts":
		s.sendResult(m, `{"contents":[`+part("many://parts/1", `"text":"one"`)+`,`+
			part("many://parts/2", `"mimeType":"image/png","blob":"iVBORw0KGgo="`)+`]}`)
	case p.URI == "text://state":
		n := len(o.changes.toolNames())
		one(fmt.Sprintf(`"text":"state %d"`, n))
		if file := s.textOr("told", ""); file != "" && n > 0 {
			// The test that waits for the file fails if it cannot be written.
			_ = appendLine(file, "read again")
		}
	case strings.HasPrefix(p.URI, "item://"):
		one(`"text":` + quoteJSON("item "+strings.TrimPrefix(p.URI, "item://")))
	default:
		s.sendError(m, -32002, "Resource not found")
	}
}

// subscribeResource agrees, and changes text://state once after change=300ms, unless the request is cancelled before.
func (o *offerState) subscribeResource(s *server, m message) {
	s.sendResult(m, `{}`)
	if !s.waitOrCancel(m, s.durationOr("change", 300*time.Millisecond)) {
		return
	}
	o.changes.setTool(fmt.Sprint(len(o.changes.toolNames())), true)
	s.sendLine(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"text://state"}}`)
}

// getPrompt fills in a prompt whose text acts on a terminal, and has one without messages.
func getPrompt(s *server, m message) {
	var p struct {
		Name      string
		Arguments map[string]string
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		s.sendError(m, -32602, "Invalid params: "+err.Error())
		return
	}
	switch p.Name {
	case "greet":
		s.sendResult(m, `{"description":"a greeting", "messages":[{"role":"user","content":{"type":"text","text":`+
			quoteJSON("Greet "+p.Arguments["name"]+".\nStyle: "+p.Arguments["style"]+"\x1b[2J")+`}},{"role":"assistant","content":`+
			`{"type":"image","mimeType":"image/png","data":"AAAA"}}]}`)
	case "bare":
		s.sendResult(m, `{"messages":[]}`)
	default:
		s.sendError(m, -32602, "Unknown prompt: "+p.Name)
	}
}

// completeArgument proposes names that begin with the typed text. total and hasMore claim further ones.
func completeArgument(s *server, m message) {
	var p struct {
		Argument struct{ Name, Value string }
		Context  struct{ Arguments map[string]string }
	}
	_ = json.Unmarshal(m.Params, &p) // nothing is proposed then
	var values []string
	for _, name := range []string{"Ann", "Anton", "Bea"} {
		if strings.HasPrefix(name, p.Argument.Value) {
			values = append(values, quoteJSON(name+p.Context.Arguments["style"]))
		}
	}
	s.sendResult(m, `{"completion":{"values":[`+strings.Join(values, ",")+`],"total":12,"hasMore":true}}`)
}

// severities holds the log levels from the least severe on.
var severities = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// setLogLevel sends one message of each level from the demanded one on.
func setLogLevel(s *server, m message) {
	var p struct{ Level string }
	_ = json.Unmarshal(m.Params, &p) // an unknown level is refused
	from := slices.Index(severities, p.Level)
	if from < 0 {
		s.sendError(m, -32602, "Invalid level")
		return
	}
	s.sendResult(m, `{}`)
	for _, level := range severities[from:] {
		s.sendLine(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level +
			`","logger":"fixture","data":` + quoteJSON("a message of \x1b[31m"+level) + `}}`)
	}
}

// reportProgress reports the steps of a call whose _meta has a progress token.
func (s *server) reportProgress(meta json.RawMessage, to int) {
	var token struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if json.Unmarshal(meta, &token) != nil || token.Token == nil {
		return
	}
	for i := 1; i <= to; i++ {
		s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,`+
			`"progress":%d,"total":%d,"message":"step \u001b[2J%d"}}`, token.Token, i, to, i))
		// The client may drop progress that comes faster.
		time.Sleep(20 * time.Millisecond)
	}
}
