package proxy

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// hopHeaders are the headers that belong to a single connection, by RFC 9110.
var hopHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Authenticate",
	"Proxy-Authorization",
}

// passHeaders copies headers, without those that belong to a single connection. Connection may name further ones.
func passHeaders(to, from http.Header) {
	named := map[string]bool{}
	for _, k := range hopHeaders {
		named[k] = true
	}
	for _, v := range from.Values("Connection") {
		for k := range strings.SplitSeq(v, ",") {
			named[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(k))] = true
		}
	}
	for k, v := range from {
		if !named[k] {
			to[k] = slices.Clone(v)
		}
	}
}

// forwardRequest sends the request to the server and passes the answer back. The agent's path goes to the server's host; the
// query of the configured URL is added only where the agent uses that URL.
func (x *exchange) forwardRequest(body io.Reader, size int64) {
	target := *x.h.target
	target.Path, target.RawPath, target.RawQuery = x.r.URL.Path, x.r.URL.RawPath, x.r.URL.RawQuery
	if target.Path == x.h.target.Path && target.RawQuery == "" {
		target.RawQuery = x.h.target.RawQuery
	}
	out, err := http.NewRequestWithContext(x.ctx, x.r.Method, target.String(), body)
	if err != nil {
		http.Error(x.w, "the proxy cannot ask for that", http.StatusBadRequest)
		return
	}
	passHeaders(out.Header, x.r.Header)
	out.ContentLength = size
	if size == 0 {
		out.Body = nil
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		// Without this entry net/http would add its own User-Agent.
		out.Header["User-Agent"] = nil
	}
	if !x.h.Control.Passive() && out.Header.Get("Accept-Encoding") != "" {
		// The rules can read only what is not compressed.
		out.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := x.h.transport.RoundTrip(out)
	if err != nil {
		if x.ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
		x.h.Log.logEvent("the server cannot be reached", http.StatusBadGateway)
		http.Error(x.w, "chaos proxy: the server cannot be reached", http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	// The session id is noted when the server hands it out, so that lose-session forgets sessions that the agent has not used
	// yet.
	x.h.shownSecrets.noteSecret(sessions, resp.Header.Get("Mcp-Session-Id"))
	x.passAnswer(resp)
}

// passAnswer passes an answer by its content type: as events, as one message, or as bytes. A fault may end the server now,
// after it has done its work.
func (x *exchange) passAnswer(resp *http.Response) {
	if x.pendingEnd != nil {
		x.crashServer(x.pendingEnd)
	}
	passHeaders(x.w.Header(), resp.Header)
	if _, ok := x.w.Header()["Content-Type"]; !ok {
		// Without this entry net/http would guess a content type.
		x.w.Header()["Content-Type"] = nil
	}
	readable := resp.Header.Get("Content-Encoding") == "" || resp.Header.Get("Content-Encoding") == "identity"
	// An unreadable content type counts as none.
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if x.contentType != "" {
		x.w.Header().Set("Content-Type", x.contentType)
	}
	switch {
	case readable && kind == "text/event-stream":
		x.passEvents(resp)
	case readable && kind == "application/json" && !x.h.Control.Passive():
		x.passMessage(resp)
	default:
		x.copyBody(resp, readable && kind == "application/json")
	}
	for k, v := range resp.Trailer {
		x.w.Header()[http.TrailerPrefix+k] = v
	}
}

// writeStatus sends status and headers, once. The caller holds x.mu.
func (x *exchange) writeStatus(status int) {
	if !x.statusSent {
		x.statusSent = true
		x.w.WriteHeader(status)
	}
}

// writeAndFlush writes and flushes. An error of writing ends the exchange. The caller holds x.mu.
func (x *exchange) writeAndFlush(b []byte) {
	if x.isSilent() {
		return
	}
	if _, err := x.w.Write(b); err != nil {
		x.cancel(err)
		return
	}
	// If the agent has gone, the next write returns the error.
	_ = http.NewResponseController(x.w).Flush()
}

// copyBody passes a body as it comes. It keeps a copy of a message, up to trackLimit, for the log and for later rules.
func (x *exchange) copyBody(resp *http.Response, json bool) {
	x.mu.Lock()
	x.writeStatus(resp.StatusCode)
	x.mu.Unlock()
	var seen []byte
	watch := json && x.h.readsMessages()
	err := x.eachChunk(resp.Body, func(b []byte) {
		x.mu.Lock()
		defer x.mu.Unlock()
		if len(b) > 0 {
			x.writeAndFlush(b)
		}
		if watch {
			if seen = append(seen, b...); len(seen) > trackLimit {
				seen, watch = nil, false
			}
		}
	})
	if watch && len(seen) > 0 {
		x.h.notePassed(x.h.flow, toClient, x.scope, seen)
	}
	// If the server's answer broke off, the agent's must break off too.
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// eachChunk reads to the end. On a half-open connection it waits for the agent to leave instead of passing anything on.
func (x *exchange) eachChunk(from io.Reader, do func([]byte)) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			do(buf[:n])
		}
		if x.isSilent() {
			<-x.r.Context().Done()
			panic(http.ErrAbortHandler)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// passMessage asks the rules about an answer that is one message or a batch, and performs their decisions. A body above
// holdLimit passes without the rules.
func (x *exchange) passMessage(resp *http.Response) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, holdLimit+1))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if len(body) > holdLimit {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), resp.Body))
		x.copyBody(resp, false)
		return
	}
	seen := x.h.flow.Inspect(toClient, x.scope, body, false)
	fates := x.h.flow.ToClient(x.scope, body)
	if fates == nil {
		x.h.recordPassed(toClient, seen, body)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.writeStatus(resp.StatusCode)
		x.writeAndFlush(body)
		return
	}
	// One JSON body holds one message. If the decisions make several of it, they are sent as events, if the agent accepts
	// those.
	several := len(fates) > 1 || fates[0].Copies > 0 || len(fates[0].Before) > 0
	for _, f := range fates {
		x.h.recordHit(toClient, seen, body, f)
		x.applyBeforeMessage(f)
		if f.Drop {
			if len(fates) == 1 {
				x.holdOpen()
			}
			continue
		}
		if several && x.acceptsEvents() {
			for _, b := range f.Before {
				x.insertMessage(b)
			}
			for range f.Copies + 1 {
				x.insertMessage(f.Body)
			}
		} else {
			x.writeMessage(resp.StatusCode, f)
		}
		x.applyAfterMessage(f)
	}
}
