package score

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
)

// webServer is an MCP server over streamable HTTP of one era, written for this package so that it belongs to none of the
// clients under test. It keeps the requests that it got, and misbehaves as fault says. It shares nothing with package test/servers,
// so that a misreading of the protocol there is not repeated here. The official suite tests it: see test/conformance.
type webServer struct {
	url    string
	modern bool
	server *http.Server
	// done is closed to end the streams and the requests that are held.
	done chan struct{}

	// mu guards everything below, and done.
	mu sync.Mutex
	// fault, if not nil, may answer a request itself and then returns true. method is the JSON-RPC method, empty for GET and
	// DELETE.
	fault func(w http.ResponseWriter, r *http.Request, method string) bool
	// sessions maps the id of each session to a channel that is closed when its streams are cut.
	sessions map[string]chan struct{}
	// streams holds the channel of each open stream; methods of notifications are sent on it.
	streams  map[chan string]struct{}
	requests []httpRequest
	// runs counts the runs of the tool write, by the text of the call.
	runs       map[string]int
	extraTools []string
	// next is the number of the last session.
	next int
}

// httpRequest is one request that the server got.
type httpRequest struct {
	at     time.Time
	verb   string
	method string
	header http.Header
}

const siteVersion, modernVersion = "2025-11-25", "2026-07-28"

// Site returns a server of one era over streamable HTTP as the cases have it while nothing misbehaves, for who checks it.
func Site(modern bool) http.Handler { return newSite(modern) }

func newSite(modern bool) *webServer {
	return &webServer{modern: modern, done: make(chan struct{}), sessions: map[string]chan struct{}{},
		streams: map[chan string]struct{}{}, runs: map[string]int{}}
}

// newWebServer starts a server of one era on a loopback port.
func (a *caseRun) newWebServer(modern bool) (*webServer, *testServer) {
	s := newSite(modern)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	// No port is free: the case loses the point, and a listener that no client reaches takes the place.
	if err != nil {
		a.scorePoint(false, "the server starts", "%s", err)
		l, _ = net.Listen("unix", a.dir+"/none")
	}
	s.url = "http://" + l.Addr().String() + "/mcp"
	s.serveOn(l)
	a.webServers = append(a.webServers, s)
	a.serverCount++
	return s, &testServer{name: fmt.Sprintf("w%d", a.serverCount), connectCommand: adapter.Command{URL: s.url}, web: s}
}

// serveOn serves until closeAll closes the server.
func (s *webServer) serveOn(l net.Listener) {
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	// Serve ends with closeAll.
	go func() { _ = s.server.Serve(l) }()
}

// closeAll closes every connection and ends the streams. It may be called twice.
func (s *webServer) closeAll() {
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.mu.Unlock()
	s.server.Close()
}

// restartAfter acts like a server process that ends and is started again on the same port: every connection and session is
// lost.
func (s *webServer) restartAfter(after time.Duration) {
	addr := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	s.closeAll()
	time.Sleep(after)
	s.mu.Lock()
	s.done, s.sessions, s.streams = make(chan struct{}), map[string]chan struct{}{}, map[chan string]struct{}{}
	s.mu.Unlock()
	// The system may keep the old port busy for a moment.
	for range 100 {
		if l, err := net.Listen("tcp", addr); err == nil {
			s.serveOn(l)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// setFault sets a fault; nil restores the healthy server.
func (s *webServer) setFault(f func(w http.ResponseWriter, r *http.Request, method string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// dropSessions makes the server forget every session, like a restart behind a proxy that keeps the connections.
func (s *webServer) dropSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, cut := range s.sessions {
		close(cut)
		delete(s.sessions, id)
	}
}

// cutStreams ends the streams and keeps the sessions.
func (s *webServer) cutStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, cut := range s.sessions {
		close(cut)
		s.sessions[id] = make(chan struct{})
	}
}

// countRequests counts the requests with a verb and a JSON-RPC method; an empty one matches any.
func (s *webServer) countRequests(verb, method string) (n int) {
	for _, v := range s.allRequests() {
		if (verb == "" || v.verb == verb) && (method == "" || v.method == method) {
			n++
		}
	}
	return n
}

// allRequests returns a copy of the requests so far.
func (s *webServer) allRequests() []httpRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]httpRequest(nil), s.requests...)
}

// countRuns returns how often the tool write ran with a text.
func (s *webServer) countRuns(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[text]
}

