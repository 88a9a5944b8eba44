package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// exchange is one request of the agent with its answer.
type exchange struct {
	h      *HTTP
	r      *http.Request
	conn   *peerConn
	scope  string
	ctx    context.Context
	cancel context.CancelCauseFunc
	// ids are the ids of the requests in it, as JSON; listenID is that of a subscriptions/listen, empty without one. mu guards
	// both.
	ids      []string
	listenID string

	// mu guards everything that is written, and the fields below it.
	mu sync.Mutex
	w  http.ResponseWriter
	// statusSent is set when the status is sent, sse if the answer is a stream of events, inEvent while an event has begun and
	// not ended.
	statusSent bool
	sse        bool
	inEvent    bool
	// pendingEvents waits for the end of the current event.
	pendingEvents []byte
	// contentType replaces that of the answer, if a fault wants it; empty keeps it.
	contentType string
	// lateAnswers brings answers that the rules held back, at most four.
	lateAnswers chan []byte
	// pendingEnd is a crash of the server after it has done its work and before its answer passes; nil without one.
	pendingEnd *fault.End
}

// ServeHTTP implements http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isLocalHost(h.listener.Addr().String()) && !isLocalHost(r.Host) {
		http.Error(w, "this proxy is for programs of this machine", http.StatusForbidden)
		return
	}
	x := &exchange{h: h, r: r, w: w, scope: fmt.Sprint(h.scopes.Add(1)), lateAnswers: make(chan []byte, 4)}
	x.conn, _ = r.Context().Value(connKey{}).(*peerConn)
	x.ctx, x.cancel = context.WithCancelCause(r.Context())
	defer x.cancel(nil)
	h.mu.Lock()
	h.exchanges[x] = struct{}{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.exchanges, x)
	}()
	x.serveRequest()
}

// serveRequest handles one request: it checks whether the server has forgotten the session or the credential, asks the rules,
// and forwards the request.
func (x *exchange) serveRequest() {
	body, whole := x.readRequest()
	if x.isSilent() {
		x.holdOpen()
		return
	}
	forgotten := x.h.shownSecrets.noteSecret(sessions, x.r.Header.Get("Mcp-Session-Id"))
	spent := x.h.shownSecrets.noteSecret(tokens, x.r.Header.Get("Authorization"))
	switch {
	case spent:
		x.sendRefusal(&fault.Refusal{Status: http.StatusUnauthorized, Body: "Unauthorized",
			Header: map[string]string{"Www-Authenticate": `Bearer error="invalid_token"`}}, nil)
		return
	case forgotten:
		x.refuseForgotten()
		return
	}
	// The request is too long for the rules.
	if !whole {
		x.forwardRequest(io.MultiReader(bytes.NewReader(body), x.r.Body), x.r.ContentLength)
		return
	}
	if body, ok := x.applyRules(body); ok {
		x.forwardRequest(bytes.NewReader(body), int64(len(body)))
	}
}

