package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// message is a message as an agent reads it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// receiveMessage takes one message of the endpoint. status is that of the response over HTTP, 0 otherwise; via is the id of the request
// in whose exchange it came, empty for what comes in no request's.
func (s *session) receiveMessage(body []byte, status int, via string) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		s.agent.fleet.reportFinding("I25", "", s.agent.plan.Name+" got what is no message: "+messages.Line(string(body), 200))
		return
	}
	switch {
	case m.Method != "" && m.ID != nil:
		s.receiveQuestion(&m, via)
	case m.Method != "":
		s.receiveNotice(&m)
	default:
		s.receiveAnswer(string(m.ID), answer{result: m.Result, problem: m.Error, status: status})
	}
}

// receiveAnswer records an answer, and gives it to the request that waits for it.
func (s *session) receiveAnswer(id string, got answer) {
	if s.takeReused(id, got) {
		return
	}
	s.mu.Lock()
	r := s.asked[id]
	parted := s.parted
	if r != nil {
		delete(s.asked, id)
		s.answered[r.about] = s.answered[r.about] || r.method == "tools/call" && !isTask(got.result) || r.method == "tasks/result"
	}
	s.mu.Unlock()
	if parted {
		return // who has gone reads nothing
	}
	e := history.Event{Kind: history.Replied, Epoch: s.epoch, ID: id, Code: codeOf(got)}
	if r != nil {
		e.Method, e.Name = r.method, r.name
	}
	switch {
	case got.problem != nil:
		e.Text = errorText(got.problem)
	case e.Method == "tools/call" && isTask(got.result):
		e.Task = becameTask
	case e.Method == "tools/call" || e.Method == "tasks/result":
		read := readCall(got.result)
		e.About, e.Outcome = read.call, read.outcome
	case e.Method == "resources/read" || e.Method == "prompts/get":
		if r != nil {
			e.About, e.Rev = r.about, s.agent.stateIn(r, got.result)
		}
	case e.Method == "completion/complete" && r != nil:
		s.agent.checkCompletion(r, got.result)
	case e.Method == "resources/templates/list":
		s.agent.offersOf(got.result, "resourceTemplates", "uriTemplate")
	case e.Method == "tools/list":
		e.Entries = s.agent.entriesOf(got.result)
	case e.Method == "resources/list":
		e.Entries = s.agent.offersOf(got.result, "resources", "uri")
	case e.Method == "prompts/list":
		e.Entries = s.agent.offersOf(got.result, "prompts", "name")
	}
	s.agent.recordEvent(e)
	if r != nil {
		r.done <- got
	}
}

// becameTask is the Task of the answer to a call which has become one: its id differs from run to run.
const becameTask = "task"

// codeOf returns the code of an error, or the status of a response that is no message; 0 for a result.
func codeOf(got answer) int {
	if got.problem == nil {
		if got.result == nil {
			return got.status
		}
		return 0
	}
	var e struct {
		Code int `json:"code"`
	}
	_ = json.Unmarshal(got.problem, &e) // an error without a code has the code 0
	if e.Code == 0 {
		return -1
	}
	return e.Code
}

func errorText(problem []byte) string {
	text, _ := rawjson.Text(rawjson.Member(problem, "message"))
	return messages.Line(text, 200)
}

