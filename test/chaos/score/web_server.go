package score

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/performer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
)

// webServer is a scripted server of package peer over streamable HTTP. It keeps the requests that it got, and misbehaves by the
// faults of the catalogue, or before a request reaches it, as front says. Package peer shares nothing with package test/servers, so
// that a misreading of the protocol there is not repeated here. The official suite tests it: see test/conformance.
type webServer struct {
	group *performer.Group
	// server is what stands behind front.
	server http.Handler
	began  time.Time

	// mu guards everything below.
	mu sync.Mutex
	// front, if not nil, may answer a request itself and then returns true. method is the JSON-RPC method, empty for GET and
	// DELETE.
	front    func(w http.ResponseWriter, r *http.Request, method string) bool
	requests []httpRequest
	// runs counts the runs of the tool write, by the name of the call.
	runs map[string]int
}

// httpRequest is one request that the server got.
type httpRequest struct {
	at     time.Time
	verb   string
	method string
	header http.Header
}

// StartSite starts a server of one era over streamable HTTP as the cases have it while nothing misbehaves, for who checks it.
func StartSite(modern bool) (url string, stop func(), err error) {
	s, err := newWebServer(modern)
	if err != nil {
		return "", nil, err
	}
	return s.url(), s.group.Close, nil
}

// newWebServer starts a server of one era on a loopback port.
func newWebServer(modern bool) (*webServer, error) {
	s := &webServer{began: time.Now(), runs: map[string]int{}}
	plan := scenario.Plan{Servers: []scenario.Server{{Name: siteName, Kind: messages.HTTP, Era: messages.EraLegacy}}}
	if modern {
		plan.Servers[0].Era = messages.EraModern
	}
	var err error
	s.group, err = performer.Open(plan, performer.Options{
		Record: s.recordRun, Now: func() time.Duration { return time.Since(s.began) }, Front: s.inFront,
	})
	return s, err
}

const siteName = "site"

// newWebServer starts a server of one era for the case.
func (a *caseRun) newWebServer(modern bool) (*webServer, *testServer) {
	s, err := newWebServer(modern)
	if err != nil {
		panic(err) // the case loses the point for its end
	}
	a.webServers = append(a.webServers, s)
	a.serverCount++
	return s, &testServer{name: fmt.Sprintf("%sw%d", a.prefix, a.serverCount), connectCommand: adapter.Command{URL: s.url()}, web: s}
}

func (s *webServer) url() string { return s.group.Server(siteName).Spec().URL }

// beginFault begins a fault of the catalogue; end ends it.
func (s *webServer) beginFault(name string, with map[string]string) (end func()) {
	f := scenario.PlannedFault{ID: 1, Fault: name, Server: siteName, With: with}
	s.group.Begin(f)
	return func() { s.group.End(f) }
}

// recordRun counts the runs of the tool write.
func (s *webServer) recordRun(e history.Event) {
	if e.Kind != history.Executed || e.Tool != "write" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[e.Call]++
}

// setFront lets a function answer instead of the server; nil restores the healthy server.
func (s *webServer) setFront(f func(w http.ResponseWriter, r *http.Request, method string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.front = f
}

// inFront keeps each request before the server gets it, and lets front answer.
func (s *webServer) inFront(server http.Handler) http.Handler {
	s.server = server
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var m struct{ Method string }
		// GET and DELETE have no body; an unreadable one has no method, and gets an error.
		_ = json.Unmarshal(body, &m)
		s.mu.Lock()
		s.requests = append(s.requests, httpRequest{time.Now(), r.Method, m.Method, r.Header.Clone()})
		front := s.front
		s.mu.Unlock()
		if front == nil || !front(w, r, m.Method) {
			server.ServeHTTP(w, r)
		}
	})
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

// countRuns returns how often the tool write ran in a call.
func (s *webServer) countRuns(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[call]
}

// discardedAnswer is an answer that the server writes and that goes nowhere.
type discardedAnswer struct{}

func (discardedAnswer) Header() http.Header         { return http.Header{} }
func (discardedAnswer) Write(p []byte) (int, error) { return len(p), nil }
func (discardedAnswer) WriteHeader(int)             {}

// holdRequest holds a request without an answer until its sender or the server goes.
func holdRequest(r *http.Request) { <-r.Context().Done() }

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
