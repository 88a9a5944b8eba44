package score

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// webCases are the cases over HTTP.
var webCases = []Case{
	{Name: "an ordinary day over HTTP", Over: "HTTP", play: webDay,
		Story: "A good server is connected, listed, called and closed."},
	{Name: "an ordinary day of 2026 over HTTP", Over: "HTTP, modern", play: webModernDay,
		Story: "A server that speaks only 2026-07-28 is connected, listed and called."},
	{Name: "a lost session", Over: "HTTP", Faults: []string{"H1"}, Plays: []string{"lose-session"}, play: lostSession,
		Story: "The server forgets its sessions and answers 404. A new one must be begun, once, and nothing run twice."},
	{Name: "a restarted server", Over: "HTTP", Faults: []string{"H1", "H11", "P12"}, Plays: []string{"crash", "refuse"}, play: restartedServer,
		Story: "The server is gone for 2s and comes back without its sessions."},
	{Name: "a reset in the middle of a call", Over: "HTTP", Faults: []string{"R13", "H11"}, Plays: []string{"reset"}, play: resetCall,
		Story: "The tool runs, and the connection is reset instead of answered. It must not run again."},
	{Name: "credentials that are refused", Over: "HTTP", Faults: []string{"H7"}, Plays: []string{"unauthorized"}, play: refusedCredentials,
		Story: "From some moment on every request is answered with 401. It must not be asked again and again."},
	{Name: "slow down", Over: "HTTP", Faults: []string{"H6"}, Plays: []string{"throttle"}, play: throttledConnect,
		Story: "The handshake is answered with 429 and Retry-After: 3. Nobody may come back sooner, and somebody should later."},
	{Name: "a half-open connection", Over: "HTTP", Faults: []string{"H4", "L5"}, Plays: []string{"half-open"}, play: halfOpen,
		Story: "The server takes every request and says nothing any more. Nobody may call it connected for long."},
	{Name: "a black hole", Over: "HTTP", Faults: []string{"H11"}, Plays: []string{"black-hole"}, play: blackHole,
		Story: "A server takes connections and never says anything. Another one must not wait for it."},
	{Name: "a farewell without an answer", Over: "HTTP", Faults: []string{"H10"}, Plays: []string{"silent-delete"}, alone: true, play: silentDelete,
		Story: "DELETE, which ends the session, is never answered."},
	{Name: "another origin", Over: "HTTP", Faults: []string{"H9"}, Plays: []string{"redirect"}, play: redirectedOrigin,
		Story: "The server redirects to another host. The credentials of the first must not go there."},
	{Name: "a page instead of an answer", Over: "HTTP", Faults: []string{"H11"}, Plays: []string{"wrong-content-type"}, play: wrongType,
		Story: "Everything is answered with 200 and HTML, as a captive portal does."},
	{Name: "streams that are cut", Over: "HTTP", Faults: []string{"H3"}, Plays: []string{"cut-stream"}, play: cutStreams,
		Story: "The stream of the server's own messages is cut every second. That is no lost connection."},
	{Name: "a new tool over HTTP", Over: "HTTP", Faults: []string{"R7", "R6"}, Plays: []string{"list-changed"}, play: webTool,
		Story: "The server gets a tool and says so on its stream, if there is one."},
	{Name: "a huge body", Over: "HTTP", Faults: []string{"P8", "I9"}, Plays: []string{"huge-line"}, alone: true, play: hugeBody,
		Story: "One call is answered with a body of 1 GiB. The call may fail; the client may not grow with it."},
}

// webDay also sees how the session ends, which a client that only closes its sockets leaves to the server's timeout.
func webDay(a *caseRun) {
	s, p := a.newWebServer(false)
	a.scoreWebBasics(p)
	closed := a.closeServer(p)
	a.scorePoint(!closed.hung, "it is closed", "%s", closed.errorText())
	// 2025-11-25: clients that no longer need a session SHOULD send DELETE with its id.
	ended := a.waitFor(5*time.Second, func() bool { return s.countRequests(http.MethodDelete, "") > 0 })
	a.scorePoint(ended, "the session is ended with DELETE", "it is not")
}

