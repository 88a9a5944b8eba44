package proxy_test

import (
	"net/http"
	"strings"
	"testing"
)

const (
	askOne    = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"one"}}`
	hasOne    = `{"jsonrpc":"2.0","id":5,"result":{"content":[],"of":"one"}}`
	askStream = `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"stream"}}`
	hasNote   = "data: {\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n\n"
	hasStream = `{"jsonrpc":"2.0","id":6,"result":{"content":[],"of":"stream"}}`
)

// TestFaultsOverHTTP: what the rule says breaks, in an answer of JSON and in a stream, and only that.
func TestFaultsOverHTTP(t *testing.T) {
	type want struct {
		status int
		body   string
		fails  bool
	}
	well, stream := want{200, hasOne, false}, want{200, hasNote + "data: " + hasStream + "\n\n", false}
	failed := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}`
	}
	for _, c := range []struct {
		rule        string
		one, stream want
	}{
		{"tool-error tool=one text=no", want{200, failed("5"), false}, stream},
		{"tool-error tool=stream text=no", well, want{200, hasNote + "data: " + failed("6") + "\n\n", false}},
		{"duplicate-response", want{200, "event: message\ndata: " + hasOne + "\n\nevent: message\ndata: " + hasOne + "\n\n", false},
			want{200, hasNote + "data: " + hasStream + "\n\ndata: " + hasStream + "\n\n", false}},
		{"throttle when=call after=9s tool=one", want{429, "Too many requests", false}, stream},
		{"unauthorized on=tools/call tool=stream", well, want{401, "Unauthorized", false}},
		{"server-error status=502 body=bad tool=one", want{502, "bad", false}, stream},
		{"redirect status=308 to=/there tool=one on=tools/call", want{308, "", false}, stream},
		{"wrong-content-type on=tools/call type=text/html tool=one", well, stream},
		{"truncate", want{200, hasOne[:len(hasOne)/2], true}, want{200, hasNote + ("data: " + hasStream + "\n\n")[:len(hasStream)/2], true}},
		{"reset tool=one", want{0, "", true}, stream},
		{"die-mid-call tool=one", want{0, "", true}, stream},
		{"answer-and-die tool=stream", well, want{200, stream.body, true}},
		{"latency by=1ms", well, stream},
		{"slow-drip chunk=9 every=1ms", well, stream},
	} {
		t.Run(c.rule, func(t *testing.T) {
			target, control, log := startHTTPProxy(t, http.HandlerFunc(serveStreamable), c.rule)
			http.DefaultClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			for body, w := range map[string]want{askOne: c.one, askStream: c.stream} {
				resp, got, err := postRequest(t, target, body)
				status := 0
				if resp != nil {
					status = resp.StatusCode
				}
				if status != w.status || got != w.body || (err != nil) != w.fails {
					t.Errorf("%s\n got %d %q, %v\nwant %d %q", body, status, got, err, w.status, w.body)
				}
				switch {
				case resp == nil:
				case strings.HasPrefix(c.rule, "throttle") && body == askOne && resp.Header.Get("Retry-After") != "9":
					t.Errorf("Retry-After is %q", resp.Header.Get("Retry-After"))
				case strings.HasPrefix(c.rule, "wrong") && body == askOne && resp.Header.Get("Content-Type") != "text/html":
					t.Errorf("Content-Type is %q", resp.Header.Get("Content-Type"))
				}
			}
			if done := control.List()[0].Done; done == 0 || !strings.Contains(log.String(), `"fault":"`+control.List()[0].Rule.Fault) {
				t.Errorf("%d were done; the log is %s", done, log.String())
			}
		})
	}
}
