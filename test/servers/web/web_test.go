package web_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

// bound separates "never" from "slowly on a loaded machine"; soon is how long a test watches that nothing happens.
const (
	bound = 20 * time.Second
	soon  = 150 * time.Millisecond
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

type reply struct {
	status int
	header http.Header
	body   string
}

// send makes one request and reads its whole answer.
func send(t *testing.T, ctx context.Context, method, url, body string, header ...string) (reply, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(b)}, err
}

func post(t *testing.T, url, body string, header ...string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	r, err := send(t, ctx, http.MethodPost, url, body, header...)
	if err != nil {
		t.Fatalf("POST %s: %v", url, err)
	}
	return r
}

// session initializes and returns the headers of the session.
func session(t *testing.T, url string, header ...string) []string {
	t.Helper()
	r := post(t, url+"/mcp", initialize, header...)
	id := r.header.Get("Mcp-Session-Id")
	if r.status != http.StatusOK || !strings.Contains(r.body, "serverInfo") || id == "" {
		t.Fatalf("initialize gave %d %s, session %q", r.status, r.body, id)
	}
	header = append(header, "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18")
	post(t, url+"/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header...)
	return header
}

func call(t *testing.T, url, tool, args string, header []string) reply {
	t.Helper()
	return post(t, url+"/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+tool+
		`","arguments":`+args+`}}`, header...)
}

func TestGoodOverStreamableHTTP(t *testing.T) {
	url := web.Serve(t, web.Good())
	h := session(t, url)
	for _, c := range []struct{ tool, args, want string }{
		{"echo", `{"text":"hi ☃"}`, "hi ☃"},
		{"add", `{"a":1.5,"b":2}`, "3.5"},
		{"sleep", `{"for":"1ms"}`, "slept 1ms"},
		{"fail", `{"text":"no"}`, `"isError":true`},
		{"header", `{"name":"X-Fixture"}`, "shown"},
		{"grow", `{"name":"new"}`, "done"},
		{"new", `{}`, "new"},
	} {
		if r := call(t, url, c.tool, c.args, append(h, "X-Fixture", "shown")); !strings.Contains(r.body, c.want) {
			t.Errorf("%s answers %d %s, want %s", c.tool, r.status, r.body, c.want)
		}
	}
}

func TestGoodOverSSE(t *testing.T) {
	url := web.Serve(t, web.OnlySSE(web.Good()))
	if r := post(t, url+"/sse", initialize); r.status != http.StatusMethodNotAllowed {
		t.Errorf("POST gives %d, want 405", r.status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewScanner(resp.Body)
	data := func() string {
		for events.Scan() {
			if d, ok := strings.CutPrefix(events.Text(), "data:"); ok {
				return strings.TrimSpace(d)
			}
		}
		t.Fatalf("the stream ended: %v", events.Err())
		return ""
	}
	endpoint := data()
	if strings.HasPrefix(endpoint, "/") {
		endpoint = url + endpoint
	}
	if r := post(t, endpoint, initialize); r.status != http.StatusAccepted {
		t.Errorf("POST to %s gives %d", endpoint, r.status)
	}
	if d := data(); !strings.Contains(d, "serverInfo") {
		t.Errorf("the answer is %s", d)
	}
}

func TestARestartForgetsSessionsAndTakesNewOnes(t *testing.T) {
	s := web.NewRestartable()
	url := web.Serve(t, s)
	old := session(t, url)
	s.Restart()
	if r := call(t, url, "echo", `{"text":"x"}`, old); r.status != http.StatusNotFound {
		t.Errorf("an old session gets %d %s, want 404", r.status, r.body)
	}
	if r := call(t, url, "echo", `{"text":"x"}`, session(t, url)); !strings.Contains(r.body, `"x"`) {
		t.Errorf("a new session gets %d %s", r.status, r.body)
	}
}

func TestTheRecorderSeesEveryHeader(t *testing.T) {
	r := &web.Recorder{Next: web.Good()}
	session(t, web.Serve(t, r), "X-Key", "value")
	seen := r.Requests()
	if len(seen) != 2 {
		t.Fatalf("saw %+v", seen)
	}
	if s := seen[1]; s.Method != http.MethodPost || s.Path != "/mcp" || s.Header.Get("X-Key") != "value" {
		t.Errorf("saw %+v", s)
	}
}

func TestAnswersThatAreNoAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.Handler
		status  int
		header  string // "Name: part of its value"
		body    string
	}{
		{"RequireToken", web.RequireToken("t", web.Good()), 401, "WWW-Authenticate: resource_metadata=", ""},
		{"RequireKey", web.RequireKey("X-Key", "k", web.Good()), 401, "", "key missing"},
		{"Forbidden", web.Forbidden("files:write"), 403, `WWW-Authenticate: scope="files:write"`, ""},
		{"Status", web.Status(503), 503, "Content-Type: text/plain", ""},
		{"FailingJSON", web.FailingJSON(), 500, "Content-Type: application/json", "fire"},
		{"Throttled", web.Throttled(1, 3*time.Second, web.Good()), 429, "Retry-After: 3", ""},
		{"FailFirst", web.FailFirst(1, 502, web.Good()), 502, "", ""},
		{"WrongType", web.WrongType(), 200, "Content-Type: text/html", "<h1>"},
		{"NotJSON", web.NotJSON(), 200, "Content-Type: application/json", "upstream"},
		{"OtherID", web.OtherID(), 200, "Content-Type: application/json", "987654321"},
		{"Redirect", web.Redirect("http://127.0.0.1:1", 307), 307, "Location: http://127.0.0.1:1/mcp", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := post(t, web.Serve(t, c.handler)+"/mcp", initialize)
			if r.status != c.status || !strings.Contains(r.body, c.body) {
				t.Errorf("got %d %s, want %d and %q", r.status, r.body, c.status, c.body)
			}
			if name, value, ok := strings.Cut(c.header, ": "); ok && !strings.Contains(r.header.Get(name), value) {
				t.Errorf("%s is %q, want %q in it", name, r.header.Get(name), value)
			}
		})
	}
}

