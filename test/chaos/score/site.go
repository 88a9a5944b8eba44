package score

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
)

// site is an MCP server over streamable HTTP of one era, written for this package so that it is no contestant's own. It
// keeps what it was asked, and misbehaves as fault says.
type site struct {
	url    string
	modern bool
	server *http.Server
	// life ends the streams and what hangs.
	life chan struct{}

	mu sync.Mutex
	// fault, if set, may answer a request in its own way: then it returns true. method is the JSON-RPC method, empty for
	// GET and DELETE.
	fault    func(w http.ResponseWriter, r *http.Request, method string) bool
	sessions map[string]chan struct{} // closed when the session's streams are cut
	streams  map[chan string]struct{}
	visits   []visit
	ran      map[string]int // executions by the call's text
	grown    []string
	next     int
}

// visit is one request.
type visit struct {
	at     time.Time
	verb   string
	method string
	header http.Header
}

const siteVersion, modernVersion = "2025-11-25", "2026-07-28"

// site starts one.
func (a *arena) site(modern bool) (*site, *peer) {
	s := &site{modern: modern, life: make(chan struct{}), sessions: map[string]chan struct{}{},
		streams: map[chan string]struct{}{}, ran: map[string]int{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { // no port is left: every point of the case is lost, and says so
		a.must(false, "the server starts", "%s", err)
		l, _ = net.Listen("unix", a.dir+"/none")
	}
	s.url = "http://" + l.Addr().String() + "/mcp"
	s.serve(l)
	a.sites = append(a.sites, s)
	a.made++
	return s, &peer{name: fmt.Sprintf("w%d", a.made), where: adapter.Command{URL: s.url}, site: s}
}

func (s *site) serve(l net.Listener) {
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(l) }() // it ends with end
}

// end cuts every connection.
func (s *site) end() {
	s.mu.Lock()
	select {
	case <-s.life:
	default:
		close(s.life)
	}
	s.mu.Unlock()
	s.server.Close()
}

// restart ends the server's process, as it were, and starts another one on the same port after a while: every connection
// and session is gone.
func (s *site) restart(after time.Duration) {
	addr := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	s.end()
	time.Sleep(after)
	s.mu.Lock()
	s.life, s.sessions, s.streams = make(chan struct{}), map[string]chan struct{}{}, map[chan string]struct{}{}
	s.mu.Unlock()
	for range 100 { // the port may be lingering
		if l, err := net.Listen("tcp", addr); err == nil {
			s.serve(l)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// breaks sets a fault; nil heals.
func (s *site) breaks(f func(w http.ResponseWriter, r *http.Request, method string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// forget loses every session, as a restart behind a proxy does.
func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, cut := range s.sessions {
		close(cut)
		delete(s.sessions, id)
	}
}

// cut ends the streams and keeps the sessions.
func (s *site) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, cut := range s.sessions {
		close(cut)
		s.sessions[id] = make(chan struct{})
	}
}

// visited counts requests; verb or method may be empty for any.
func (s *site) visited(verb, method string) (n int) {
	for _, v := range s.seen() {
		if (verb == "" || v.verb == verb) && (method == "" || v.method == method) {
			n++
		}
	}
	return n
}

func (s *site) seen() []visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]visit(nil), s.visits...)
}

// executed is how often the tool write ran with that text.
func (s *site) executed(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran[text]
}

type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	} `json:"params"`
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	var m rpc
	_ = json.Unmarshal(body, &m) // GET and DELETE have none; what cannot be read is an unknown method
	s.mu.Lock()
	s.visits = append(s.visits, visit{time.Now(), r.Method, m.Method, r.Header.Clone()})
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(w, r, m.Method) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, m)
	case http.MethodGet:
		s.stream(w, r)
	case http.MethodDelete:
		s.mu.Lock()
		if cut, ok := s.sessions[r.Header.Get(sessionHeader)]; ok {
			close(cut)
			delete(s.sessions, r.Header.Get(sessionHeader))
		}
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "no", http.StatusMethodNotAllowed)
	}
}

const sessionHeader = "Mcp-Session-Id"

// known reports whether the request belongs to a session, and refuses it if it does not.
func (s *site) known(w http.ResponseWriter, r *http.Request) bool {
	id := r.Header.Get(sessionHeader)
	s.mu.Lock()
	_, ok := s.sessions[id]
	s.mu.Unlock()
	switch {
	case ok:
		return true
	case id == "":
		refuse(w, http.StatusBadRequest, nil, -32600, "Bad Request: no session")
	default:
		refuse(w, http.StatusNotFound, nil, -32001, "Session not found")
	}
	return false
}