// rpcRequest holds the members of a request that the server reads.
type rpcRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
		// Meta must hold the version and the capabilities of the client in the modern era.
		Meta struct {
			Version      string          `json:"io.modelcontextprotocol/protocolVersion"`
			Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	} `json:"params"`
}

// ServeHTTP implements http.Handler.
func (s *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A page of a stranger may have the name of this machine in its own domain: both headers then name that.
	if !isLocal(r.Host) || !isLocal(strings.TrimPrefix(r.Header.Get("Origin"), "http://")) {
		http.Error(w, "not for you", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	var m rpcRequest
	// GET and DELETE have no body; an unreadable one has no method, and gets an error.
	_ = json.Unmarshal(body, &m)
	s.mu.Lock()
	s.requests = append(s.requests, httpRequest{time.Now(), r.Method, m.Method, r.Header.Clone()})
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(w, r, m.Method) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.handlePost(w, r, m)
	case http.MethodGet:
		s.openStream(w, r)
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

// isLocal reports whether a host, with its port, is this machine; an empty one is no other.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return slices.Contains([]string{"", "localhost", "127.0.0.1", "::1", "[::1]"}, name)
}

const sessionHeader = "Mcp-Session-Id"

// requireSession reports whether a request belongs to a session, and refuses it otherwise: with 404 for an unknown session, as
// the specification requires, so that the client begins a new one.
func (s *webServer) requireSession(w http.ResponseWriter, r *http.Request) bool {
	id := r.Header.Get(sessionHeader)
	s.mu.Lock()
	_, ok := s.sessions[id]
	s.mu.Unlock()
	switch {
	case ok:
		return true
	case id == "":
		sendError(w, http.StatusBadRequest, nil, -32600, "Bad Request: no session")
	default:
		sendError(w, http.StatusNotFound, nil, -32001, "Session not found")
	}
	return false
}

// handlePost answers a POST by its method, after it has checked session or version.
func (s *webServer) handlePost(w http.ResponseWriter, r *http.Request, m rpcRequest) {
	switch {
	case m.Method == "initialize" && !s.modern:
		s.mu.Lock()
		s.next++
		id := fmt.Sprintf("session-%d", s.next)
		s.sessions[id] = make(chan struct{})
		s.mu.Unlock()
		w.Header().Set(sessionHeader, id)
		s.sendResult(w, m, `{"protocolVersion":"`+siteVersion+`","capabilities":{"tools":{"listChanged":true}},`+
			`"serverInfo":{"name":"site","version":"1"}}`)
		return
	case !s.modern && !s.requireSession(w, r):
		return
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
		return
	case s.modern && !requireMeta(w, r, m):
		return
	}
	switch m.Method {
	case "server/discover":
		if !s.modern {
			sendUnknownMethod(w, m, s.modern)
			return
		}
		s.sendResult(w, m, `{"supportedVersions":["`+modernVersion+`"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,`+
			`"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"site","version":"1"}}}`)
	case "ping":
		if s.modern {
			sendUnknownMethod(w, m, s.modern)
			return
		}
		s.sendResult(w, m, `{}`)
	case "tools/list":
		s.sendResult(w, m, `{"tools":[`+strings.Join(s.toolDefinitions(), ",")+`]`+s.cacheMembers()+`}`)
	case "tools/call":
		s.callTool(w, m)
	case "subscriptions/listen":
		s.openSubscription(w, r, m)
	default:
		sendUnknownMethod(w, m, s.modern)
	}
}

// requireMeta reports whether a request of the modern era says what each must say, in its _meta and again in its headers, and
// refuses it otherwise. A client that leaves something out would not be understood by other servers either.
func requireMeta(w http.ResponseWriter, r *http.Request, m rpcRequest) bool {
	version, name := m.Params.Meta.Version, ""
	if m.Method == "tools/call" {
		name = m.Params.Name
	}
	switch {
	case version == "" || len(m.Params.Meta.Capabilities) == 0:
		sendError(w, http.StatusBadRequest, m.ID, -32602, "Invalid params: _meta lacks the version or the capabilities of the client")
	case r.Header.Get("Mcp-Protocol-Version") != version || r.Header.Get("Mcp-Method") != m.Method || r.Header.Get("Mcp-Name") != name:
		sendError(w, http.StatusBadRequest, m.ID, -32020, "Header mismatch")
	case version != modernVersion:
		sendErrorData(w, http.StatusBadRequest, m.ID, -32022, "Unsupported protocol version",
			fmt.Sprintf(`{"supported":[%q],"requested":%q}`, modernVersion, version))
	default:
		return true
	}
	return false
}

// sendUnknownMethod refuses a method: in the modern era with a status that says so.
func sendUnknownMethod(w http.ResponseWriter, m rpcRequest, modern bool) {
	status := http.StatusOK
	if modern {
		status = http.StatusNotFound
	}
	sendError(w, status, m.ID, -32601, "Method not found")
}

// cacheMembers returns the members that every list of the modern era must carry.
func (s *webServer) cacheMembers() string {
	if s.modern {
		return `,"ttlMs":0,"cacheScope":"private"`
	}
	return ""
}

// toolNames returns the names of all tools.
func (s *webServer) toolNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{"echo", "write", "fail"}, s.extraTools...)
}

