package score

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

var webCases = []Case{
	{Name: "an ordinary day over HTTP", Over: "HTTP", play: webDay,
		Story: "A good server is connected, listed, called and closed."},
	{Name: "an ordinary day of 2026 over HTTP", Over: "HTTP, modern", play: webModernDay,
		Story: "A server that speaks only 2026-07-28 is connected, listed and called."},
	{Name: "a lost session", Over: "HTTP", Faults: []string{"H1"}, play: lostSession,
		Story: "The server forgets its sessions and answers 404. A new one must be begun, once, and nothing run twice."},
	{Name: "a restarted server", Over: "HTTP", Faults: []string{"H1"}, play: restarted,
		Story: "The server is gone for 2s and comes back without its sessions."},
	{Name: "a reset in the middle of a call", Over: "HTTP", Faults: []string{"R13", "H11"}, play: resetCall,
		Story: "The tool runs, and the connection is reset instead of answered. It must not run again."},
	{Name: "credentials that are refused", Over: "HTTP", Faults: []string{"H7"}, play: unauthorized,
		Story: "From some moment on every request is answered with 401. It must not be asked again and again."},
	{Name: "slow down", Over: "HTTP", Faults: []string{"H6"}, play: throttled,
		Story: "The handshake is answered with 429 and Retry-After: 3. Nobody may come back sooner, and somebody should later."},
	{Name: "a half-open connection", Over: "HTTP", Faults: []string{"H4", "L5"}, play: halfOpen,
		Story: "The server takes every request and says nothing any more. Nobody may call it connected for long."},
	{Name: "a black hole", Over: "HTTP", Faults: []string{"H11"}, play: blackHole,
		Story: "A server takes connections and never says anything. Another one must not wait for it."},
	{Name: "a farewell without an answer", Over: "HTTP", Faults: []string{"H10"}, play: silentDelete,
		Story: "DELETE, which ends the session, is never answered."},
	{Name: "another origin", Over: "HTTP", Faults: []string{"H9"}, play: redirected,
		Story: "The server redirects to another host. The credentials of the first must not go there."},
	{Name: "a page instead of an answer", Over: "HTTP", Faults: []string{"H11"}, play: wrongType,
		Story: "Everything is answered with 200 and HTML, as a captive portal does."},
	{Name: "streams that are cut", Over: "HTTP", Faults: []string{"H3"}, play: cutStreams,
		Story: "The stream of the server's own messages is cut every second. That is no lost connection."},
	{Name: "a new tool over HTTP", Over: "HTTP", Faults: []string{"R7"}, play: webTool,
		Story: "The server gets a tool and says so on its stream, if there is one."},
	{Name: "a huge body", Over: "HTTP", Faults: []string{"P8", "I9"}, play: hugeBody,
		Story: "One call is answered with a body of 1 GiB. The call may fail; the client may not grow with it."},
}

func webDay(a *arena) {
	s, p := a.site(false)
	a.webBasics(p)
	closed := a.close(p)
	a.must(!closed.hung, "it is closed", "%s", closed.why())
	ended := a.within(5*time.Second, func() bool { return s.visited(http.MethodDelete, "") > 0 })
	a.must(ended, "the session is ended with DELETE", "it is not")
}

func (a *arena) webBasics(p *peer) {
	a.connects(p)
	list := a.list(p)
	a.must(slices.Contains(list.Tools, "write"), "its tools are listed", "%v; %s", list.Tools, list.why())
	echo, ok := a.echoes(p, "x")
	a.must(ok, "a call is answered", "%s", echo.why())
}

func webModernDay(a *arena) {
	_, p := a.site(true)
	a.webBasics(p)
}

// once reports whether no call of write ran twice. Calls have texts of their own.
func (a *arena) once(s *site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	twice := 0
	for _, n := range s.ran {
		if n > 1 {
			twice++
		}
	}
	a.must(twice == 0, "no call runs twice", "%d do", twice)
}

