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
// replaced.
type server struct {
	params
	// handlers replaces the handler of a method. Requests run concurrently, notifications in order.
	handlers map[string]func(*server, message)
	// extra are tools beside the good ones; list is the whole list if it is not nil.
	extra []string
	list  []string
	// tool handles a call of a tool that is not one of the good ones; nil says "unknown tool".
	tool func(s *server, m message, c callParams)

	// fallback, if set, is the handler of every method without one of its own, in the place of good. nonsense, if set, is
	// told of lines that are no JSON. inOrder handles each message before the next one is read.
	fallback      func(*server, message)
	onInvalidLine func()
	inOrder       bool

	// subscriptions makes it a server of the modern era; bare leaves the resultType of that era out.
	// older says that its client chose the other era.
	subscriptions *subscriptions
	legacyClient  atomic.Bool
	noResultType  bool

	in  *bufio.Reader
	mu  sync.Mutex // guards out, and keeps lines whole
	out *os.File

	cancelChannels  sync.Map // request id as text → chan struct{}, closed by notifications/cancelled
	pendingRequests sync.Map // id as text of a request of ours → chan message
	nextID          atomic.Int64
	dynamic         dynamicTools
	traffic         *trafficLog
}

func newServer(p params) *server {
	return &server{
		params:   p,
		handlers: map[string]func(*server, message){},
		in:       bufio.NewReaderSize(os.Stdin, 64<<10),
		out:      os.Stdout,
		traffic:  openTrafficLog(p),
	}
}

// serve reads until standard input ends and returns the exit code. Running calls are not waited for: whoever closed the
// input does not want their answers.
func (s *server) serve() int {
	for {
		m, ok := s.readMessage()
		if !ok {
			return 0
		}
		if m.Method == "" { // an answer to a request of ours
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
		go s.dispatch(m)
	}
}

// readMessage gives the next message that is JSON; false when standard input has ended.
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

// answerBySpec answers as the specification says.
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

var versions = map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": true, "2025-11-25": true}

func (s *server) initialize(m message) {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(m.Params, &p) // a version that cannot be read is an unknown one
	if !versions[p.ProtocolVersion] {
		p.ProtocolVersion = "2025-11-25"
	}
	s.sendResult(m, s.initializeResult(p.ProtocolVersion))
}

// initializeResult is the result of initialize.
func (s *server) initializeResult(version string) string {
	return fmt.Sprintf(`{"protocolVersion":%s,"capabilities":{"tools":{"listChanged":true}},`+
		`"serverInfo":{"name":%s,"version":%s},"instructions":%s}`,
		quoteJSON(s.textOr("version", version)), quoteJSON(s.textOr("name", "fixture")), quoteJSON("1.0.0"),
		quoteJSON(s.textOr("instructions", "A fixture of mcpvisor's tests.")))
}

// waitOrCancel waits, but not beyond the cancellation of the request; false means that it was cancelled.
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

// isModern reports whether it is a server of the modern era.
func (s *server) isModern() bool { return s.subscriptions != nil && !s.legacyClient.Load() }

func (s *server) sendResult(m message, result string) {
	if s.isModern() && !s.noResultType {
		result = addResultType(result)
	}
	s.sendLine(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

func (s *server) sendError(m message, code int, text string) {
	s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, m.ID, code, quoteJSON(text)))
}

func (s *server) sendNotification(method string) {
	if s.isModern() {
		s.notifySubscribers(method)
		return
	}
	s.sendLine(`{"jsonrpc":"2.0","method":` + quoteJSON(method) + `}`)
}

// requestClient sends a request to the client and returns its answer.
func (s *server) requestClient(method, parameters string) message {
	id := fmt.Sprintf(`"fixture-%d"`, s.nextID.Add(1))
	waiting := make(chan message, 1)
	s.pendingRequests.Store(id, waiting)
	s.sendLine(`{"jsonrpc":"2.0","id":` + id + `,"method":` + quoteJSON(method) + `,"params":` + parameters + `}`)
	return <-waiting
}

// sendLine writes one line. A client that went away is noticed when standard input ends, so the error says nothing new.
func (s *server) sendLine(line string) { s.writeBytes([]byte(line + "\n")) }

func (s *server) writeBytes(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(b)
}

func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		panic(err)
	}
	return string(b)
}
