package score_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/score"
)

// TestTheSiteRefusesWhatServersMust: a client that leaves out what the modern era demands of it must not win points here. The
// official suite looks at more: make conformance ONLY=^server/.
func TestTheSiteRefusesWhatServersMust(t *testing.T) {
	url, stop, err := score.StartSite(true)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + params + `}}`
	}
	headers := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read"}
	for name, c := range map[string]struct {
		header, value, body string
		status              int
		want                string
	}{
		"all is there":        {"", "", call(`"name":"read","arguments":{"call":"hi"},` + meta), 200, `\"call\":\"hi\"`},
		"no _meta":            {"", "", call(`"name":"read"`), 400, "-32602"},
		"another method":      {"Mcp-Method", "tools/list", call(`"name":"read",` + meta), 400, "-32020"},
		"no method":           {"Mcp-Method", "", call(`"name":"read",` + meta), 400, "-32020"},
		"another name":        {"Mcp-Name", "write", call(`"name":"read",` + meta), 400, "-32020"},
		"another version":     {"Mcp-Protocol-Version", "2025-11-25", call(`"name":"read",` + meta), 400, "-32020"},
		"an unknown version":  {"Mcp-Protocol-Version", "1999-01-01", call(`"name":"read",` + strings.Replace(meta, "2026-07-28", "1999-01-01", 1)), 400, `"data":{"supported":["2026-07-28"],"requested":"1999-01-01"}`},
		"an unknown method":   {"Mcp-Method", "x/y", strings.Replace(call(meta), "tools/call", "x/y", 1), 404, "-32601"},
		"an unknown tool":     {"Mcp-Name", "none", call(`"name":"none",` + meta), 200, "-32602"},
		"a page of elsewhere": {"Origin", "http://evil.example", call(`"name":"read",` + meta), 403, "of its own machine"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range headers {
			r.Header.Set(k, v)
		}
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		if name == "an unknown method" {
			r.Header.Del("Mcp-Name")
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body)
		}
	}
}
