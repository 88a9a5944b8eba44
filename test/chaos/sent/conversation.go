package sent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A conversation is the state of one connection that a rule depends on. The machine of the server owns it; its driver makes one
// call after the other, so it has no lock.
type conversation struct {
	server scenario.Server
	// declared are the capabilities that the client has to declare, nil if it may declare what it wants.
	declared []string
	// crossTime is virtualCrossTime or realCrossTime.
	crossTime time.Duration
	sessions  []string // the ids of HTTP sessions that the server has given
	// version is the version of the server's initialize result, empty before; initialized is set by notifications/initialized.
	// modern is set by the first result while version is empty, the era probe's aside: from then on the connection speaks the
	// modern era.
	version             string
	initialized, modern bool
	// discovered is set by a result of server/discover. The client may go on in the modern era then, whatever becomes of an
	// initialize that it has sent beside it.
	discovered bool
	closed     bool // the client has closed its side, at closedAt
	closedAt   time.Duration
	misled     bool // the server wrote stray bytes, so what the client read is unknown
	pause      pause

	// See ends.go: ended is set when the next handshake begins another conversation, lost by a 404 to the session, at lostAt.
	// refusedNotices counts the refused notifications that have not come again, lastMethod is that of the last message.
	ended, lost    bool
	lostAt         time.Duration
	refusedNotices int
	lastMethod     string

	requests map[string]*request // by id, as its JSON text
	order    []string            // their ids, the oldest first
	tokens   map[string]string   // the id of the request that has a progress token, by the token's JSON text
	// asked holds the server's requests, by id.
	asked map[string]*question
	tasks map[string]*taskState
	// knownTasks are the tasks of which the server has told on any connection.
	knownTasks map[string]bool
	// knownRounds are the conversations in which the server has given the states of its rounds, on any connection.
	knownRounds map[string]*conversation
	// looks are the times at which it was asked last for those of which it has not told on this one.
	looks    map[string]time.Duration
	lists    map[string]*listing // by method
	rounds   []*round
	problems []string
}

// An ending says how a request ended; it is empty while the request is in progress.
type ending string

const (
	answered  ending = "answered"
	cancelled ending = "cancelled"
	refused   ending = "refused"   // with an HTTP status
	abandoned ending = "abandoned" // the caller gave up, or the connection is gone
)

// A request is one that the client sent. params is kept only where the server may ask for another round, onDemand is set by
// tasks/get outside of the polling. takeBacks undo the changes of the request if the server refuses it, and abandoned those that do not count if the
// exchange ends without an answer. torn is set once the stream broke that is to bring the answer, which the client then gets at a time that nothing shows.
type request struct {
	method, token, task string
	params              map[string]json.RawMessage
	onDemand            bool
	mayBeProgram        bool // a tasks/get after a list of tasks, of which nothing tells whether it is one of the polling
	takeBacks           []func()
	abandoned           func() // nil without anything to do
	torn                bool
	caller              string // whose credentials it had, over HTTP; empty for those of the connection
	end                 ending
	endedAt             time.Duration
}

// longestMessage is the length in bytes of the longest message that the client reads: 16 MiB, as its transports say.
const longestMessage = 16 << 20

// keptRequests bounds the requests, and the cursors, that are remembered of one connection.
const keptRequests = 4096

// newConversation returns the state of a connection on which no message was sent.
func newConversation(s scenario.Server, declared []string, crossTime time.Duration, knownTasks map[string]bool, knownRounds map[string]*conversation) *conversation {
	return &conversation{
		server: s, declared: declared, crossTime: crossTime, requests: map[string]*request{}, tokens: map[string]string{}, asked: map[string]*question{}, tasks: map[string]*taskState{},
		lists: map[string]*listing{}, knownTasks: knownTasks, knownRounds: knownRounds, looks: map[string]time.Duration{},
	}
}

// A message is one JSON-RPC message; a nil member is absent. header holds the HTTP headers, nil on other transports.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`

	// The members of params and of params._meta, parsed once for all rules.
	params map[string]json.RawMessage
	meta   map[string]json.RawMessage
	header map[string]string
}

// caller returns the caller whose credentials a message has, empty for those of the connection.
func (m *message) caller() string {
	_, caller := scenario.SplitToken(m.header["Authorization"])
	return caller
}

// reportProblem adds a breach of a rule. The text speaks of the server as "it".
func (c *conversation) reportProblem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// receiveBody judges a body that the client sent, and returns the breaches in it. now is the server's time.
func (c *conversation) receiveBody(now time.Duration, body []byte, header map[string]string) []string {
	c.problems = nil
	body = bytes.TrimSpace(body)
	if c.closed && !c.mayCome(now) {
		c.reportProblem("it was sent a message on a connection that the client had closed: %s", messages.Line(string(body), 120))
	}
	if !utf8.Valid(body) {
		c.reportProblem("it was sent a message that is not UTF-8")
	}
	// Only the version 2025-03-26 has batches.
	if len(body) > 0 && body[0] == '[' && c.version == "2025-03-26" {
		var batch []json.RawMessage
		if json.Unmarshal(body, &batch) == nil {
			for _, one := range batch {
				c.receiveMessage(now, one, header)
			}
			return c.problems
		}
	}
	c.receiveMessage(now, body, header)
	return c.problems
}