// receiveNotice records a notification.
func (s *session) receiveNotice(m *message) {
	var p struct {
		URI   string          `json:"uri"`
		Token json.RawMessage `json:"progressToken"`
		Level string          `json:"level"`
		Data  json.RawMessage `json:"data"`
		Meta  struct {
			Subscription json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p) // params without these members say nothing that is recorded
	e := history.Event{Kind: history.Noticed, Epoch: s.epoch, Method: m.Method, ID: string(p.Meta.Subscription)}
	switch m.Method {
	case "notifications/progress":
		e.About = strings.Trim(string(p.Token), `"`)
	case "notifications/resources/updated":
		e.About = p.URI
	case "notifications/tasks", "notifications/tasks/status":
		e.About = s.agent.noteTaskNews(m.Params)
	case "notifications/subscriptions/acknowledged":
		s.agent.noteListened(m.Params)
		uris := rawjson.ArrayAt(rawjson.Member(rawjson.Member(m.Params, "notifications"), "resourceSubscriptions"), 0, 0)
		if uris.Next() {
			e.About, _ = rawjson.Text(uris.Skip())
		}
	case "notifications/cancelled":
		e.About = s.takeQuestionBack(m.Params)
	case "notifications/message":
		e.About, _ = rawjson.Text(rawjson.Member(p.Data, "call"))
		e.Level = p.Level
	}
	s.agent.recordEvent(e)
}

// answerTo is the answer to a question. It names the server, so that the server sees an answer that was meant for another one; who
// does not know which server asks names all.
func (a *agent) answerTo(method, server string) string {
	if server == "" {
		var all []string
		for _, s := range a.fleet.Plan.Servers {
			all = append(all, s.Name)
		}
		server = strings.Join(all, " ")
	}
	name := string(rawjson.AppendText(nil, server))
	switch method {
	case "sampling/createMessage":
		return `{"role":"assistant","content":{"type":"text","text":` + name + `},"model":"none"}`
	case "roots/list":
		return `{"roots":[{"uri":"file:///` + strings.ReplaceAll(server, " ", "/") + `","name":"work"}]}`
	case "elicitation/create":
		return `{"action":"accept","content":{"go":true,"for":` + name + `}}`
	}
	return "{}"
}

// callResult is what stands in the answer to a call.
type callResult struct {
	outcome     messages.Outcome
	class       messages.Class
	call        string
	conn, value int
	text        string
}

// readCall reads the result of a call.
func readCall(result []byte) (read callResult) {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
		Meta    struct {
			Outcome messages.Outcome `json:"mcpvisor/outcome"`
			Class   messages.Class   `json:"mcpvisor/class"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return callResult{outcome: "unreadable", text: err.Error()}
	}
	var own struct {
		Call  string `json:"call"`
		Conn  int    `json:"conn"`
		Value int    `json:"value"`
	}
	if len(r.Content) > 0 {
		read.text = r.Content[0].Text
		_ = json.Unmarshal([]byte(read.text), &own) // the text of a failure is no JSON
	}
	read.call, read.conn, read.value, read.outcome, read.class = own.Call, own.Conn, own.Value, r.Meta.Outcome, r.Meta.Class
	if read.outcome == "" {
		if read.outcome = messages.OutcomeResult; r.IsError {
			read.outcome = messages.OutcomeToolError
		}
	}
	return read
}

// entriesOf returns the tools of each server in a list, with the names and the definitions that their servers gave them.
func (a *agent) entriesOf(result []byte) (all []history.Entries) {
	tools := map[string][]messages.Tool{}
	shortened := map[string]bool{}
	var order []string
	for list := rawjson.ArrayAt(rawjson.Member(result, "tools"), 0, 0); list.Next(); {
		raw := list.Skip()
		shown, _ := rawjson.Text(rawjson.Member(raw, "name"))
		server, name := a.plan.View, shown
		if server == "" {
			server, name = a.fleet.serverOfTool(shown)
		}
		shortened[server] = shortened[server] || len(shown) >= longName || strings.Contains(name, "_")
		if tools[server] == nil {
			order = append(order, server)
		}
		tools[server] = append(tools[server], messages.Tool{Name: name, Raw: withOwnName(raw, shown, name)})
	}
	for _, server := range order {
		e := history.Entries{Server: server, Count: len(tools[server])}
		if !shortened[server] {
			e.Hash = history.HashTools(tools[server])
		}
		all = append(all, e)
	}
	return all
}

// offersOf counts the resources or the prompts of each server in a list, by what names them.
func (a *agent) offersOf(result []byte, list, member string) (all []history.Entries) {
	for entries := rawjson.ArrayAt(rawjson.Member(result, list), 0, 0); entries.Next(); {
		raw := entries.Skip()
		name, _ := rawjson.Text(rawjson.Member(raw, member))
		server := a.plan.View
		if uri, ok := strings.CutPrefix(name, "chaos://"); ok {
			server, _, _ = strings.Cut(uri, "/")
		} else if server == "" {
			server, _ = a.fleet.serverOfTool(name)
		}
		i := slices.IndexFunc(all, func(e history.Entries) bool { return e.Server == server })
		if i < 0 {
			i, all = len(all), append(all, history.Entries{Server: server})
		}
		all[i].Count++
		a.checkDefinition(server, name, raw)
	}
	return all
}

// checkDefinition judges that a resource, a template or a prompt in a list is as its server defines it, but for the name of a prompt.
func (a *agent) checkDefinition(server, shown string, raw []byte) {
	var want string
	switch name, isOffer := strings.CutPrefix(shown, scenario.OfferURI(server, "")); {
	case isOffer && strings.HasPrefix(name, "{name}"):
		want = scenario.TemplateOf(server, scenario.StateOfTemplate(name))
	case isOffer:
		want = scenario.ResourceOf(server, name)
	default:
		_, name = a.fleet.serverOfTool(shown)
		if a.plan.View != "" {
			name = shown
		}
		if name != "greet" && !strings.HasPrefix(name, "greet-") {
			return // a shortened name
		}
		want = scenario.PromptOf(name, shown)
	}
	if history.HashContent(raw) != history.HashContent([]byte(want)) {
		a.fleet.reportFinding("I25", server, fmt.Sprintf("%s was given the definition %s in a list, and the server has %s", a.plan.Name, messages.Line(string(raw), 300), messages.Line(want, 300)))
	}
}

// checkCompletion judges that proposals for an argument are those of the server.
func (a *agent) checkCompletion(r *request, result []byte) {
	about := r.about
	// Without its server another one may have a prompt by the name that is shown.
	names := []string{about}
	if a.plan.View == "" && !strings.HasPrefix(about, "chaos://") {
		// A name can be that of two servers of which one has the other's name before its own: read of sx__b, and b__read of sx.
		for _, s := range a.fleet.Plan.Servers {
			if own, ok := strings.CutPrefix(about, s.Name+"__"); ok {
				names = append(names, own)
			}
		}
	}
	want, isOwn := "", false
	for _, name := range names {
		want = scenario.EncodeCompletion(scenario.CompletionOf(name, "who", completedValue, "all"))
		isOwn = isOwn || history.HashContent(rawjson.Member(result, "completion")) == history.HashContent(rawjson.Member([]byte(want), "completion"))
	}
	if r.name == "" && len(result) > 0 && !isOwn {
		a.fleet.reportFinding("I25", "", fmt.Sprintf("%s asked for proposals for %s, and was given %s instead of %s", a.plan.Name, r.about, messages.Line(string(result), 300), want))
	}
}

// stateIn returns the number of the state in what was read: 0 if it states none, as an error or a request for input, history.Foreign if it is that
// of another server, or no answer to a read at all.
func (a *agent) stateIn(r *request, result []byte) (rev int) {
	content := rawjson.ArrayAt(rawjson.Member(result, "contents"), 0, 0)
	if r.method == "prompts/get" {
		content = rawjson.ArrayAt(rawjson.Member(result, "messages"), 0, 0)
	}
	if !content.Next() {
		if len(result) > 0 && !isInputRequired(result) {
			return history.Foreign
		}
		return 0
	}
	// Of several parts the first one states it.
	part := content.Skip()
	if r.method == "prompts/get" {
		part = rawjson.Member(part, "content")
	}
	text, _ := rawjson.Text(rawjson.Member(part, "text"))
	server := ""
	if _, err := fmt.Sscanf(text, "state %d of %s", &rev, &server); err != nil {
		return 0
	}
	if r.about != "chaos://"+server+"/one" && r.about != a.shownName(server, "greet") || a.plan.View != "" && a.plan.View != server {
		return history.Foreign
	}
	return rev
}

// longName is the length from which a name may be a shortened one, of which nobody can tell the server's own; nor can anybody where a
// character has become "_". The hash of such a list is left out.
const longName = 40

// withOwnName returns a definition with the name that its server gave it.
func withOwnName(raw []byte, shown, name string) json.RawMessage {
	if shown == name {
		return raw
	}
	from, to := `"name":`+string(rawjson.AppendText(nil, shown)), `"name":`+string(rawjson.AppendText(nil, name))
	return json.RawMessage(strings.Replace(string(raw), from, to, 1))
}