func (s *site) post(w http.ResponseWriter, r *http.Request, m rpc) {
	switch {
	case m.Method == "initialize" && !s.modern:
		s.mu.Lock()
		s.next++
		id := fmt.Sprintf("session-%d", s.next)
		s.sessions[id] = make(chan struct{})
		s.mu.Unlock()
		w.Header().Set(sessionHeader, id)
		s.result(w, m, `{"protocolVersion":"`+siteVersion+`","capabilities":{"tools":{"listChanged":true}},`+
			`"serverInfo":{"name":"site","version":"1"}}`)
		return
	case m.Method == "initialize", m.Method == "ping" && s.modern:
		refuse(w, http.StatusNotFound, m.ID, -32601, "Method not found")
		return
	case !s.modern && !s.known(w, r):
		return
	case s.modern && r.Header.Get("Mcp-Protocol-Version") != modernVersion:
		refuse(w, http.StatusBadRequest, m.ID, -32022, "Unsupported protocol version")
		return
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	switch m.Method {
	case "server/discover":
		if !s.modern {
			refuse(w, http.StatusOK, m.ID, -32601, "Method not found")
			return
		}
		s.result(w, m, `{"supportedVersions":["`+modernVersion+`"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,`+
			`"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"site","version":"1"}}}`)
	case "ping":
		s.result(w, m, `{}`)
	case "tools/list":
		s.result(w, m, `{"tools":[`+strings.Join(s.tools(), ",")+`]`+s.caching()+`}`)
	case "tools/call":
		s.call(w, m)
	case "subscriptions/listen":
		s.listen(w, r, m)
	default:
		refuse(w, http.StatusOK, m.ID, -32601, "Method not found")
	}
}

// caching is what every list of the modern era carries.
func (s *site) caching() string {
	if s.modern {
		return `,"ttlMs":0,"cacheScope":"private"`
	}
	return ""
}

func (s *site) tools() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range append([]string{"echo", "write", "fail"}, s.grown...) {
		all = append(all, `{"name":"`+name+`","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`)
	}
	return all
}

func (s *site) call(w http.ResponseWriter, m rpc) {
	text := m.Params.Arguments["text"]
	s.run(m)
	s.result(w, m, fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"isError":%t}`, text, m.Params.Name == "fail"))
}

// run executes the tool.
func (s *site) run(m rpc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Params.Name == "write" {
		s.ran[m.Params.Arguments["text"]]++
	}
}

// grow adds a tool, and tells everybody who listens.
func (s *site) grow(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grown = append(s.grown, name)
	for c := range s.streams {
		select {
		case c <- "notifications/tools/list_changed":
		default:
		}
	}
}

func (s *site) result(w http.ResponseWriter, m rpc, result string) {
	if s.modern && result == `{}` {
		result = `{"resultType":"complete"}`
	} else if s.modern {
		result = `{"resultType":"complete",` + strings.TrimPrefix(result, "{")
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func refuse(w http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text)
}

// stream is the GET of the legacy era.
func (s *site) stream(w http.ResponseWriter, r *http.Request) {
	if s.modern {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	if !s.known(w, r) {
		return
	}
	s.mu.Lock()
	cut := s.sessions[r.Header.Get(sessionHeader)]
	s.mu.Unlock()
	s.tell(w, r, cut, "", func(method string) string { return `{"jsonrpc":"2.0","method":"` + method + `"}` })
}

// listen is the subscription of the modern era.
func (s *site) listen(w http.ResponseWriter, r *http.Request, m rpc) {
	meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/subscriptionId":%s}`, m.ID)
	s.tell(w, r, nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+meta+
		`,"notifications":{"toolsListChanged":true}}}`,
		func(method string) string {
			return `{"jsonrpc":"2.0","method":"` + method + `","params":{` + meta + `}}`
		})
}

// tell keeps a stream of events open.
func (s *site) tell(w http.ResponseWriter, r *http.Request, cut chan struct{}, first string, event func(method string) string) {
	s.mu.Lock()
	news := make(chan string, 16)
	s.streams[news] = struct{}{}
	life := s.life
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, news)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	send := func(data string) {
		if data != "" {
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", data)
		}
		_ = http.NewResponseController(w).Flush() // the reader may have gone, which ends the request
	}
	send(first)
	for {
		select {
		case method := <-news:
			send(event(method))
		case <-cut:
			return
		case <-life:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// hang holds a request until its sender or the server has gone.
func (s *site) hang(r *http.Request) {
	s.mu.Lock()
	life := s.life
	s.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-life:
	}
}

// reset breaks the connection of a request without an answer.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the end is a polite one
	}
	conn.Close()
}
