package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// passEvents passes a stream of events. While there are rules, it asks them about each event.
func (x *exchange) passEvents(resp *http.Response) {
	x.mu.Lock()
	x.w.Header().Del("Content-Length")
	x.statusSent, x.sse = true, true
	x.w.WriteHeader(resp.StatusCode)
	// The agent waits for the headers before the first event.
	_ = http.NewResponseController(x.w).Flush()
	x.mu.Unlock()
	// The first event of HTTP+SSE may be the endpoint, which the proxy must rewrite even without rules.
	first := true
	e := newEventSplitter()
	e.shouldHold = func() bool {
		endpoint := first && x.r.Method == http.MethodGet
		first = false
		return endpoint || !x.h.Control.Passive()
	}
	e.passBytes = func(b []byte) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.inEvent = true
		x.writeAndFlush(b)
	}
	e.onPassed = func(raw []byte) {
		if name, data := eventData(raw); data != nil && isMessage(name) {
			x.h.notePassed(x.h.flow, toClient, x.scope, data)
		}
		x.flushPending()
	}
	e.onHeld = x.passEvent
	err := x.eachChunk(resp.Body, e.feedBytes)
	e.endStream()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// flushPending runs between two events, and writes the events that waited for the current one to end.
func (x *exchange) flushPending() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inEvent = false
	if len(x.pendingEvents) > 0 {
		x.writeAndFlush(x.pendingEvents)
		x.pendingEvents = nil
	}
}

// isMessage reports whether an event of this name carries a message: "message" is the default name.
func isMessage(name string) bool { return name == "" || name == "message" }

// passEvent asks the rules about one event and performs their decisions. Events without a message pass.
func (x *exchange) passEvent(raw []byte) {
	name, data := eventData(raw)
	if name == "endpoint" {
		raw = x.h.rewriteEndpoint(raw, data)
	}
	if data == nil || !isMessage(name) || len(bytes.TrimSpace(data)) == 0 {
		x.writeEvent(raw, fault.Disposition{})
		return
	}
	seen := x.h.flow.Inspect(toClient, x.scope, data, false)
	var fates []fault.Disposition
	if !x.h.Control.Passive() {
		fates = x.h.flow.ToClient(x.scope, data)
	}
	if fates == nil {
		if x.h.Control.Passive() {
			x.h.notePassed(x.h.flow, toClient, x.scope, data)
		} else {
			x.h.recordPassed(toClient, seen, data)
		}
		x.writeEvent(raw, fault.Disposition{})
		return
	}
	for _, f := range fates {
		x.h.recordHit(toClient, seen, data, f)
		for _, b := range f.Before {
			x.writeEvent(newEvent(b), fault.Disposition{})
		}
		x.applyBeforeMessage(f)
		if f.Drop {
			if len(seen) > 0 && seen[0].Answer && x.r.Method == http.MethodPost {
				// Otherwise the stream would end after the dropped answer, and the agent would notice at once.
				x.holdOpen()
			}
			continue
		}
		b := raw
		switch {
		case f.Big > 0:
			b = eventWith(raw, growObject(f.Body, f.Big))
		case f.Changed || len(fates) > 1:
			b = eventWith(raw, f.Body)
		}
		for range f.Copies + 1 {
			x.writeEvent(b, f)
		}
		x.applyAfterMessage(f)
		if f.Cutting {
			panic(http.ErrAbortHandler)
		}
	}
}

// writeEvent writes an event, between others.
func (x *exchange) writeEvent(raw []byte, f fault.Disposition) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writeBytes(raw, f)
}

// insertMessage sends a message that the server did not send, as an event. If the server's event is under way, the message
// waits for its end; if nothing was sent yet, the answer becomes a stream.
func (x *exchange) insertMessage(body []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.statusSent && !x.acceptsEvents() {
		return
	}
	if !x.statusSent {
		x.w.Header().Set("Content-Type", "text/event-stream")
		x.w.Header().Set("Cache-Control", "no-cache")
		x.w.Header().Del("Content-Length")
		x.sse = true
		x.writeStatus(http.StatusOK)
	}
	if !x.sse {
		return
	}
	event := newEvent(x.withSubscription(body))
	if x.inEvent {
		x.pendingEvents = append(x.pendingEvents, event...)
		return
	}
	x.writeAndFlush(event)
}

// withSubscription adds the subscription's id to a notification on its stream, as 2026-07-28 requires it. A message with params
// stays as it is.
func (x *exchange) withSubscription(body []byte) []byte {
	if x.listenID == "" {
		return body
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m["params"] != nil {
		return body
	}
	m["params"] = json.RawMessage(`{"_meta":{"io.modelcontextprotocol/subscriptionId":` + x.listenID + `}}`)
	b, err := json.Marshal(m)
	if err != nil {
		return body
	}
	return b
}

// rewriteEndpoint replaces the server's host in an absolute endpoint by the proxy's.
func (h *HTTP) rewriteEndpoint(raw, data []byte) []byte {
	u, err := url.Parse(string(data))
	if err != nil || u.Host != h.target.Host {
		return raw
	}
	u.Scheme, u.Host = "http", h.listener.Addr().String()
	return eventWith(raw, []byte(u.String()))
}