// toolDefinitions returns the definitions of all tools.
func (s *webServer) toolDefinitions() (all []string) {
	for _, name := range s.toolNames() {
		all = append(all, `{"name":"`+name+`","description":"The tool `+name+`.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`)
	}
	return all
}

// callTool runs a tool and answers the call.
func (s *webServer) callTool(w http.ResponseWriter, m rpcRequest) {
	if !slices.Contains(s.toolNames(), m.Params.Name) {
		sendError(w, http.StatusOK, m.ID, -32602, "Unknown tool: "+m.Params.Name)
		return
	}
	text := m.Params.Arguments["text"]
	s.runTool(m)
	s.sendResult(w, m, fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"isError":%t}`, text, m.Params.Name == "fail"))
}

// runTool runs a tool without answering, for faults that lose the answer.
func (s *webServer) runTool(m rpcRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Params.Name == "write" {
		s.runs[m.Params.Arguments["text"]]++
	}
}

// addTool adds a tool and notifies every open stream. A stream whose channel is full gets no notification, because it has
// sixteen others to deliver.
func (s *webServer) addTool(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extraTools = append(s.extraTools, name)
	for c := range s.streams {
		select {
		case c <- "notifications/tools/list_changed":
		default:
		}
	}
}

// sendResult answers with a result; in the modern era it adds the required resultType.
func (s *webServer) sendResult(w http.ResponseWriter, m rpcRequest, result string) {
	if s.modern && result == `{}` {
		result = `{"resultType":"complete"}`
	} else if s.modern {
		result = `{"resultType":"complete",` + strings.TrimPrefix(result, "{")
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// sendError answers with a JSON-RPC error and an HTTP status.
func sendError(w http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	sendErrorData(w, status, id, code, text, "")
}

// sendErrorData is sendError with data, as JSON; empty for none.
func sendErrorData(w http.ResponseWriter, status int, id json.RawMessage, code int, text, data string) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	if data != "" {
		data = `,"data":` + data
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q%s}}`, id, code, text, data)
}

// openStream opens the GET stream of the legacy era.
func (s *webServer) openStream(w http.ResponseWriter, r *http.Request) {
	if s.modern {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	if !s.requireSession(w, r) {
		return
	}
	s.mu.Lock()
	cut := s.sessions[r.Header.Get(sessionHeader)]
	s.mu.Unlock()
	s.serveEvents(w, r, cut, "", func(method string) string { return `{"jsonrpc":"2.0","method":"` + method + `"}` })
}

// openSubscription opens a subscription of the modern era, whose first message is the acknowledgment.
func (s *webServer) openSubscription(w http.ResponseWriter, r *http.Request, m rpcRequest) {
	meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/subscriptionId":%s}`, m.ID)
	s.serveEvents(w, r, nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+meta+
		`,"notifications":{"toolsListChanged":true}}}`,
		func(method string) string {
			return `{"jsonrpc":"2.0","method":"` + method + `","params":{` + meta + `}}`
		})
}

// serveEvents serves a stream of events until it is cut, or one side ends. first is sent at once, event encodes a notification.
func (s *webServer) serveEvents(w http.ResponseWriter, r *http.Request, cut chan struct{}, first string, event func(method string) string) {
	s.mu.Lock()
	events := make(chan string, 16)
	s.streams[events] = struct{}{}
	done := s.done
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, events)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	send := func(data string) {
		if data != "" {
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", data)
		}
		// If the reader has gone, the request's context ends.
		_ = http.NewResponseController(w).Flush()
	}
	send(first)
	for {
		select {
		case method := <-events:
			send(event(method))
		case <-cut:
			return
		case <-done:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// holdRequest holds a request without an answer until its sender or the server goes.
func (s *webServer) holdRequest(r *http.Request) {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-done:
	}
}

// resetConnection breaks the connection of a request with a reset.
func resetConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// Without this the connection would end with a FIN.
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