// refuseForgotten answers as a server that has lost the session: with 404 as the specification says, or with 400 as the fault
// stale-session-400 says.
func (x *exchange) refuseForgotten() {
	status := http.StatusNotFound
	if x.h.flow.FaultActive("stale-session-400") {
		x.h.flow.RecordHit("stale-session-400", "a forgotten session is answered with 400")
		status = http.StatusBadRequest
	}
	x.sendRefusal(&fault.Refusal{Status: status, Header: map[string]string{"Content-Type": "application/json"},
		Body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`}, nil)
}

// readRequest reads the body up to holdLimit. whole is false if there is more.
func (x *exchange) readRequest() (body []byte, whole bool) {
	body, err := io.ReadAll(io.LimitReader(x.r.Body, holdLimit+1))
	if err != nil {
		// The agent has broken off its request.
		panic(http.ErrAbortHandler)
	}
	return body, len(body) <= holdLimit
}

// applyRules asks the rules about a request and performs their decisions. ok is false if a decision has answered the request,
// or nothing is left to forward.
func (x *exchange) applyRules(body []byte) (forward []byte, ok bool) {
	message := x.r.Method == http.MethodPost
	if message {
		x.noteRequests(body)
	}
	if x.h.Control.Passive() {
		if message {
			x.h.notePassed(x.h.flow, toServer, x.scope, body)
		}
		return body, true
	}
	if !message {
		fate := x.h.flow.Exchange(x.r.Method)
		if len(fate.Hits) > 0 {
			x.h.Log.logEvent(x.r.Method, 0, fate.Hits...)
		}
		return body, x.applyFate(fate)
	}
	seen := x.h.flow.Inspect(toServer, x.scope, body, false)
	fates := x.h.flow.ToServer(x.scope, body)
	if fates == nil {
		x.h.recordPassed(toServer, seen, body)
		return body, true
	}
	var parts []json.RawMessage
	for _, f := range fates {
		x.h.recordHit(toServer, seen, body, f)
		for _, b := range f.Late {
			x.h.answerLate(b, f)
		}
		if len(f.Late) > 0 {
			f.After = 0
		}
		// The other messages of a batch go on.
		if f.Drop && len(fates) > 1 {
			continue // of a batch the rest goes on
		}
		if !x.applyFate(f) {
			return nil, false
		}
		if !f.Changed && len(fates) == 1 {
			return body, true
		}
		if b := bytes.TrimSpace(f.Body); len(b) > 0 && b[0] == '[' {
			var inside []json.RawMessage
			// Unmarshal cannot fail, because the flow has made the array.
			_ = json.Unmarshal(b, &inside)
			parts = append(parts, inside...)
		} else {
			parts = append(parts, f.Body)
		}
	}
	// If the rules drop everything, the server never gets the request, and the agent waits.
	switch {
	case len(parts) == 0:
		x.holdOpen()
		return nil, false
	case len(fates) == 1 && len(parts) == 1:
		return parts[0], true
	}
	out, err := json.Marshal(parts)
	return out, err == nil
}

// noteRequests notes the ids of the requests, by which answerLate and routeMessage find this exchange.
func (x *exchange) noteRequests(body []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.h.flow.Inspect(toServer, x.scope, body, false) {
		if m.ID == "" || m.Answer {
			continue
		}
		x.ids = append(x.ids, m.ID)
		if m.Method == "subscriptions/listen" {
			x.listenID = m.ID
		}
	}
}

// applyFate performs one decision about a request. It returns true if the request is to be forwarded.
func (x *exchange) applyFate(f fault.Disposition) bool {
	if f.After > 0 && !x.pauseFor(f.After) {
		return false
	}
	for f.Block != "" && x.h.flow.Active(f.Block) {
		if !x.pauseFor(pollEvery) {
			return false
		}
	}
	if f.ContentType != "" {
		x.contentType = f.ContentType
	}
	switch {
	case f.Refuse != nil && f.Refuse.Status > 0:
		x.sendRefusal(f.Refuse, f.Hits)
		return false
	case f.End != nil && f.End.Session:
		x.h.shownSecrets.forgetSecrets(sessions)
		if x.r.Header.Get("Mcp-Session-Id") == "" {
			// A request without a session has none to lose.
			return true
		}
		x.refuseForgotten()
		return false
	case f.End != nil && !f.Last:
		x.crashServer(f.End)
		return false
	case f.Drop:
		x.holdOpen()
		return false
	// The server ends in the middle of the call, see passAnswer.
	case f.End != nil:
		x.pendingEnd = f.End
	}
	return true
}

// sendRefusal answers with a status that the proxy makes up.
func (x *exchange) sendRefusal(f *fault.Refusal, hits []fault.Hit) {
	x.h.Log.logEvent(x.r.Method, f.Status, hits...)
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, v := range f.Header {
		x.w.Header().Set(k, v)
	}
	if x.w.Header().Get("Content-Type") == "" {
		x.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	x.w.WriteHeader(f.Status)
	// The agent may have gone, which changes nothing.
	_, _ = io.WriteString(x.w, f.Body)
}

// crashServer ends the server as the agent sees it, and breaks this exchange. It does not return.
func (x *exchange) crashServer(e *fault.End) {
	if e.Reset {
		x.resetAgent()
	}
	x.h.endServer(e)
	panic(http.ErrAbortHandler)
}

// resetAgent resets the agent's connection and breaks this exchange. It does not return.
func (x *exchange) resetAgent() {
	if x.conn != nil {
		resetConn(x.conn)
	}
	panic(http.ErrAbortHandler)
}

// holdOpen keeps the exchange open without an answer, until a late answer comes, the exchange is cut, the agent leaves, or the
// proxy stops.
func (x *exchange) holdOpen() {
	select {
	case b := <-x.lateAnswers:
		x.sendLateAnswer(b)
	case <-x.ctx.Done():
	case <-x.h.stop:
	}
	// A cut breaks a half-open connection too; otherwise its silence lasts until the agent leaves.
	if !errors.Is(context.Cause(x.ctx), errCut) && x.isSilent() {
		<-x.r.Context().Done()
	}
}

func (x *exchange) isSilent() bool { return x.conn != nil && x.conn.silent.Load() }

// hasRequest reports whether a request is one of this exchange.
func (x *exchange) hasRequest(id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Contains(x.ids, id)
}

// acceptsUnsolicited reports whether the server may send messages here that answer no request: on a GET stream or a
// subscription.
func (x *exchange) acceptsUnsolicited() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sse && (x.r.Method == http.MethodGet || x.listenID != "")
}

// isStreaming reports whether the answer is a stream of events.
func (x *exchange) isStreaming() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sse
}

// acceptsEvents reports whether the agent accepts a stream of events as the answer.
func (x *exchange) acceptsEvents() bool {
	return strings.Contains(strings.Join(x.r.Header.Values("Accept"), ","), "text/event-stream")
}
