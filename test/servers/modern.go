package servers

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

var modernBehaved = []Kind{
	{"modern", func(p params) int { return newModern(p).serve() },
		"behaves in the era of 2026-07-28 and knows no initialize; start=0s is the time before it reads; its tool ask needs " +
			"{method, params} from the client, its tool heard answers how often it was sent what= (listens, answers)"},
	{"both-eras", bothEras,
		"behaves in both eras: whoever initializes is taken for a client of the older one"},
}

const (
	modernVersion   = "2026-07-28"
	metaPrefix      = "io.modelcontextprotocol/"
	codeBadVersion  = -32022
	completeOpening = `{"resultType":"complete"`
)

// subscriptions holds the open subscriptions of a modern server's client, and counts what the client has sent. mu
// guards all fields.
type subscriptions struct {
	mu sync.Mutex
	// open holds the ids of the requests, in order; listens counts all there ever were.
	open    []string
	listens int
	// answers counts messages with an id and no method, which a client of this era must not write.
	answers int
}

// newModern returns a server of the modern era that behaves.
//
// 2026-07-28: every result has a resultType, notifications need a subscription, and there is no session.
func newModern(p params) *server {
	time.Sleep(p.durationOr("start", 0))
	s := newServer(p)
	s.subscriptions = &subscriptions{}
	s.extra = []string{
		`{"name":"ask","description":"needs input","inputSchema":{"type":"object","properties":{"method":` +
			`{"type":"string"},"params":{"type":"object"}},"required":["method"]}}`,
		`{"name":"heard","inputSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`,
	}
	s.tool = func(s *server, m message, c callParams) {
		switch c.Name {
		case "ask":
			s.needInput(m, c)
		case "heard":
			s.sendText(m, fmt.Sprint(s.subscriptions.countOf(c.Arguments.Name)))
		default:
			s.sendError(m, -32602, "Unknown tool: "+c.Name)
		}
	}
	return s
}

// bothEras runs a modern server that treats a client which initializes as one of the legacy era from then on.
func bothEras(p params) int {
	s := newModern(p)
	s.handlers["initialize"] = func(s *server, m message) {
		s.legacyClient.Store(true)
		s.initialize(m)
	}
	return s.serve()
}

// goodModern answers the methods that only the modern era has, and requests of another version; false means that the
// method is common to both eras.
func (s *server) goodModern(m message) bool {
	if m.ID == nil {
		return false
	}
	// Requests of another version are refused with the versions that the server supports. initialize and ping do not
	// exist in this era, whatever version they name.
	if v := versionOf(m); v != modernVersion && m.Method != "initialize" && m.Method != "ping" {
		s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"Unsupported protocol version",`+
			`"data":{"supported":[%q],"requested":%s}}}`, m.ID, codeBadVersion, modernVersion, quoteJSON(v)))
		return true
	}
	switch m.Method {
	case "initialize", "ping":
		s.sendError(m, -32601, "Method not found: "+m.Method)
	case "server/discover":
		s.sendResult(m, s.discovery())
	case "subscriptions/listen":
		s.openSubscription(m)
	default:
		return false
	}
	return true
}

// versionOf returns the protocol version that a request names in its _meta; empty if it names none.
func versionOf(m message) string {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	var version string
	if json.Unmarshal(m.Params, &p) == nil {
		// A version that is no string counts as none.
		_ = json.Unmarshal(p.Meta[metaPrefix+"protocolVersion"], &version)
	}
	return version
}

// discovery returns the result of server/discover.
func (s *server) discovery() string {
	return fmt.Sprintf(`{"supportedVersions":[%q],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,`+
		`"cacheScope":"private","instructions":%s,"_meta":{"%sserverInfo":{"name":%s,"version":"1.0.0"}}}`, modernVersion,
		quoteJSON(s.textOr("instructions", "A fixture of mcpvisor's tests.")), metaPrefix, quoteJSON(s.textOr("name", "fixture")))
}

// openSubscription opens a subscription and agrees to all of its filter. The request stays unanswered until the
// subscription ends.
func (s *server) openSubscription(m message) {
	var p struct {
		Notifications json.RawMessage `json:"notifications"`
	}
	_ = json.Unmarshal(m.Params, &p) // no filter is an empty one
	if p.Notifications == nil {
		p.Notifications = json.RawMessage(`{}`)
	}
	s.subscriptions.addID(string(m.ID))
	s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":`+
		`{"%ssubscriptionId":%s},"notifications":%s}}`, metaPrefix, m.ID, p.Notifications))
}

// notifySubscribers sends a notification on every subscription.
func (s *server) notifySubscribers(method string) {
	for _, id := range s.subscriptions.openIDs() {
		s.notifySubscription(method, id)
	}
}

// notifySubscription sends a notification on one subscription.
func (s *server) notifySubscription(method, id string) {
	s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"_meta":{"%ssubscriptionId":%s}}}`, method, metaPrefix, id))
}

// needInput asks the client by a result of type input_required, and answers the repeated call with the responses in it.
func (s *server) needInput(m message, c callParams) {
	var p struct {
		InputResponses json.RawMessage `json:"inputResponses"`
		RequestState   string          `json:"requestState"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		s.sendError(m, -32602, "Invalid params: "+err.Error())
		return
	}
	// The client has repeated the call with its answers; the state shows that it was returned unchanged.
	if p.InputResponses != nil {
		s.sendText(m, p.RequestState+" "+string(p.InputResponses))
		return
	}
	parameters := string(c.Arguments.Params)
	if parameters == "" {
		parameters = "{}"
	}
	s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","inputRequests":{"asked":`+
		`{"method":%s,"params":%s}},"requestState":"state"}}`, m.ID, quoteJSON(c.Arguments.Method), parameters))
}

// addID notes a subscription that is open, by the id of its request.
func (st *subscriptions) addID(id string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.open = append(st.open, id)
	st.listens++
}

// removeID ends a subscription, if it is open.
func (st *subscriptions) removeID(id string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	kept := st.open[:0]
	for _, o := range st.open {
		if o != id {
			kept = append(kept, o)
		}
	}
	st.open = kept
}

func (st *subscriptions) openIDs() []string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return append([]string(nil), st.open...)
}

func (st *subscriptions) countAnswer() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.answers++
}

// countOf returns a count by the word of the tool heard: "answers", or the subscriptions that there ever were.
func (st *subscriptions) countOf(what string) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	if what == "answers" {
		return st.answers
	}
	return st.listens
}

// cacheMembers returns the members that every list of the modern era has: the time for which a client may keep it, and
// for whom.
func (s *server) cacheMembers() string {
	if s.isModern() && !s.noResultType {
		return `,"ttlMs":0,"cacheScope":"private"`
	}
	return ""
}

// addResultType returns a result with the resultType that the modern era demands, unless it has one.
func addResultType(result string) string {
	inside, ok := strings.CutPrefix(result, "{")
	if !ok || strings.HasPrefix(inside, `"resultType"`) {
		return result
	}
	if inside == "}" {
		return completeOpening + inside
	}
	return completeOpening + "," + inside
}