// writes calls until one is answered, each call with a text of its own.
func (a *arena) writes(p *peer, within time.Duration) bool {
	n := 0
	return a.within(within, func() bool {
		n++
		text := fmt.Sprintf("write %d", n)
		return textOf(a.call(p, "write", 10*time.Second, map[string]any{"text": text})) == text
	})
}

func lostSession(a *arena) {
	s, p := a.site(false)
	a.connect(p)
	a.echoes(p, "x")
	before := s.visited("", "initialize")
	s.forget()
	a.must(a.writes(p, enough), "a call works again", "none does within %s", enough)
	n := s.visited("", "initialize") - before
	a.must(n == 1, "one new session is begun", "%d are", n)
	a.once(s)
}

func restarted(a *arena) {
	s, p := a.site(false)
	a.connect(p)
	a.echoes(p, "x")
	s.restart(2 * time.Second)
	a.must(a.writes(p, 30*time.Second), "a call works again", "none does within 30s")
	a.once(s)
}

func resetCall(a *arena) {
	s, p := a.site(false)
	a.connect(p)
	s.breaks(func(w http.ResponseWriter, _ *http.Request, method string) bool {
		if method != "tools/call" {
			return false
		}
		s.run(rpcOf("write", "only-once"))
		reset(w)
		return true
	})
	got := a.call(p, "write", 20*time.Second, map[string]any{"text": "only-once"})
	a.must(!got.OK && !got.hung, "the call ends with an error", "%s", got.why())
	a.pause(3 * time.Second)
	n := s.executed("only-once")
	a.must(n == 1, "it ran once", "%d times", n)
	s.breaks(nil)
	a.must(a.writes(p, enough), "later calls work", "none does within %s", enough)
}

func rpcOf(tool, text string) (m rpc) {
	m.Params.Name, m.Params.Arguments = tool, map[string]string{"text": text}
	return m
}

func unauthorized(a *arena) {
	s, p := a.site(false)
	a.connect(p)
	s.breaks(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return true
	})
	before := s.visited("", "")
	got := a.call(p, "write", 20*time.Second, map[string]any{"text": "x"})
	a.must(!got.OK && !got.hung, "the call ends with an error", "%s", got.why())
	a.pause(8 * time.Second)
	n := s.visited("", "") - before
	a.must(n <= 15, "at most 15 requests follow in 8s", "%d do", n)
	a.must(!a.connected(p), "the client does not call it connected", "it does, 8s later")
}