// scoreWebBasics gives the points for connecting, listing and calling.
func (a *caseRun) scoreWebBasics(p *testServer) {
	a.scoreConnect(p)
	list := a.listTools(p)
	a.scorePoint(slices.Contains(list.Tools, "write"), "its tools are listed", "%v; %s", list.Tools, list.errorText())
	echo, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "a call is answered", "%s", echo.errorText())
}

// webModernDay has no session and no initialize; the version stands in a header of each request.
func webModernDay(a *caseRun) {
	_, p := a.newWebServer(true)
	a.scoreWebBasics(p)
}

// scoreRunOnce gives the point if no call of the tool write ran twice. The calls of a case have different names.
func (a *caseRun) scoreRunOnce(s *webServer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	twice := 0
	for _, n := range s.runs {
		if n > 1 {
			twice++
		}
	}
	a.scorePoint(twice == 0, "no call runs twice", "%d do", twice)
}

// writeUntilAnswered makes calls until one is answered. Each call has its own name, so that a retry by the client shows.
func (a *caseRun) writeUntilAnswered(p *testServer, within time.Duration) bool {
	n := 0
	return a.waitFor(within, func() bool {
		n++
		name := fmt.Sprintf("write %d", n)
		return callOf(a.callTool(p, "write", 10*time.Second, map[string]any{"call": name})) == name
	})
}

// lostSession is a deployment behind a load balancer: the connections stay, the sessions are gone. The specification has the
// client begin a new one at a 404; the request that met the 404 has not run and may be sent again.
func lostSession(a *caseRun) {
	s, p := a.newWebServer(false)
	a.connectServer(p)
	a.callEcho(p, "x")
	before := s.countRequests("", "initialize")
	s.beginFault("lose-session", nil)
	a.scorePoint(a.writeUntilAnswered(p, ampleTime), "a call works again", "none does within %s", ampleTime)
	n := s.countRequests("", "initialize") - before
	a.scorePoint(n == 1, "one new session is begun", "%d are", n)
	a.scoreRunOnce(s)
}

// During the 2 s of restartedServer connections are refused. A call that fails then may be given up or repeated: it has not
// reached a server.
func restartedServer(a *caseRun) {
	s, p := a.newWebServer(false)
	a.connectServer(p)
	a.callEcho(p, "x")
	returns := s.beginFault("refuse", map[string]string{"standing": "false"})
	s.beginFault("crash", nil)
	a.sleepContext(2 * time.Second)
	returns()
	a.scorePoint(a.writeUntilAnswered(p, 30*time.Second), "a call works again", "none does within 30s")
	a.scoreRunOnce(s)
}

// resetCall loses an answer after the tool has run. A library that repeats a POST after a reset, as HTTP clients do with
// idempotent requests, runs the tool twice.
func resetCall(a *caseRun) {
	s, p := a.newWebServer(false)
	a.connectServer(p)
	s.setFront(func(w http.ResponseWriter, r *http.Request, method string) bool {
		if method != "tools/call" {
			return false
		}
		// The tool runs, and only its answer is lost.
		s.server.ServeHTTP(discardedAnswer{}, r)
		resetConnection(w)
		return true
	})
	got := a.callTool(p, "write", 20*time.Second, map[string]any{"call": "only-once"})
	a.scorePoint(!got.OK && !got.hung, "the call ends with an error", "%s", got.errorText())
	a.sleepContext(3 * time.Second)
	n := s.countRuns("only-once")
	a.scorePoint(n == 1, "it ran once", "%d times", n)
	s.setFront(nil)
	a.scorePoint(a.writeUntilAnswered(p, ampleTime), "later calls work", "none does within %s", ampleTime)
}

// refusedCredentials judges two things: that the client stops asking, and that it says so. A user who sees "connected" has no
// reason to sign in again.
func refusedCredentials(a *caseRun) {
	s, p := a.newWebServer(false)
	a.connectServer(p)
	s.setFront(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return true
	})
	before := s.countRequests("", "")
	got := a.callTool(p, "write", 20*time.Second, map[string]any{"call": "x"})
	a.scorePoint(!got.OK && !got.hung, "the call ends with an error", "%s", got.errorText())
	a.sleepContext(8 * time.Second)
	// Probes and a retry of the sign-in are allowed; a loop of requests is not.
	n := s.countRequests("", "") - before
	a.scorePoint(n <= 15, "at most 15 requests follow in 8s", "%d do", n)
	a.scorePoint(!a.isConnected(p), "the client does not call it connected", "it does, 8s later")
}

