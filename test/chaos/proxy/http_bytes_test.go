package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// rawAnswer answers with the same bytes, whatever is asked.
type rawAnswer struct {
	kind, body string
	seen       chan *http.Request
	got        chan []byte
}

func (a *rawAnswer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	if a.seen != nil {
		a.seen <- r
		a.got <- b
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Mcp-Session-Id", "s1")
	w.Header()["X-Odd"] = []string{"a", "b"}
	w.Header().Set("Trailer", "X-Behind")
	w.WriteHeader(http.StatusAccepted)
	for _, piece := range []string{a.body[:len(a.body)/3], a.body[len(a.body)/3:]} {
		_, _ = io.WriteString(w, piece)
		w.(http.Flusher).Flush()
	}
	w.Header().Set("X-Behind", "t")
}

// TestTheVeryBytesOverHTTP: bodies, events, headers, queries, status and trailers pass, without rules and with one that
// hits nothing.
func TestTheVeryBytesOverHTTP(t *testing.T) {
	const events = ": comment\r\n\r\nevent: message\ndata: {\"jsonrpc\":\"2.0\", \"id\" : 1.0,\ndata:  \"result\":{}}\nid: 7\nretry: 5\n\n" +
		"data:{\"a\":1}\r\rdata: \xff\xfe\n\nevent: other\ndata: x\n\n\n\ndata: half"
	for _, rule := range []string{"", unmatchedRule} {
		for kind, body := range map[string]string{
			"application/json": oddLines, "text/event-stream": events, "text/plain": "x", "": oddLines,
			"application/json; charset=utf-8": `[ {"id" : 1E0} , {"id":2}]` + "\r\n",
		} {
			var rules []string
			if rule != "" {
				rules = []string{rule}
			}
			peer := &rawAnswer{kind: kind, body: body, seen: make(chan *http.Request, 1), got: make(chan []byte, 1)}
			target, _, _ := startHTTPProxy(t, peer, rules...)
			req, err := http.NewRequest(http.MethodPost, target+"?q=%20x&y", strings.NewReader(oddLines))
			if err != nil {
				t.Fatal(err)
			}
			req.Header["Mcp-Protocol-Version"] = []string{"2025-11-25"}
			req.Header.Set("Connection", "X-Hop")
			req.Header.Set("X-Hop", "1")
			req.Header.Set("Authorization", "Bearer secret")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(got) != body {
				t.Errorf("%q, rule %q: %v\n got %q\nwant %q", kind, rule, err, got, body)
			}
			if resp.StatusCode != http.StatusAccepted || resp.Header.Get("Mcp-Session-Id") != "s1" || len(resp.Header["X-Odd"]) != 2 ||
				resp.Header.Get("Content-Type") != kind || resp.Trailer.Get("X-Behind") != "t" {
				t.Errorf("%q, rule %q: %s %v, trailer %v", kind, rule, resp.Status, resp.Header, resp.Trailer)
			}
			r, sent := <-peer.seen, <-peer.got
			u, _ := url.Parse(target)
			if string(sent) != oddLines || r.URL.RawQuery != "q=%20x&y" || r.URL.Path != "/mcp" || r.Header.Get("X-Hop") != "" ||
				r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25" || r.Host == u.Host {
				t.Errorf("the server got %q, %s, %v", sent, r.URL, r.Header)
			}
		}
	}
}

// TestTheEndpointIsOurs: a server of 2024-11-05 that announces an absolute URL is not gone to round the proxy.
func TestTheEndpointIsOurs(t *testing.T) {
	var upstream string
	target, _, _ := startHTTPProxy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upstream = "http://" + r.Host
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/message?s=1\n\ndata: {}\n\n", upstream)
	}))
	resp, err := http.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, _ := io.ReadAll(resp.Body)
	u, _ := url.Parse(target)
	if want := "event: endpoint\ndata: http://" + u.Host + "/message?s=1\n\ndata: {}\n\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOnlyThisMachine: a page of another host that resolves to this one is refused.
func TestOnlyThisMachine(t *testing.T) {
	target, _, _ := startHTTPProxy(t, http.HandlerFunc(serveStreamable))
	req, _ := http.NewRequest(http.MethodPost, target, strings.NewReader(askOne))
	req.Host = "evil.example"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("it was answered with %s", resp.Status)
	}
}
