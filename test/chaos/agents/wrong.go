package agents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A wrongRequest is a request that no server can answer as it is. Its name tells its fault; invariant I25 knows the error that it
// must get. era is that of the agents which send it, empty for both.
type wrongRequest struct {
	name, method, params string
	era                  messages.Era
}

var wrongRequests = []wrongRequest{
	{"unknown-method", "no/such", "{}", ""},
	{"unknown-method", "tasks/such", `{"taskId":"none"}`, ""},
	{"unknown-method", "subscriptions/listen", "{}", messages.EraLegacy},
	{"unknown-method", "tasks/update", `{"taskId":"none"}`, messages.EraLegacy},
	{"unknown-method", "ping", "{}", messages.EraModern},
	{"unknown-method", "resources/subscribe", `{"uri":"chaos://one"}`, messages.EraModern},
	{"unknown-method", "tasks/list", "{}", messages.EraModern},
	{"unknown-tool", "tools/call", `{"name":"nobody__read","arguments":{}}`, ""},
	{"bad-cursor", "tools/list", `{"cursor":"%%%"}`, ""},
	{"bad-cursor", "tools/list", `{"cursor":""}`, ""},
	{"bad-cursor", "tools/list", `{"cursor":7}`, ""},
	{"bad-cursor", "tools/list", `{"cursor":"AAAAAAAAAAAAAAAALTE"}`, ""}, // a page before the first one
	{"bad-cursor", "tasks/list", `{"cursor":"none"}`, messages.EraLegacy},
	{"bad-params", "tools/call", `{"arguments":{}}`, ""},
	{"bad-params", "tools/call", `{"name":7,"arguments":{}}`, ""},
	{"bad-params", "tools/call", `{"name":"nobody__read","arguments":[1]}`, ""},
	{"bad-params", "resources/read", "{}", ""},
	{"bad-params", "prompts/get", `{"name":7}`, ""},
	{"bad-params", "completion/complete", `{"ref":"none"}`, ""},
	{"bad-params", "logging/setLevel", `{"level":"loud"}`, messages.EraLegacy},
	{"bad-params", "resources/subscribe", "{}", messages.EraLegacy},
	{"bad-params", "resources/unsubscribe", "{}", messages.EraLegacy},
	{"bad-params", "tools/list", "[1]", messages.EraLegacy},
	{"bad-params", "subscriptions/listen", `{"notifications":[]}`, messages.EraModern},
	{"unknown-task", "tasks/get", `{"taskId":"none"}`, ""},
	{"unknown-task", "tasks/cancel", `{"taskId":7}`, ""},
	{"unknown-task", "tasks/result", "{}", messages.EraLegacy},
}

// sendWrong sends a request that is wrong.
func (a *agent) sendWrong(s *session, number int) {
	for i := range wrongRequests {
		w := &wrongRequests[(number+i)%len(wrongRequests)]
		if w.era == "" || w.era == a.plan.Era {
			s.askEndpoint(w.method, w.params, "", w.name)
			return
		}
	}
}

// sendTooEarly sends requests before the session is opened. It does so in every third session.
func (s *session) sendTooEarly() {
	if (s.agent.number+int(s.epoch))%3 == 0 {
		s.askEndpoint("tools/list", "", "", "before-initialize")
	}
}