// throttledConnect judges both sides of Retry-After: a client that ignores it adds to the load that the server complains of, and one
// that takes 429 for a final answer leaves its user without the server.
func throttledConnect(a *caseRun) {
	s, p := a.newWebServer(false)
	// first is the time of the first request; front writes it under s.mu, and the case reads it when the handshake is over.
	var first time.Time
	s.setFront(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if first.IsZero() {
			first = time.Now()
		}
		if time.Since(first) >= 3*time.Second {
			return false
		}
		w.Header().Set("Retry-After", "3")
		http.Error(w, "slow down", http.StatusTooManyRequests)
		return true
	})
	got := a.connectServer(p)
	ok := a.waitFor(ampleTime, func() bool { return a.isConnected(p) && s.countRequests("", "notifications/initialized") > 0 })
	early := 0
	for i, v := range s.allRequests() {
		// The requests of one handshake, in quick succession, are one attempt.
		if i > 0 && v.at.Sub(first) < 2900*time.Millisecond && v.at.Sub(first) > 500*time.Millisecond {
			early++
		}
	}
	a.scorePoint(early == 0, "nobody comes back before the time", "%d requests do", early)
	a.scorePoint(ok, "it is connected at last without being asked again", "it is not %s later: %s", ampleTime, got.errorText())
}

// halfOpen is a machine that has gone without closing its connections. Every request of the client waits, and only a limit of
// its own ends it.
func halfOpen(a *caseRun) {
	s, p := a.newWebServer(false)
	a.connectServer(p)
	s.setFront(func(_ http.ResponseWriter, r *http.Request, _ string) bool { holdRequest(r); return true })
	got := a.callTool(p, "read", 3*time.Second, map[string]any{"call": "x"})
	a.scorePoint(!got.OK && !got.hung && got.took < 10*time.Second, "a call ends at its deadline of 3s", "%s after %s", got.errorText(),
		got.took.Round(time.Second))
	// Only a probe can notice this: no socket breaks.
	noticed := a.waitFor(30*time.Second, func() bool { return !a.isConnected(p) })
	a.scorePoint(noticed, "the client notices within 30s", "it still calls the server connected")
	s.setFront(nil)
	a.scorePoint(a.writeUntilAnswered(p, 30*time.Second), "calls work again when it speaks again", "none does within 30s")
}

// blackHole differs from halfOpen in its time: here the handshake hangs, and the other server has to connect meanwhile.
func blackHole(a *caseRun) {
	s, p := a.newWebServer(false)
	s.setFront(func(_ http.ResponseWriter, r *http.Request, _ string) bool { holdRequest(r); return true })
	_, other := a.newWebServer(false)
	waiting := a.beginConnect(p, 6*time.Second)
	got := a.connectServer(other)
	a.scorePoint(got.OK, "the other server connects", "%s", got.errorText())
	_, ok := a.callEcho(other, "x")
	a.scorePoint(ok, "the other server is called", "no answer")
	end := <-waiting
	a.scorePoint(!end.OK && !end.hung, "the connect ends with an error", "%s", end.errorText())
}

// silentDelete hangs the last request of a session. A client that waits for the answer cannot be closed, and one that waits at
// its own end cannot be ended.
func silentDelete(a *caseRun) {
	s, p := a.newWebServer(false)
	a.scoreConnect(p)
	s.setFront(func(_ http.ResponseWriter, r *http.Request, _ string) bool {
		if r.Method == http.MethodDelete {
			holdRequest(r)
			return true
		}
		return false
	})
	closed := a.closeServer(p)
	a.scorePoint(!closed.hung && closed.took < 8*time.Second, "close ends within 8s", "%s after %s", closed.errorText(),
		closed.took.Round(time.Second))
	a.scorePoint(a.driver.quit(ampleTime), "the client ends when it is told to quit", "it still runs %s later", ampleTime)
}

