package drills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// webExchange is one request of an agent over HTTP, and what has come of its response. It is the response's writer.
type webExchange struct {
	header http.Header
	lose   context.CancelFunc
	mu     sync.Mutex
	status int
	// contentType is that of the headers which were written.
	contentType string
	body        strings.Builder
	isLost      bool
	began       time.Time
	ended       time.Time // when the handler had returned; zero: it has not
}

// Header implements http.ResponseWriter.
func (x *webExchange) Header() http.Header { return x.header }

// WriteHeader implements http.ResponseWriter.
func (x *webExchange) WriteHeader(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status == 0 {
		x.status, x.contentType = status, x.header.Get("Content-Type")
	}
}

// Write implements http.ResponseWriter. Nothing arrives after the connection was lost.
func (x *webExchange) Write(b []byte) (int, error) {
	x.WriteHeader(http.StatusOK)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.isLost {
		return 0, errors.New("the connection is lost")
	}
	return x.body.Write(b)
}

// Flush implements http.Flusher.
func (x *webExchange) Flush() { x.WriteHeader(http.StatusOK) }

// loseConnection breaks the connection.
func (x *webExchange) loseConnection() {
	x.mu.Lock()
	x.isLost = true
	x.mu.Unlock()
	x.lose()
}

// webEvent is one event of a stream.
type webEvent struct{ id, data string }

// events returns what has come, as events; a body that is no stream is one event without an id.
func (x *webExchange) events() (list []webEvent) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !strings.HasPrefix(x.contentType, "text/event-stream") {
		return []webEvent{{data: x.body.String()}}
	}
	for block := range strings.SplitSeq(x.body.String(), "\n\n") {
		var e webEvent
		for line := range strings.SplitSeq(block, "\n") {
			if v, ok := strings.CutPrefix(line, "id: "); ok {
				e.id = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = v
			}
		}
		if e.id != "" || e.data != "" {
			list = append(list, e)
		}
	}
	return list
}

// webDrill is a gateway over HTTP, and a server whose tool tells of progress at the times that the drill says.
type webDrill struct {
	*stage
	files   *server
	h       *serve.Handler
	session string
	version string
	lastID  int
	// telling and answer are the plan of the newest call, and cut when its server has learned that the caller has gone.
	telling []time.Time
	answer  time.Time
	cut     time.Time
}

// playWebAgents lets an agent come over HTTP that loses its connections: what it missed it fetches once and in order, by the id of the last
// event that it got. It ends its session, lets it become old, and names sessions, versions and methods that are none.
func playWebAgents(s *stage) {
	files := newServer("files", "talk")
	d := &webDrill{stage: s, files: files, version: pickOne(s, "2025-11-25", "2025-11-25", "2025-06-18")}
	files.handle = d.performTalk
	files.spec.CallTimeout, files.spec.MaxCallTimeout = -1, -1
	if s.connectServers(supervisor.Config{}, files) == nil {
		return
	}
	idle := s.drawSpan(2*time.Minute, time.Hour)
	d.h = serve.NewHandler(serve.Options{Service: s.openGateway(gateway.Config{}), SessionIdle: idle, KeepAlive: 24 * time.Hour,
		Authenticate: func(r *http.Request) (serve.Principal, error) { return serve.Principal{Name: r.Header.Get("Who")}, nil }})
	s.ends = append(s.ends, func() { _ = d.h.Close(context.Background()) })
	for range 3 + s.rng.IntN(4) {
		if d.session == "" && !d.beginSession() {
			return
		}
		var ok bool
		switch s.rng.IntN(8) {
		case 0:
			ok = d.checkRefusals()
		case 1:
			ok = d.endSession()
		case 2:
			ok = d.outlastSession(idle)
		case 3:
			ok = d.cancelCall()
		case 4:
			ok = d.meetNotices()
		default:
			ok = d.loseCall()
		}
		if !ok {
			return
		}
	}
}

