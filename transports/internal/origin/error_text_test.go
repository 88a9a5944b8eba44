package origin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// An error shows a refusal in the server's own words, in whichever format the server writes them.
func TestOwnWords(t *testing.T) {
	for _, c := range []struct{ kind, body, want string }{
		{"", "Access is only allowed at localhost:3005", "Access is only allowed at localhost:3005"},
		{"text/plain; charset=utf-8", "Access denied.\n", "Access denied"},
		{"application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Invalid Host: example.com"}}`, "Invalid Host: example.com"},
		{"application/json", `{"error":"invalid_token","error_description":"The token has expired"}`, "The token has expired"},
		{"application/json", `{"error":{"message":"quota is used up","type":"x"}}`, "quota is used up"},
		{"application/problem+json", `{"type":"about:blank","title":"Forbidden","detail":"your address is not allowed"}`, "your address is not allowed"},
		{"application/json", `{"errors":[{"message":"no such tenant"}]}`, "no such tenant"},
		{"application/json", `{"detail":[{"loc":["body"],"msg":"field required"}]}`, "field required"},
		{"application/json", `"not for you"`, "not for you"},
		{"application/json", `{"a":{"b":1}}`, ""},
		{"application/json", `{"error":`, ""},
		{"application/json", strings.Repeat(`{"error":`, 50) + `"x"` + strings.Repeat("}", 50), ""},
		{"", "a\x1b]0;x\x07b", ""},
		{"text/plain", "a\x1b]0;x\x07b", "a\ufffd]0;x\ufffdb"},
		{"text/html", "<html><body>403</body></html>", ""},
		{"", "<!doctype html><p>403", ""},
		{"application/octet-stream", "abc", ""},
		{"", "\xff\xfe", ""},
		{"", strings.Repeat("long ", 100), strings.TrimRight(messages.Line(strings.Repeat("long ", 100), 200), ". ")},
		{"", "", ""},
	} {
		if got := serverErrorText(http.Header{"Content-Type": {c.kind}}, []byte(c.body)); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.kind, c.body, got, c.want)
		}
	}
}

// A 403 says whether credentials were sent, because nothing else is known of its reason.
func TestForbiddenTellsWhatWasSent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("Access is only allowed at localhost:3005"))
	}))
	defer server.Close()
	for _, c := range []struct {
		query string
		head  http.Header
		want  string
	}{
		{"", nil, "no credentials were sent"},
		{"", http.Header{"X-Request-Id": {"1"}}, "no credentials were sent"},
		{"", http.Header{"Authorization": {"Bearer abc"}}, "the credentials that were sent do not suffice"},
		{"", http.Header{"X-Api-Key": {"abc"}}, "the credentials that were sent do not suffice"},
		{"?api_key=abc", nil, "the credentials that were sent do not suffice"},
	} {
		req, err := http.NewRequest(http.MethodPost, server.URL+"/mcp"+c.query, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range c.head {
			req.Header[name] = values
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body := ReadErrorBody(resp.Body, func() {})
		_ = resp.Body.Close()
		e := (&Origin{Label: "x"}).StatusError(resp, body, "")
		if e.Class != messages.ClassForbidden || !strings.Contains(e.Error(), c.want) ||
			!strings.Contains(e.Text, "(403 Forbidden): Access is only allowed at localhost:3005") {
			t.Errorf("%s %v: %v", c.query, c.head, e)
		}
	}
}
