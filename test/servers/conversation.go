package servers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// message is any JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// server is one conversation over standard input and output. A fixture is a good server with some of its handlers
// replaced. All fields up to noResultType are set before serve and not changed after it, except legacyClient.
type server struct {
	params
	// handlers replaces the handler of a method. Requests run concurrently, each on its own goroutine, notifications in
	// order on the reading one.
	handlers map[string]func(*server, message)
	// extra holds tools beside the good ones; list, if not nil, is the whole list.
	extra []string
	list  []string
	// tool handles a call of a tool that is not one of the good ones; with nil the server answers "Unknown tool".
	tool func(s *server, m message, c callParams)

	// fallback, if set, handles every method without a handler of its own, in the place of answerBySpec. onInvalidLine,
	// if set, is called for lines that are no JSON. inOrder handles each message before the next one is read.
	fallback      func(*server, message)
	onInvalidLine func()
	inOrder       bool

	// subscriptions makes it a server of the modern era; noResultType leaves the resultType of that era out.
	// legacyClient is set once a client has chosen the legacy era by initialize.
	subscriptions *subscriptions
	legacyClient  atomic.Bool
	noResultType  bool

	in *bufio.Reader
	// mu guards out and keeps lines whole.
	mu  sync.Mutex
	out *os.File

	// cancelChannels maps the id of a running request, as text, to a chan struct{}, which notifications/cancelled
	// closes.
	cancelChannels sync.Map
	// pendingRequests maps the id of a request to the client, as text, to the chan message that waits for its answer.
	pendingRequests sync.Map
	nextID          atomic.Int64
	dynamic         dynamicTools
	traffic         *trafficLog
}

// newServer returns a good server over the standard files of the process.
func newServer(p params) *server {
	return &server{
		params:   p,
		handlers: map[string]func(*server, message){},
		in:       bufio.NewReaderSize(os.Stdin, 64<<10),
		out:      os.Stdout,
		traffic:  openTrafficLog(p),
	}
}

// serve reads until standard input ends and returns the exit code. It does not wait for running calls, because the
// client that closed the input does not read their answers.
func (s *server) serve() int {
	for {
		m, ok := s.readMessage()
		if !ok {
			return 0
		}
		// The message answers a request of this server.
		if m.Method == "" {
			if s.isModern() {
				s.subscriptions.countAnswer()
			}
			if waiting, ok := s.pendingRequests.LoadAndDelete(string(m.ID)); ok {
				waiting.(chan message) <- m
			}
			continue
		}
		if m.ID == nil || s.inOrder {
			s.dispatch(m)
			continue
		}
		// A goroutine lives until its handler returns, or the process ends.
		go s.dispatch(m)
	}
}

// readMessage returns the next message that is JSON, and answers other lines with a parse error; false means that
// standard input has ended.
func (s *server) readMessage() (message, bool) {
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return message{}, false
		}
		var m message
		if json.Unmarshal(line, &m) == nil {
			s.traffic.addMessage(m)
			return m, true
		}
		if s.onInvalidLine != nil {
			s.onInvalidLine()
		}
		s.sendLine(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)
	}
}

// dispatch calls the handler of a message: the method's own, the fallback, or the one of a good server.
func (s *server) dispatch(m message) {
	if h, ok := s.handlers[m.Method]; ok {
		h(s, m)
		return
	}
	if s.fallback != nil {
		s.fallback(s, m)
		return
	}
	s.answerBySpec(m)
}

// answerBySpec answers as the specification demands.
func (s *server) answerBySpec(m message) {
	if s.isModern() && s.goodModern(m) {
		return
	}
	switch m.Method {
	case "initialize":
		s.initialize(m)
	case "ping":
		s.sendResult(m, `{}`)
	case "tools/list":
		s.listTools(m)
	case "tools/call":
		s.callTool(m)
	case "notifications/cancelled":
		var c struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &c) == nil {
			if s.isModern() {
				s.subscriptions.removeID(string(c.RequestID))
			}
			if stop, ok := s.cancelChannels.LoadAndDelete(string(c.RequestID)); ok {
				close(stop.(chan struct{}))
			}
		}
	default:
		if m.ID != nil {
			s.sendError(m, -32601, "Method not found: "+m.Method)
		}
	}
}

// versions holds the versions of the legacy era.
var versions = map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": true, "2025-11-25": true}

// initialize answers with the client's version if the server knows it, else with its own latest one.
func (s *server) initialize(m message) {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	// A version that cannot be read counts as an unknown one.
	_ = json.Unmarshal(m.Params, &p)
	if !versions[p.ProtocolVersion] {
		p.ProtocolVersion = "2025-11-25"
	}
	s.sendResult(m, s.initializeResult(p.ProtocolVersion))
}

// initializeResult returns the result of initialize; the parameters version, name and instructions override its texts.
func (s *server) initializeResult(version string) string {
	return fmt.Sprintf(`{"protocolVersion":%s,"capabilities":{"tools":{"listChanged":true}},`+
		`"serverInfo":{"name":%s,"version":%s},"instructions":%s}`,
		quoteJSON(s.textOr("version", version)), quoteJSON(s.textOr("name", "fixture")), quoteJSON("1.0.0"),
		quoteJSON(s.textOr("instructions", "A fixture of mcpvisor's tests.")))
}

// waitOrCancel waits for d; false means that the client cancelled the request before.
func (s *server) waitOrCancel(m message, d time.Duration) bool {
	stop := make(chan struct{})
	s.cancelChannels.Store(string(m.ID), stop)
	defer s.cancelChannels.Delete(string(m.ID))
	select {
	case <-time.After(d):
		return true
	case <-stop:
		return false
	}
}

// isModern reports whether the server speaks the modern era with this client.
func (s *server) isModern() bool { return s.subscriptions != nil && !s.legacyClient.Load() }

// sendResult answers a request, with the resultType of the modern era where it belongs.
func (s *server) sendResult(m message, result string) {
	if s.isModern() && !s.noResultType {
		result = addResultType(result)
	}
	s.sendLine(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

func (s *server) sendError(m message, code int, text string) {
	s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, m.ID, code, quoteJSON(text)))
}

// sendNotification sends a notification without parameters: in the modern era on each subscription, because that era
// knows no other ones.
func (s *server) sendNotification(method string) {
	if s.isModern() {
		s.notifySubscribers(method)
		return
	}
	s.sendLine(`{"jsonrpc":"2.0","method":` + quoteJSON(method) + `}`)
}

// requestClient sends a request to the client and waits for its answer, without a bound: a test that gets none fails by
// its own timeout.
func (s *server) requestClient(method, parameters string) message {
	id := fmt.Sprintf(`"fixture-%d"`, s.nextID.Add(1))
	waiting := make(chan message, 1)
	s.pendingRequests.Store(id, waiting)
	s.sendLine(`{"jsonrpc":"2.0","id":` + id + `,"method":` + quoteJSON(method) + `,"params":` + parameters + `}`)
	return <-waiting
}

// sendLine writes one line. The error is ignored, because a client that went away is noticed when standard input ends.
func (s *server) sendLine(line string) { s.writeBytes([]byte(line + "\n")) }

func (s *server) writeBytes(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(b)
}

// quoteJSON returns a text as a JSON string.
func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		panic(err)
	}
	return string(b)
}