// mayCome reports whether a message may have been sent before the client closed its side, although it comes afterwards. Over HTTP each
// message is a request of its own, and among real processes the end of the session may overtake one that was under way.
func (c *conversation) mayCome(now time.Duration) bool {
	return c.crossTime == realCrossTime && (c.server.Kind == messages.HTTP || c.server.Kind == messages.SSE) && now <= c.closedAt+c.crossTime
}

// receiveMessage judges one message: first its form, then its method, era and headers, then its place among the others.
func (c *conversation) receiveMessage(now time.Duration, body []byte, header map[string]string) {
	// What cannot be parsed is a breach by itself, and has no further place to be judged by.
	m := &message{header: header}
	if err := json.Unmarshal(body, m); err != nil {
		c.reportProblem("it was sent what is no JSON-RPC message (%v): %s", err, messages.Line(string(body), 120))
		return
	}
	if m.JSONRPC != "2.0" {
		c.reportProblem("it was sent a message whose member jsonrpc is %q: %s", m.JSONRPC, messages.Line(string(body), 120))
	}
	if m.Method == nil {
		c.receiveAnswer(m)
		return
	}
	if m.Params != nil && readObject(m.Params, &m.params) != nil {
		c.reportProblem("the params of %s are no object: %s", *m.Method, messages.Line(string(m.Params), 120))
		return
	}
	if m.params["_meta"] != nil && readObject(m.params["_meta"], &m.meta) != nil {
		c.reportProblem("_meta of %s is no object: %s", *m.Method, messages.Line(string(m.params["_meta"]), 120))
	}
	// The order counts: a first message after an end opens another conversation, by whose rules it is judged.
	c.beginAnother(m)
	c.checkEnded(now, *m.Method)
	c.checkMethod(m)
	c.checkEra(m)
	c.checkHeaders(m)
	c.lastMethod = *m.Method
	if m.ID == nil {
		c.receiveNotification(now, m)
		return
	}
	c.receiveRequest(now, m)
}

// receiveRequest judges a request by those before it, and remembers it.
func (c *conversation) receiveRequest(now time.Duration, m *message) {
	id := string(m.ID)
	if !isID(m.ID) {
		c.reportProblem("the id of %s is %s: 2025-11-25, \"Requests MUST include a string or integer ID\"", *m.Method, messages.Line(id, 60))
		return
	}
	r := &request{method: *m.Method, caller: m.caller()}
	// 2025-11-25: "The request ID MUST NOT have been previously used by the requestor within the same session."
	if old := c.requests[id]; old != nil && (old.end != refused || old.method != r.method) {
		c.reportProblem("the id %s of %s is that of %s, which was sent before it", id, r.method, old.method)
	}
	// A request that broke a rule is remembered all the same: the server answers it, and the rules about answers need it.
	c.checkToken(m, r, id)
	c.requests[id] = r
	c.order = append(c.order, id)
	c.forgetOldest()
	switch r.method {
	case "tools/call":
		c.checkCall(m)
	case "tasks/get", "tasks/result", "tasks/cancel", "tasks/update":
		c.receiveTaskRequest(now, m, r)
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		c.receiveListRequest(m, r)
	}
	c.receiveRound(m, r)
}

// forgetOldest bounds the memory of a long conversation. It keeps requests in progress, because a second use of their id must
// be noticed.
func (c *conversation) forgetOldest() {
	if len(c.order) <= keptRequests {
		return
	}
	oldest := c.order[0]
	c.order = c.order[1:]
	if r := c.requests[oldest]; r != nil && r.end == "" {
		c.order = append(c.order, oldest)
		return
	}
	delete(c.requests, oldest)
}

// checkToken judges a progress token.
//
// 2025-11-25: "Progress tokens MUST be a string or integer value" and "MUST be unique across all active requests".
func (c *conversation) checkToken(m *message, r *request, id string) {
	token := m.meta["progressToken"]
	if token == nil {
		return
	}
	if !isID(token) {
		c.reportProblem("the progress token of %s is %s", r.method, messages.Line(string(token), 60))
		return
	}
	r.token = string(token)
	if holder, taken := c.tokens[r.token]; taken && holder != id {
		if o := c.requests[holder]; o != nil && o.end == "" {
			c.reportProblem("the progress token %s of %s (id %s) is that of %s (id %s), which is under way", r.token, r.method, id, o.method, holder)
		}
	}
	c.tokens[r.token] = id
}