// openAgain opens a session on lines that is open.
func (s *session) openAgain() {
	if _, ok := s.link.(*lineLink); ok && !s.agent.modern() {
		s.askEndpoint("initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`, "", "initialized-twice")
	}
}

// reuseID sends a request with the id of one that has no answer, or that the agent has taken back just now. name says which of them it is: the
// first is refused, and the second is not. Over HTTP each request of the modern era stands for itself, so that no id is in use.
func (s *session) reuseID(id, name string) {
	body := s.encodeMessage(id, "tools/list", "")
	switch l := s.link.(type) {
	case *httpLink:
		if s.agent.modern() {
			return
		}
		l.exchange(id, name, l.newRequest(s.agent.fleet.lifetime, http.MethodPost, body))
	case *lineLink:
		s.mu.Lock()
		if s.reused == nil {
			s.reused = map[string]string{}
		}
		free := s.reused[id] == "" && !s.parted
		if free {
			s.reused[id] = name
		}
		s.mu.Unlock()
		if free {
			s.agent.recordEvent(history.Event{Kind: history.Asked, Epoch: s.epoch, ID: id + "#", Method: "tools/list", Name: name})
			l.send(context.Background(), outgoing{id: id, method: "tools/list", body: body})
		}
	}
}

// takeReused takes an answer on lines to a request whose id was in use already. It is known by what no call is answered with. Where the call
// had ended before, the id was free.
func (s *session) takeReused(id string, got answer) bool {
	code := codeOf(got)
	isRefused := code == serve.CodeInvalidRequest && strings.HasPrefix(errorText(got.problem), "a request with this id")
	if !isRefused && rawjson.Member(got.result, "tools") == nil {
		return false
	}
	s.mu.Lock()
	name := s.reused[id]
	delete(s.reused, id)
	parted := s.parted
	s.mu.Unlock()
	if name == "" {
		return false
	}
	if name == reusedInUse && !isRefused {
		code = serve.CodeInvalidRequest
	}
	if !parted {
		s.agent.recordEvent(history.Event{Kind: history.Replied, Epoch: s.epoch, ID: id + "#", Method: "tools/list", Name: name, Code: code})
	}
	return true
}

// The names of requests whose ids have been used.
const (
	reusedInUse = "id-in-use"
	reusedFree  = "id-of-the-cancelled"
)

// wrongExchanges are requests over HTTP that are wrong in themselves, with the status that each must be answered with.
var wrongExchanges = []struct {
	name   string
	status int
	// legacy is set for what only an agent of the legacy era can get wrong, and modern for what only one of the modern era can.
	legacy, modern bool
	change         func(r *http.Request)
	// calls is the tool that the request calls in its body; empty for a request of a list.
	calls string
}{
	{"unknown-session", http.StatusNotFound, true, false, func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "nobody") }, ""},
	{"unknown-session", http.StatusNotFound, true, false, func(r *http.Request) { r.Method = http.MethodDelete; r.Header.Set("Mcp-Session-Id", "nobody") }, ""},
	{"unknown-session", http.StatusNotFound, true, false, func(r *http.Request) { r.Method = http.MethodGet; r.Header.Set("Mcp-Session-Id", "nobody") }, ""},
	{"no-session", http.StatusBadRequest, true, false, func(r *http.Request) { r.Header.Del("Mcp-Session-Id") }, ""},
	{"unknown-version", http.StatusBadRequest, true, false, func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "1999-01-01") }, ""},
	{"no-stream", http.StatusNotAcceptable, false, false, func(r *http.Request) { r.Header.Set("Accept", "application/json") }, ""},
	{"no-json", http.StatusUnsupportedMediaType, false, false, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, ""},
	{"other-method", http.StatusMethodNotAllowed, false, false, func(r *http.Request) { r.Method = http.MethodPut }, ""},
	{"other-path", http.StatusNotFound, false, false, func(r *http.Request) { r.URL.Path = "/mcp/none" }, ""},
	{"broken-json", http.StatusBadRequest, false, false, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":`)) }, ""},
	{"batch", http.StatusBadRequest, false, false, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("[{}]")) }, ""},
	{"bad-id", http.StatusBadRequest, false, false, func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":{},"method":"tools/list"}`))
	}, ""},
	{"other-headers", http.StatusBadRequest, false, false, func(r *http.Request) {
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Protocol-Version", "1999-01-01")
	}, ""},
	{"other-method-header", http.StatusBadRequest, false, true, func(r *http.Request) { r.Header.Set("Mcp-Method", "tools/call") }, ""},
	{"no-method-header", http.StatusBadRequest, false, true, func(r *http.Request) { r.Header.Del("Mcp-Method") }, ""},
	{"other-version-header", http.StatusBadRequest, false, true, func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "1999-01-01") }, ""},
	{"other-name-header", http.StatusBadRequest, false, true, func(r *http.Request) { r.Header.Set("Mcp-Name", "other__read") }, "nobody__read"},
	{"no-name-header", http.StatusBadRequest, false, true, func(*http.Request) {}, "nobody__read"},
	{"foreign-host", http.StatusForbidden, false, false, func(r *http.Request) { r.Host = "elsewhere.sim" }, ""},
}

// sendWrongExchange sends a request over HTTP that is wrong in itself.
func (l *httpLink) sendWrongExchange(number int) {
	a := l.session.agent
	w := &wrongExchanges[number%len(wrongExchanges)]
	for w.legacy && (a.modern() || l.sessionID() == "") || w.modern && !a.modern() {
		number++
		w = &wrongExchanges[number%len(wrongExchanges)]
	}
	method, params := "tools/list", ""
	if w.calls != "" {
		method, params = "tools/call", `{"name":"`+w.calls+`","arguments":{}}`
	}
	body := l.session.encodeMessage(`"w"`, method, params)
	if a.modern() {
		body = l.session.encodeRequest(`"w"`, method, params, a.capabilities())
	}
	r := l.newRequest(a.fleet.lifetime, http.MethodPost, body)
	if a.modern() {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", method)
	}
	w.change(r)
	if r.Method != http.MethodPost {
		r.Body = http.NoBody
	}
	r.ContentLength = -1
	a.recordEvent(history.Event{Kind: history.Asked, Epoch: l.session.epoch, ID: `"w"`, Method: "tools/list", Name: w.name, Code: w.status})
	res, err := a.fleet.client.RoundTrip(r)
	if err != nil {
		return // the endpoint has been closed
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if got := res.StatusCode; got != w.status && got != http.StatusServiceUnavailable {
		a.fleet.reportFinding("I25", "", fmt.Sprintf("%s sent a request over HTTP that is wrong on purpose (%s), which must be answered with the status %d, and was answered with %d",
			a.plan.Name, w.name, w.status, got))
	}
	a.recordEvent(history.Event{Kind: history.Replied, Epoch: l.session.epoch, ID: `"w"`, Method: "tools/list", Name: w.name, Code: res.StatusCode})
}

// exchange posts a list with an id that was used before, and records it and its answer.
func (l *httpLink) exchange(id, name string, r *http.Request) {
	a, method := l.session.agent, "tools/list"
	a.recordEvent(history.Event{Kind: history.Asked, Epoch: l.session.epoch, ID: `"w"`, Method: method, Name: name})
	res, err := a.fleet.client.RoundTrip(r)
	if err != nil {
		return // the endpoint has been closed
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(res.Body)
	code := res.StatusCode
	if problem := rawjson.Member(bytes.TrimSpace(body), "error"); problem != nil {
		code = codeOf(answer{problem: problem})
	} else if code == http.StatusOK {
		if code = 0; name == reusedInUse && !l.session.isOpen(id) {
			code = serve.CodeInvalidRequest // the request with this id was answered meanwhile
		}
	}
	a.recordEvent(history.Event{Kind: history.Replied, Epoch: l.session.epoch, ID: `"w"`, Method: method, Name: name, Code: code})
}