func TestWhatPassesAfterARefusal(t *testing.T) {
	session(t, web.Serve(t, web.RequireToken("t", web.Good())), "Authorization", "Bearer t")
	session(t, web.Serve(t, web.RequireKey("X-Key", "k", web.Good())), "X-Key", "k")
	for name, h := range map[string]http.Handler{
		"Throttled": web.Throttled(1, time.Second, web.Good()), "FailFirst": web.FailFirst(1, 500, web.Good()),
	} {
		url := web.Serve(t, h)
		if r := post(t, url+"/mcp", initialize); r.status == http.StatusOK {
			t.Errorf("%s lets the first request through", name)
		}
		session(t, url)
	}
	url := web.Serve(t, web.RevokeAfter(2, web.Good()))
	if r := call(t, url, "echo", `{"text":"x"}`, session(t, url)); r.status != http.StatusUnauthorized {
		t.Errorf("the third request gets %d, want 401", r.status)
	}
}

func TestHugeIsHuge(t *testing.T) {
	if r := post(t, web.Serve(t, web.Huge(1_000_000)), initialize); len(r.body) < 1_000_000 {
		t.Errorf("%d bytes", len(r.body))
	}
}

func TestNoStreamAnswers405(t *testing.T) {
	url := web.Serve(t, web.NoStream(web.Good()))
	session(t, url)
	r, err := send(t, t.Context(), http.MethodGet, url+"/mcp", "")
	if err != nil || r.status != http.StatusMethodNotAllowed {
		t.Errorf("GET gives %d, %v", r.status, err)
	}
}

func TestThoseThatHangDoSoUntilTheClientGivesUp(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"BlackHole": web.BlackHole(), "Silent": web.Silent(), "Drip": web.Drip(5 * time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			r, err := send(t, ctx, http.MethodPost, web.Serve(t, h), initialize)
			if err == nil || ctx.Err() == nil {
				t.Errorf("answered %d %s, %v", r.status, r.body, err)
			}
		})
	}
}

func TestSlowDeleteHoldsTheEndOfASession(t *testing.T) {
	url := web.Serve(t, web.SlowDelete(time.Hour, web.Good()))
	h := session(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if r, err := send(t, ctx, http.MethodDelete, url+"/mcp", "", h...); err == nil {
		t.Errorf("DELETE gives %d", r.status)
	}
}

func TestCutAfterCutsAStream(t *testing.T) {
	for name, h := range map[string]http.Handler{"stream": web.Good(), "silence": web.BlackHole()} {
		t.Run(name, func(t *testing.T) {
			url := web.Serve(t, web.CutAfter(soon, h))
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			if r, err := send(t, ctx, http.MethodGet, url+"/sse", ""); err == nil || ctx.Err() != nil {
				t.Errorf("the response ended with %d %s, %v; want it broken", r.status, r.body, err)
			}
		})
	}
}