// endRequest records the end of a request and frees its token and its task. It returns the request, nil for an unknown id; a
// second end changes nothing.
func (c *conversation) endRequest(now time.Duration, id string, how ending) *request {
	r := c.requests[id]
	if r == nil || r.end != "" {
		return r
	}
	// The token may be used again from here on, and the task be asked for again.
	r.end, r.endedAt = how, now
	if how == abandoned && r.abandoned != nil {
		r.abandoned()
	}
	if r.token != "" && c.tokens[r.token] == id {
		delete(c.tokens, r.token)
	}
	c.endTaskRequest(r, how)
	return r
}

// observeMessage follows a message of the server. at is when its last byte has arrived.
func (c *conversation) observeMessage(at time.Duration, s peer.Send) {
	r := c.requests[s.Reply]
	torn := s.Cut > 0 || r != nil && r.torn && !s.More
	// A message that is cut, mistyped or longer than the client reads is no answer, but it ends its request.
	if torn || s.Type != "" || len(s.Body) > longestMessage {
		if s.Reply == "" {
			return
		}
		r := c.endRequest(at, s.Reply, abandoned)
		// Where the events of a stream are numbered, the client may go on with it, and then learns of the task in the answer.
		if result := membersOf(membersOf(s.Body)["result"]); torn && c.server.Web == scenario.WebNumbered && r != nil && result != nil {
			c.observeResult(at, r, result, true)
		}
		return
	}
	// A message that is not the last one of its exchange is a notification or a question on the request's stream.
	if s.Reply == "" || s.More {
		c.observeOther(at, s.Body)
		return
	}
	if r == nil || r.end == answered {
		return
	}
	// The result of a request that the client has ended must not start a round.
	wasOpen := r.end == ""
	c.endRequest(at, s.Reply, answered)
	if !c.readsAnswer(r) {
		return
	}
	answer := membersOf(s.Body)
	result := membersOf(answer["result"])
	if string(answer["id"]) != s.Reply {
		return
	}
	if result == nil {
		c.allowEarlyPoll(r)
		return
	}
	c.observeResult(at, r, result, wasOpen)
}

// membersOf returns the members of an object, without copying them: an answer may have 17 MiB. It returns nil for anything else.
func membersOf(raw []byte) map[string]json.RawMessage {
	if !isObject(raw) {
		return nil
	}
	members := map[string]json.RawMessage{}
	o := rawjson.ObjectAt(raw, 0, 0)
	for o.Next() {
		members[string(o.Name)] = o.Skip()
	}
	if o.End() < 0 {
		return nil
	}
	return members
}

// readObject reads the members of a part of a message that was parsed already, without checking or copying it once more.
func readObject(raw json.RawMessage, members *map[string]json.RawMessage) error {
	if *members = membersOf(raw); *members != nil {
		return nil
	}
	return json.Unmarshal(raw, members)
}

// readsAnswer reports whether a rule depends on the answer to a request. The others are not parsed, to keep long runs fast.
func (c *conversation) readsAnswer(r *request) bool {
	switch r.method {
	case "tools/call":
		return c.server.Tasks != "" || c.server.Offers
	case "ping", "logging/setLevel":
		return false
	}
	return true
}

// observeResult follows a result: the agreed version, cursors, tasks, rounds of input.
func (c *conversation) observeResult(at time.Duration, r *request, result map[string]json.RawMessage, wasOpen bool) {
	switch r.method {
	case "initialize":
		_ = json.Unmarshal(result["protocolVersion"], &c.version) // a version that is not a string agrees on nothing
		return
	case "server/discover":
		c.discovered = true
		// The refusal of an initialize that the client sent beside it, and that came a moment before, has ended nothing.
		if c.version == "" && !c.lost {
			c.ended = false
		}
		return
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		c.observeList(r.method, result["nextCursor"])
		if r.method == "tools/list" {
			c.observeTools(result["tools"])
		}
	case "tasks/list":
		c.observeTaskList(result["tasks"])
	case "tools/call", "tasks/get", "tasks/result", "tasks/cancel":
		c.observeTask(at, r, result)
	}
	// No version was agreed on by initialize, so a result proves the modern era.
	if c.version == "" {
		c.modern = true
	}
	if textOf(result["resultType"]) == "input_required" && wasOpen {
		c.observeRound(r, result)
	}
}

// isID reports whether a value is a string or an integer.
func isID(value json.RawMessage) bool {
	if len(value) == 0 {
		return false
	}
	return value[0] == '"' || (value[0] == '-' || value[0] >= '0' && value[0] <= '9') && !bytes.ContainsAny(value, ".eE")
}

// textOf returns a JSON string's value, empty for any other value.
func textOf(value json.RawMessage) (text string) {
	_ = json.Unmarshal(value, &text) // the text stays empty
	return text
}

// isObject reports whether a value is a JSON object.
func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }
