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
	h        *HTTP
	r        *http.Request
	conn     *peerConn
	scope    string
	ctx      context.Context
	cancel   context.CancelCauseFunc
	ids      []string // of the requests in it
	listenID string   // the id of a subscriptions/listen in it

	mu            sync.Mutex // of everything that is written
	w             http.ResponseWriter
	statusSent    bool   // the status is out
	sse           bool   // it is a stream of events
	inEvent       bool   // a part of an event is out
	pendingEvents []byte // what is to be said when the event is complete
	contentType   string // what the answer claims to be, if a fault says so
	lateAnswers   chan []byte
	pendingEnd    *fault.End // the server ends before it answers
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
	if !whole { // too long to be asked about
		x.forwardRequest(io.MultiReader(bytes.NewReader(body), x.r.Body), x.r.ContentLength)
		return
	}
	if body, ok := x.applyRules(body); ok {
		x.forwardRequest(bytes.NewReader(body), int64(len(body)))
	}
}

// refuseForgotten answers as a server that does not know the session any more.
func (x *exchange) refuseForgotten() {
	status := http.StatusNotFound
	if x.h.flow.FaultActive("stale-session-400") {
		x.h.flow.RecordHit("stale-session-400", "a forgotten session is answered with 400")
		status = http.StatusBadRequest
	}
	x.sendRefusal(&fault.Refusal{Status: status, Header: map[string]string{"Content-Type": "application/json"},
		Body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`}, nil)
}

// readRequest reads what the agent sent, as far as rules are asked about it.
func (x *exchange) readRequest() (body []byte, whole bool) {
	body, err := io.ReadAll(io.LimitReader(x.r.Body, holdLimit+1))
	if err != nil {
		panic(http.ErrAbortHandler) // the agent has broken off
	}
	return body, len(body) <= holdLimit
}

// applyRules asks the rules about the request, and performs what they say. ok is false if nothing is to be forwarded.
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
			_ = json.Unmarshal(b, &inside) // the flow has made it
			parts = append(parts, inside...)
		} else {
			parts = append(parts, f.Body)
		}
	}
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

// noteRequests remembers what the exchange is about.
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

// applyFate does what a fate says of a request. It reports whether the request is to be forwarded.
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
			return true // who has no session has lost none
		}
		x.refuseForgotten()
		return false
	case f.End != nil && !f.Last:
		x.crashServer(f.End)
		return false
	case f.Drop:
		x.holdOpen()
		return false
	case f.End != nil: // in the middle of the call
		x.pendingEnd = f.End
	}
	return true
}

// sendRefusal answers with a status of the proxy's own.
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
	_, _ = io.WriteString(x.w, f.Body) // nobody is there to be told
}

// crashServer ends the server, as the agent sees it.
func (x *exchange) crashServer(e *fault.End) {
	if e.Reset {
		x.resetAgent()
	}
	x.h.endServer(e)
	panic(http.ErrAbortHandler)
}

// resetAgent ends the agent's connection with a reset.
func (x *exchange) resetAgent() {
	if x.conn != nil {
		resetConn(x.conn)
	}
	panic(http.ErrAbortHandler)
}

// holdOpen keeps the exchange open and says nothing, until the agent gives up or a late answer comes.
func (x *exchange) holdOpen() {
	select {
	case b := <-x.lateAnswers:
		x.sendLateAnswer(b)
	case <-x.ctx.Done():
	case <-x.h.stop:
	}
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

// acceptsUnsolicited reports whether a server may say something here that nobody has asked for.
func (x *exchange) acceptsUnsolicited() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sse && (x.r.Method == http.MethodGet || x.listenID != "")
}

// isStreaming reports whether events are coming here.
func (x *exchange) isStreaming() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sse
}

func (x *exchange) acceptsEvents() bool {
	return strings.Contains(strings.Join(x.r.Header.Values("Accept"), ","), "text/event-stream")
}