// send sends a request over HTTP.
func (d *webDrill) send(method, path, body string, headers ...string) *webExchange {
	ctx, lose := context.WithCancel(d.ctx)
	x := &webExchange{header: http.Header{}, lose: lose, began: time.Now()}
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		d.reportFinding("I25", "", "the drill makes no request of %s: %v", path, err)
		return x
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Who", "anna")
	if d.session != "" {
		r.Header.Set("Mcp-Session-Id", d.session)
		r.Header.Set("Mcp-Protocol-Version", d.version)
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	d.runBeside(func() {
		defer lose()
		d.h.ServeHTTP(x, r)
		x.WriteHeader(http.StatusOK)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.ended = time.Now()
	})
	d.settleAll()
	return x
}

// post sends a message, and returns its exchange.
func (d *webDrill) post(method string, params any, headers ...string) *webExchange {
	d.lastID++
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": d.lastID, "method": method, "params": orEmpty(params)})
	return d.send(http.MethodPost, "/mcp", string(b), headers...)
}

// expectStatus reports a violation unless an exchange has ended with a status.
func (d *webDrill) expectStatus(what string, x *webExchange, status int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended.IsZero() || x.status != status {
		d.reportFinding("I25", "", "%s is answered with %d (ended: %t), %s, and must be with %d", what, x.status, !x.ended.IsZero(), x.body.String(), status)
		return false
	}
	return true
}

// beginSession opens a session.
func (d *webDrill) beginSession() bool {
	x := d.post("initialize", map[string]any{"protocolVersion": d.version, "capabilities": struct{}{}, "clientInfo": map[string]any{"name": "drill", "version": "1"}})
	if !d.expectStatus("initialize", x, http.StatusOK) {
		return false
	}
	d.session = x.header.Get("Mcp-Session-Id")
	d.addStory("a session of version %s begins", d.version)
	if !strings.Contains(x.body.String(), `"protocolVersion":"`+d.version+`"`) || len(d.session) < 40 || d.h.Sessions() != 1 {
		d.reportFinding("I25", "", "initialize of version %s is answered with %s, in the session %q, one of %d", d.version, x.body.String(), d.session, d.h.Sessions())
		return false
	}
	return d.expectStatus("a notification", d.send(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`), http.StatusAccepted)
}

// performTalk is the tool.
func (d *webDrill) performTalk(ctx context.Context, c *toolCall) (any, error) {
	plan, answer := d.telling, d.answer
	for i, at := range plan {
		select {
		case <-time.After(time.Until(at)):
			c.conn.sendMessage(map[string]any{"method": "notifications/progress", "params": map[string]any{"progressToken": c.token, "progress": i + 1}})
		case <-ctx.Done():
		}
	}
	select {
	case <-time.After(time.Until(answer)):
	case <-ctx.Done():
		d.cut = time.Now()
	}
	return textResult("talked"), nil
}

// startCall draws a plan and calls the tool.
func (d *webDrill) startCall() *webExchange {
	at := time.Now()
	d.telling, d.cut = nil, time.Time{}
	for range d.rng.IntN(6) {
		at = at.Add(d.drawSpan(10*time.Millisecond, 2*time.Second) | 1)
		d.telling = append(d.telling, at)
	}
	d.answer = at.Add(d.drawSpan(10*time.Millisecond, 2*time.Second) | 1)
	return d.post("tools/call", map[string]any{"name": "files__talk", "arguments": struct{}{}, "_meta": map[string]any{"progressToken": "p"}})
}

// loseCall calls the tool, loses the connection now and then, and fetches what it has missed.
func (d *webDrill) loseCall() bool {
	began := time.Now()
	x := d.startCall()
	d.addStory("a call at %s tells of progress %d times and is answered after %s", clock(began), len(d.telling), d.answer.Sub(began))
	// first is when its response becomes a stream: with its first event, or with the id that an agent of the newest version gets.
	first := d.answer
	if len(d.telling) > 0 {
		first = d.telling[0]
	}
	if prime := began.Add(time.Second); d.version == "2025-11-25" && prime.Before(first) {
		first = prime
	}
	isStream := first.Before(d.answer)
	var got []webEvent
	for losses := 0; ; losses++ {
		if losses == 4 || d.isOneIn(4) {
			d.letPass(max(time.Until(d.answer), 0) + time.Second)
		} else {
			d.letPass(d.drawSpan(time.Millisecond, 2*time.Second) &^ 1)
		}
		x.loseConnection()
		d.settleAll()
		got = append(got, x.events()...)
		last := ""
		for _, e := range got {
			if e.id != "" {
				last = e.id
			}
		}
		isOver := len(got) > 0 && strings.Contains(got[len(got)-1].data, `"talked"`)
		d.addStory("its connection is lost at %s, after the event %q (the answer has come: %t)", clock(time.Now()), last, isOver)
		if isOver && losses > 0 && !d.hasEnded(x, d.answer) {
			return false
		}
		if last == "" || isOver {
			break
		}
		d.letPass(d.drawSpan(time.Millisecond, 2*time.Second) &^ 1)
		x = d.send(http.MethodGet, "/mcp", "", "Last-Event-Id", last)
	}
	lost := time.Now()
	var want, have []string
	for i := range d.telling {
		want = append(want, fmt.Sprintf(`"progress":%d`, i+1))
	}
	want = append(want, `"talked"`)
	numbers := []string{}
	for _, e := range got {
		if e.data == "" {
			continue
		}
		have = append(have, e.data)
		if e.id != "" {
			numbers = append(numbers, e.id[strings.Index(e.id, "-")+1:])
		}
	}
	if len(have) == 1 && have[0] == "" || len(have) == 0 && !first.Before(lost) {
		// It was lost before anything had come: nothing can be fetched.
		d.letPass(max(time.Until(d.answer), 0) + time.Second)
		return true
	}
	matches := len(have) == len(want)
	for i := 0; matches && i < len(want); i++ {
		matches = strings.Contains(have[i], want[i]) && (!isStream || numbers[i] == fmt.Sprint(i+1))
	}
	if !matches {
		d.reportFinding("I25", "files", "a call that tells of progress %d times: its agent got %q, numbered %q", len(d.telling), have, numbers)
		return false
	}
	if isStream { // it is told not to come back
		return d.expectStatus("a GET behind the answer", d.send(http.MethodGet, "/mcp", "", "Last-Event-Id", got[len(got)-1].id), http.StatusNoContent)
	}
	return true
}

// hasEnded judges when the stream ended on which the answer came.
func (d *webDrill) hasEnded(x *webExchange, answer time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended.Equal(answer) || x.ended.After(answer) && x.ended.Equal(x.began) {
		return true
	}
	d.reportFinding("I25", "files", "a call was answered at %s on a stream that began at %s and ended at %s", clock(answer), clock(x.began), clock(x.ended))
	return false
}

// meetNotices opens streams for what belongs to no request: each notice comes once, on the newest of them, or waits for the next.
func (d *webDrill) meetNotices() bool {
	if !d.expectStatus("a list", d.post("tools/list", nil), http.StatusOK) {
		return false
	}
	count := func(x *webExchange) (n int) {
		for _, e := range x.events() {
			if strings.Contains(e.data, "notifications/tools/list_changed") {
				n++
			}
		}
		return n
	}
	change := func(times int) {
		for range times {
			d.files.setTools("talk", fmt.Sprint("tool", d.rng.IntN(1_000_000)))
			d.letPass(5 * time.Second)
		}
	}
	first := d.send(http.MethodGet, "/mcp", "")
	change(1)
	second := d.send(http.MethodGet, "/mcp", "")
	isEnded := !first.ended.IsZero()
	change(1)
	second.loseConnection()
	d.letPass(time.Second)
	change(1 + d.rng.IntN(3))
	var headers []string
	if list := second.events(); d.isOneIn(2) && len(list) > 0 && list[len(list)-1].id != "" {
		headers = []string{"Last-Event-Id", list[len(list)-1].id}
	}
	third := d.send(http.MethodGet, "/mcp", "", headers...)
	d.letPass(time.Second)
	d.addStory("a stream is replaced by another one, which is lost, and a third is opened (resumed: %t)", headers != nil)
	got := [3]int{count(first), count(second), count(third)}
	third.loseConnection()
	d.settleAll()
	return isEnded && got == [3]int{1, 1, 1} || expectEqual(d.stage, "I25", "files", "how often each of the streams told that the tools had changed", got, [3]int{1, 1, 1}) &&
		expectEqual(d.stage, "I25", "files", "that the first stream has ended when the second began", isEnded, true)
}

// cancelCall takes a call back: it has no answer, and the server learns of it.
func (d *webDrill) cancelCall() bool {
	x := d.startCall()
	d.addStory("a call is taken back")
	d.letPass(d.drawSpan(1, time.Until(d.answer)-1))
	at := time.Now()
	y := d.send(http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, d.lastID))
	if !d.expectStatus("a cancellation", y, http.StatusAccepted) || !d.expectStatus("a call that was taken back", x, http.StatusOK) {
		return false
	}
	if strings.Contains(x.body.String(), `"result"`) || strings.Contains(x.body.String(), `"error"`) || !strings.HasPrefix(x.contentType, "text/event-stream") || !d.cut.Equal(at) {
		d.reportFinding("I25", "files", "a call was taken back at %s, and its response is %s; its server learned of it at %s", clock(at), x.body.String(), clock(d.cut))
		return false
	}
	return true
}

// endSession ends the session while a call and a stream are open: both end, and nothing finds it any more.
func (d *webDrill) endSession() bool {
	x, stream := d.startCall(), d.send(http.MethodGet, "/mcp", "")
	d.letPass(d.drawSpan(1, time.Until(d.answer)-1))
	at := time.Now()
	d.addStory("the session is ended at %s", clock(at))
	if !d.expectStatus("DELETE", d.send(http.MethodDelete, "/mcp", ""), http.StatusNoContent) || !d.expectStatus("its stream", stream, http.StatusOK) {
		return false
	}
	if x.ended.IsZero() || !d.cut.Equal(at) || d.h.Sessions() != 0 {
		d.reportFinding("I25", "files", "the session was ended at %s: its call has ended: %t, the server learned of it at %s, and there are %d sessions", clock(at), !x.ended.IsZero(), clock(d.cut), d.h.Sessions())
		return false
	}
	return d.expectGone("its session has ended")
}

// expectGone sends what names a session that is no more.
func (d *webDrill) expectGone(why string) bool {
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if !d.expectStatus(method+", when "+why+",", d.send(method, "/mcp", ""), http.StatusNotFound) {
			return false
		}
	}
	ok := d.expectStatus("a request, when "+why+",", d.post("ping", nil), http.StatusNotFound)
	d.session = ""
	return ok
}

// outlastSession leaves the session alone: it stays for its time, with a stream for longer, and then goes.
func (d *webDrill) outlastSession(idle time.Duration) bool {
	d.addStory("the session is left alone from %s; it may be idle for %s", clock(time.Now()), idle)
	if d.isOneIn(2) {
		stream := d.send(http.MethodGet, "/mcp", "")
		d.letPass(2 * idle)
		if !stream.ended.IsZero() || d.h.Sessions() != 1 {
			d.reportFinding("I25", "", "a session with a stream: the stream has ended: %t, and there are %d sessions", !stream.ended.IsZero(), d.h.Sessions())
			return false
		}
		stream.loseConnection()
		d.settleAll()
	}
	if !d.expectStatus("a ping", d.post("ping", nil), http.StatusOK) {
		return false
	}
	d.letPass(idle - 1)
	if !d.expectStatus("a ping a moment before its session is too old", d.post("ping", nil), http.StatusOK) {
		return false
	}
	d.letPass(idle + idle/4 + 1)
	if n := d.h.Sessions(); n != 0 {
		d.reportFinding("I25", "", "the session was not used for %s and may be idle for %s, and there are %d", idle+idle/4+1, idle, n)
		return false
	}
	return d.expectGone("its session was idle for too long")
}

// checkRefusals sends what is wrong in one thing, and judges how each is refused; the session takes no harm.
func (d *webDrill) checkRefusals() bool {
	ping := `{"jsonrpc":"2.0","id":"x","method":"ping"}`
	d.addStory("requests that are wrong")
	requests := []struct {
		what, method, path, body string
		headers                  []string
		status                   int
	}{
		{"a wrong session", "POST", "/mcp", ping, []string{"Mcp-Session-Id", strings.Repeat("A", 52)}, 404},
		{"no session", "POST", "/mcp", ping, []string{"Mcp-Session-Id", ""}, 400},
		{"the session of another principal", "POST", "/mcp", ping, []string{"Who", "ben"}, 404},
		{"the session of another path", "POST", "/mcp/s/files", ping, nil, 404},
		{"a wrong version", "POST", "/mcp", ping, []string{"Mcp-Protocol-Version", "1999-01-01"}, 400},
		{"the version of another session", "POST", "/mcp", ping, []string{"Mcp-Protocol-Version", "2025-03-26"}, 200},
		{"no version", "POST", "/mcp", ping, []string{"Mcp-Protocol-Version", ""}, 200},
		{"no JSON", "POST", "/mcp", "{", nil, 400},
		{"another type", "POST", "/mcp", ping, []string{"Content-Type", "text/plain"}, 415},
		{"no stream accepted", "POST", "/mcp", ping, []string{"Accept", "application/json"}, 406},
		{"a GET of no session", "GET", "/mcp", "", []string{"Mcp-Session-Id", ""}, 405},
		{"a GET that accepts no stream", "GET", "/mcp", "", []string{"Accept", "application/json"}, 406},
		{"a GET of a wrong session", "GET", "/mcp", "", []string{"Mcp-Session-Id", "A"}, 404},
		{"a DELETE of another principal", "DELETE", "/mcp", "", []string{"Who", "ben"}, 404},
		{"a PUT", "PUT", "/mcp", ping, nil, 405},
		{"another host", "POST", "/mcp", ping, []string{"Origin", "http://evil.example"}, 403},
		{"another path", "POST", "/other", ping, nil, 404},
	}
	for _, n := range d.rng.Perm(len(requests)) {
		w := requests[n]
		if !d.expectStatus(w.what, d.send(w.method, w.path, w.body, w.headers...), w.status) {
			return false
		}
	}
	// An id that is in use is refused, and the first request goes on.
	x := d.startCall()
	id := d.lastID
	d.lastID--
	if y := d.post("tools/call", map[string]any{"name": "files__talk"}); y.ended.IsZero() || !strings.Contains(y.body.String(), `"error"`) || id != d.lastID {
		d.reportFinding("I25", "files", "a request with the id of one that runs is answered with %s", y.body.String())
		return false
	}
	d.letPass(time.Until(d.answer) + time.Second)
	if list := x.events(); len(list) == 0 || !slices.ContainsFunc(list, func(e webEvent) bool { return strings.Contains(e.data, `"talked"`) }) {
		d.reportFinding("I25", "files", "a request whose id came a second time is answered with %s", x.body.String())
		return false
	}
	return d.h.Sessions() == 1 || expectEqual(d.stage, "I25", "", "the number of sessions after wrong requests", d.h.Sessions(), 1)
}
