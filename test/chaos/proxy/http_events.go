package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// events passes a stream of events as they come, and asks the rules about each while there are any.
func (x *exchange) events(resp *http.Response) {
	x.mu.Lock()
	x.w.Header().Del("Content-Length")
	x.began, x.sse = true, true
	x.w.WriteHeader(resp.StatusCode)
	_ = http.NewResponseController(x.w).Flush() // the agent waits for the headers
	x.mu.Unlock()
	first := true // the endpoint of HTTP+SSE comes first, and must be looked at
	e := newEventer()
	e.hold = func() bool {
		endpoint := first && x.r.Method == http.MethodGet
		first = false
		return endpoint || !x.h.Control.Passive()
	}
	e.pass = func(b []byte) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.inEvent = true
		x.out(b)
	}
	e.seen = func(raw []byte) {
		if name, data := eventData(raw); data != nil && isMessage(name) {
			x.h.passed(x.h.flow, toClient, x.scope, data)
		}
		x.between()
	}
	e.event = x.event
	err := x.each(resp.Body, e.feed)
	e.end()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// between is between two events: what waited to be said is said.
func (x *exchange) between() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inEvent = false
	if len(x.waiting) > 0 {
		x.out(x.waiting)
		x.waiting = nil
	}
}

func isMessage(name string) bool { return name == "" || name == "message" }

// event asks the rules about one event, and performs what they say.
func (x *exchange) event(raw []byte) {
	name, data := eventData(raw)
	if name == "endpoint" {
		raw = x.h.endpoint(raw, data)
	}
	if data == nil || !isMessage(name) || len(bytes.TrimSpace(data)) == 0 {
		x.whole(raw, fault.Fate{})
		return
	}
	seen := x.h.flow.See(toClient, x.scope, data, false)
	var fates []fault.Fate
	if !x.h.Control.Passive() {
		fates = x.h.flow.ToClient(x.scope, data)
	}
	if fates == nil {
		if x.h.Control.Passive() {
			x.h.passed(x.h.flow, toClient, x.scope, data)
		} else {
			x.h.record(toClient, seen, data)
		}
		x.whole(raw, fault.Fate{})
		return
	}
	for _, f := range fates {
		x.h.broken(toClient, seen, data, f)
		for _, b := range f.Before {
			x.whole(newEvent(b), fault.Fate{})
		}
		x.wanted(f)
		if f.Drop {
			if len(seen) > 0 && seen[0].Answer && x.r.Method == http.MethodPost {
				x.hold() // the stream would end behind it
			}
			continue
		}
		b := raw
		switch {
		case f.Big > 0:
			b = eventWith(raw, grown(f.Body, f.Big))
		case f.Changed || len(fates) > 1:
			b = eventWith(raw, f.Body)
		}
		for range f.Copies + 1 {
			x.whole(b, f)
		}
		x.ended(f)
		if f.Cutting {
			panic(http.ErrAbortHandler)
		}
	}
}

// whole writes an event between others.
func (x *exchange) whole(raw []byte, f fault.Fate) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(raw, f)
}

// say sends a message that the server did not send, as an event, between those of the server.
func (x *exchange) say(body []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.began && !x.takesEvents() {
		return
	}
	if !x.began {
		x.w.Header().Set("Content-Type", "text/event-stream")
		x.w.Header().Set("Cache-Control", "no-cache")
		x.w.Header().Del("Content-Length")
		x.sse = true
		x.begin(http.StatusOK)
	}
	if !x.sse {
		return
	}
	event := newEvent(x.subscribed(body))
	if x.inEvent {
		x.waiting = append(x.waiting, event...)
		return
	}
	x.out(event)
}

// subscribed names the subscription in a notification that comes on its stream, as the modern era wants it.
func (x *exchange) subscribed(body []byte) []byte {
	if x.listen == "" {
		return body
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m["params"] != nil {
		return body
	}
	m["params"] = json.RawMessage(`{"_meta":{"io.modelcontextprotocol/subscriptionId":` + x.listen + `}}`)
	b, err := json.Marshal(m)
	if err != nil {
		return body
	}
	return b
}

// endpoint makes an absolute URL of the server's one of the proxy's.
func (h *HTTP) endpoint(raw, data []byte) []byte {
	u, err := url.Parse(string(data))
	if err != nil || u.Host != h.target.Host {
		return raw
	}
	u.Scheme, u.Host = "http", h.listener.Addr().String()
	return eventWith(raw, []byte(u.String()))
}
