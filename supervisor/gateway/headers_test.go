package gateway_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// A call whose headers do not repeat its arguments is refused, wherever the schema of the tool asks for a header, and by whichever name the
// tool is called. Before, an argument inside of another one was not compared, nor any of a tool that was called by its server's own name.
func TestHeadersRepeatArguments(t *testing.T) {
	one := supervisortest.NewServer("one", supervisortest.Tool{Name: "query", InputSchema: `{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},"at":{"type":"object","properties":{"tenant":{"type":"string","x-mcp-header":"Tenant"}}}}}`})
	e := start(t, gateway.PrefixAlways, one)
	for _, name := range []string{"one__query", "query"} {
		for _, c := range []struct {
			arguments string
			headers   map[string]string
			refused   bool
		}{
			{`{"region":"west","at":{"tenant":"é"}}`, map[string]string{"Mcp-Param-Region": "west", "mcp-param-tenant": "=?base64?w6k=?="}, false},
			{`{"at":{}}`, map[string]string{"Mcp-Param-Other": "x"}, false},
			{`{"region":"west"}`, nil, true},
			{`{"region":"é"}`, map[string]string{"Mcp-Param-Region": "é"}, true},
			{`{"region":"west"}`, map[string]string{"Mcp-Param-Region": "east"}, true},
			{`{"at":{"tenant":"a"}}`, nil, true},
			{`{"at":{"tenant":"a"}}`, map[string]string{"Mcp-Param-Tenant": "b"}, true},
			{`{}`, map[string]string{"Mcp-Param-Tenant": "b"}, true},
		} {
			headers := map[string]string{"Authorization": "Bearer a", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
			maps.Copy(headers, c.headers)
			w := e.post(t.Context(), "/mcp", headers, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+c.arguments+
				`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
			if refused := w.Code == 400 && strings.Contains(w.Body.String(), `"code":-32020`); refused != c.refused || !refused && w.Code != 200 {
				t.Errorf("%s with %s and %v: %d %s", name, c.arguments, c.headers, w.Code, w.Body)
			}
		}
	}
}