func throttled(a *arena) {
	s, p := a.site(false)
	var first time.Time
	s.breaks(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
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
	got := a.connect(p)
	ok := a.within(enough, func() bool { return a.connected(p) && s.visited("", "notifications/initialized") > 0 })
	early := 0
	for i, v := range s.seen() {
		// The questions of one handshake, one after the other, are one attempt.
		if i > 0 && v.at.Sub(first) < 2900*time.Millisecond && v.at.Sub(first) > 500*time.Millisecond {
			early++
		}
	}
	a.must(early == 0, "nobody comes back before the time", "%d requests do", early)
	a.must(ok, "it is connected at last without being asked again", "it is not %s later: %s", enough, got.why())
}

func halfOpen(a *arena) {
	s, p := a.site(false)
	a.connect(p)
	s.breaks(func(_ http.ResponseWriter, r *http.Request, _ string) bool { s.hang(r); return true })
	got := a.call(p, "echo", 3*time.Second, map[string]any{"text": "x"})
	a.must(!got.OK && !got.hung && got.took < 10*time.Second, "a call ends at its deadline of 3s", "%s after %s", got.why(),
		got.took.Round(time.Second))
	noticed := a.within(30*time.Second, func() bool { return !a.connected(p) })
	a.must(noticed, "the client notices within 30s", "it still calls the server connected")
	s.breaks(nil)
	a.must(a.writes(p, 30*time.Second), "calls work again when it speaks again", "none does within 30s")
}

func blackHole(a *arena) {
	s, p := a.site(false)
	s.breaks(func(_ http.ResponseWriter, r *http.Request, _ string) bool { s.hang(r); return true })
	_, other := a.site(false)
	waiting := a.connecting(p, 6*time.Second)
	got := a.connect(other)
	a.must(got.OK, "the other server connects", "%s", got.why())
	_, ok := a.echoes(other, "x")
	a.must(ok, "the other server is called", "no answer")
	end := <-waiting
	a.must(!end.OK && !end.hung, "the connect ends with an error", "%s", end.why())
}

func silentDelete(a *arena) {
	s, p := a.site(false)
	a.connects(p)
	s.breaks(func(_ http.ResponseWriter, r *http.Request, _ string) bool {
		if r.Method == http.MethodDelete {
			s.hang(r)
			return true
		}
		return false
	})
	closed := a.close(p)
	a.must(!closed.hung && closed.took < 8*time.Second, "close ends within 8s", "%s after %s", closed.why(),
		closed.took.Round(time.Second))
	a.must(a.driver.quit(enough), "the client ends when it is told to quit", "it still runs %s later", enough)
}

func redirected(a *arena) {
	const token = "Bearer token-for-the-first"
	s, p := a.site(false)
	thief, _ := a.site(false)
	p.where.Headers = map[string]string{"Authorization": token, "X-Api-Key": "key-for-the-first"}
	// Another host, by another name of this machine.
	to := strings.Replace(thief.url, "127.0.0.1", "localhost", 1)
	s.breaks(func(w http.ResponseWriter, r *http.Request, _ string) bool {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		return true
	})
	<-a.connecting(p, 10*time.Second)
	a.pause(time.Second)
	a.must(s.visited("", "") > 0, "the first host is asked", "it is not")
	sent, keys := 0, 0
	for _, v := range thief.seen() {
		if v.header.Get("Authorization") != "" {
			sent++
		}
		if v.header.Get("X-Api-Key") != "" {
			keys++
		}
	}
	a.must(sent == 0, "the token does not go to the other host", "it does")
	a.must(keys == 0, "a configured header does not go to the other host", "it does")
}

func wrongType(a *arena) {
	s, p := a.site(false)
	s.breaks(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>Welcome</title><h1>Please log in</h1>")
		return true
	})
	got := a.connect(p)
	a.must(!got.OK && !got.hung && got.took < 15*time.Second, "connect ends with an error", "%s", got.why())
}

func cutStreams(a *arena) {
	s, p := a.site(false)
	a.connect(p)
	right := 0
	for i := range 5 {
		a.pause(time.Second)
		s.cut()
		if _, ok := a.echoes(p, fmt.Sprint(i)); ok {
			right++
		}
	}
	a.must(right == 5, "five calls are answered meanwhile", "%d are", right)
	n := s.visited("", "initialize")
	a.must(n == 1, "the session is kept", "%d were begun", n)
	a.must(s.visited(http.MethodGet, "") <= 30, "the stream is not asked for without a pause", "%d times", s.visited(http.MethodGet, ""))
}

func webTool(a *arena) {
	s, p := a.site(false)
	a.connect(p)
	a.list(p)
	a.pause(500 * time.Millisecond)
	s.grow("come-lately")
	ok := a.within(8*time.Second, func() bool { return slices.Contains(a.list(p).Tools, "come-lately") })
	a.must(ok, "the tool is offered", "it is not 8s later")
}

func hugeBody(a *arena) {
	s, p := a.site(false)
	a.connect(p)
	s.breaks(func(w http.ResponseWriter, _ *http.Request, method string) bool {
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
	waiting := a.calling(p, "echo", 20*time.Second, map[string]any{"text": "x"})
	a.modest(8 * time.Second)
	got := <-waiting
	a.must(!got.hung, "the call ends", "%s", got.why())
	s.breaks(nil)
	a.must(a.writes(p, enough), "later calls work", "none does within %s", enough)
}
