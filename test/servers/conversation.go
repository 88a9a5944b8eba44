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
	// on replaces the handler of a method. Requests run concurrently, notifications in order.
	on map[string]func(*server, message)
	// extra are tools beside the good ones; list is the whole list if it is not nil.
	extra []string
	list  []string
	// tool handles a call of a tool that is not one of the good ones; nil says "unknown tool".
	tool func(s *server, m message, c call)

	// otherwise, if set, is the handler of every method without one of its own, in the place of good. nonsense, if set, is
	// told of lines that are no JSON. inOrder handles each message before the next one is read.
	otherwise func(*server, message)
	nonsense  func()
	inOrder   bool

	// standing makes it a server of the modern era; bare leaves the resultType of that era out.
	// older says that its client chose the other era.
	standing *standing
	older    atomic.Bool
	bare     bool

	in  *bufio.Reader
	mu  sync.Mutex // guards out, and keeps lines whole
	out *os.File

	stops  sync.Map // request id as text → chan struct{}, closed by notifications/cancelled
	asked  sync.Map // id as text of a request of ours → chan message
	nextID atomic.Int64
	grown  growth
	record *record
}

func newServer(p params) *server {
	return &server{
		params: p,
		on:     map[string]func(*server, message){},
		in:     bufio.NewReaderSize(os.Stdin, 64<<10),
		out:    os.Stdout,
		record: openRecord(p),
	}
}

// serve reads until standard input ends and returns the exit code. Running calls are not waited for: whoever closed the
// input does not want their answers.
func (s *server) serve() int {
	for {
		m, ok := s.read()
		if !ok {
			return 0
		}
		if m.Method == "" { // an answer to a request of ours
			if s.modern() {
				s.standing.answered()
			}
			if waiting, ok := s.asked.LoadAndDelete(string(m.ID)); ok {
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

// read gives the next message that is JSON; false when standard input has ended.
func (s *server) read() (message, bool) {
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return message{}, false
		}
		var m message
		if json.Unmarshal(line, &m) == nil {
			s.record.add(m)
			return m, true
		}
		if s.nonsense != nil {
			s.nonsense()
		}
		s.raw(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)
	}
}

func (s *server) dispatch(m message) {
	if h, ok := s.on[m.Method]; ok {
		h(s, m)
		return
	}
	if s.otherwise != nil {
		s.otherwise(s, m)
		return
	}
	s.good(m)
}

// good answers as the specification says.
func (s *server) good(m message) {
	if s.modern() && s.goodModern(m) {
		return
	}
	switch m.Method {
	case "initialize":
		s.initialize(m)
	case "ping":
		s.result(m, `{}`)
	case "tools/list":
		s.tools(m)
	case "tools/call":
		s.call(m)
	case "notifications/cancelled":
		var c struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &c) == nil {
			if s.modern() {
				s.standing.remove(string(c.RequestID))
			}
			if stop, ok := s.stops.LoadAndDelete(string(c.RequestID)); ok {
				close(stop.(chan struct{}))
			}
		}
	default:
		if m.ID != nil {
			s.refuse(m, -32601, "Method not found: "+m.Method)
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
	s.result(m, s.hello(p.ProtocolVersion))
}

// hello is the result of initialize.
func (s *server) hello(version string) string {
	return fmt.Sprintf(`{"protocolVersion":%s,"capabilities":{"tools":{"listChanged":true}},`+
		`"serverInfo":{"name":%s,"version":%s},"instructions":%s}`,
		quoted(s.text("version", version)), quoted(s.text("name", "fixture")), quoted("1.0.0"),
		quoted(s.text("instructions", "A fixture of mcpvisor's tests.")))
}

// pause waits, but not beyond the cancellation of the request; false means that it was cancelled.
func (s *server) pause(m message, d time.Duration) bool {
	stop := make(chan struct{})
	s.stops.Store(string(m.ID), stop)
	defer s.stops.Delete(string(m.ID))
	select {
	case <-time.After(d):
		return true
	case <-stop:
		return false
	}
}

// modern reports whether it is a server of the modern era.
func (s *server) modern() bool { return s.standing != nil && !s.older.Load() }

func (s *server) result(m message, result string) {
	if s.modern() && !s.bare {
		result = completed(result)
	}
	s.raw(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

func (s *server) refuse(m message, code int, text string) {
	s.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, m.ID, code, quoted(text)))
}

func (s *server) notify(method string) {
	if s.modern() {
		s.tell(method)
		return
	}
	s.raw(`{"jsonrpc":"2.0","method":` + quoted(method) + `}`)
}

// ask sends a request to the client and returns its answer.
func (s *server) ask(method, parameters string) message {
	id := fmt.Sprintf(`"fixture-%d"`, s.nextID.Add(1))
	waiting := make(chan message, 1)
	s.asked.Store(id, waiting)
	s.raw(`{"jsonrpc":"2.0","id":` + id + `,"method":` + quoted(method) + `,"params":` + parameters + `}`)
	return <-waiting
}

// raw writes one line. A client that went away is noticed when standard input ends, so the error says nothing new.
func (s *server) raw(line string) { s.bytes([]byte(line + "\n")) }

func (s *server) bytes(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(b)
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		panic(err)
	}
	return string(b)
}