// redirectedOrigin sends the client to another origin with a 307, which keeps method and body. The credentials were configured
// for the first origin; a client that follows with its headers gives them away.
func redirectedOrigin(a *caseRun) {
	const token = "Bearer token-for-the-first"
	s, p := a.newWebServer(false)
	thief, _ := a.newWebServer(false)
	p.connectCommand.Headers = map[string]string{"Authorization": token, "X-Api-Key": "key-for-the-first"}
	// The name localhost makes this machine another host.
	target := strings.Replace(thief.url(), "127.0.0.1", "localhost", 1)
	s.setFront(func(w http.ResponseWriter, r *http.Request, _ string) bool {
		http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		return true
	})
	<-a.beginConnect(p, 10*time.Second)
	a.sleepContext(time.Second)
	a.scorePoint(s.countRequests("", "") > 0, "the first host is asked", "it is not")
	sent, keys := 0, 0
	for _, v := range thief.allRequests() {
		if v.header.Get("Authorization") != "" {
			sent++
		}
		if v.header.Get("X-Api-Key") != "" {
			keys++
		}
	}
	a.scorePoint(sent == 0, "the token does not go to the other host", "it does")
	a.scorePoint(keys == 0, "a configured header does not go to the other host", "it does")
}

// wrongType is a captive portal, or a sign-in page in front of the server: status 200, HTML.
func wrongType(a *caseRun) {
	s, p := a.newWebServer(false)
	s.setFront(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>Welcome</title><h1>Please log in</h1>")
		return true
	})
	got := a.connectServer(p)
	a.scorePoint(!got.OK && !got.hung && got.took < 15*time.Second, "connect ends with an error", "%s", got.errorText())
}

// cutStreams ends the listening stream each second, as proxies do with idle connections. The stream may be opened again, at
// most six times a second; the session lives on.
func cutStreams(a *caseRun) {
	s, p := a.newWebServer(false)
	a.connectServer(p)
	defer s.beginFault("cut-stream", map[string]string{"every": "1s"})()
	right := 0
	for i := range 5 {
		a.sleepContext(time.Second)
		if _, ok := a.callEcho(p, fmt.Sprint(i)); ok {
			right++
		}
	}
	a.scorePoint(right == 5, "five calls are answered meanwhile", "%d are", right)
	n := s.countRequests("", "initialize")
	a.scorePoint(n == 1, "the session is kept", "%d were begun", n)
	a.scorePoint(s.countRequests(http.MethodGet, "") <= 30, "the stream is not asked for without a pause", "%d times", s.countRequests(http.MethodGet, ""))
}

// The half second in webTool gives the client time to open its stream; without one it must find the tool in another way.
func webTool(a *caseRun) {
	s, p := a.newWebServer(false)
	a.connectServer(p)
	a.listTools(p)
	a.sleepContext(500 * time.Millisecond)
	s.beginFault("list-changed", map[string]string{"what": "add"})
	ok := a.waitFor(8*time.Second, func() bool { return slices.Contains(a.listTools(p).Tools, "changed-1") })
	a.scorePoint(ok, "the tool is offered", "it is not 8s later")
}

// hugeBody sends 1 GiB in blocks of 1 MiB, without a Content-Length that would give the size away.
func hugeBody(a *caseRun) {
	s, p := a.newWebServer(false)
	a.connectServer(p)
	s.setFront(func(w http.ResponseWriter, _ *http.Request, method string) bool {
		if method != "tools/call" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`)
		block := []byte(strings.Repeat("x", 1<<20))
		for range 1 << 10 {
			if _, err := w.Write(block); err != nil {
				return true
			}
		}
		fmt.Fprint(w, `"}]}}`)
		return true
	})
	waiting := a.beginCall(p, "read", 20*time.Second, map[string]any{"call": "x"})
	a.scoreMemory(8 * time.Second)
	got := <-waiting
	a.scorePoint(!got.hung, "the call ends", "%s", got.errorText())
	s.setFront(nil)
	a.scorePoint(a.writeUntilAnswered(p, ampleTime), "later calls work", "none does within %s", ampleTime)
}
