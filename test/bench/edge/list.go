package edge

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// listTools has the first session of a crowd list the tools: what nobody has listed, nobody is told of.
func listTools(ctx context.Context, c *crowd) error {
	if w := listOnce(ctx, c.handler, c.ids[0]); !strings.Contains(w.Body.String(), `"echo"`) && !strings.Contains(w.Body.String(), `__echo"`) {
		return fmt.Errorf("the list is %s", w.Body)
	}
	return nil
}

func listOnce(ctx context.Context, h http.Handler, id string) *httptest.ResponseRecorder {
	return requestOnce(ctx, h, id, "tools/list")
}

func requestOnce(ctx context.Context, h http.Handler, id, method string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Session-Id", id)
	h.ServeHTTP(w, r)
	return w
}

// measureList returns the median time of a list of so many definitions that was asked for before.
func measureList(ctx context.Context, h http.Handler, method string, definitions, rounds int) (float64, error) {
	id := openSilently(ctx, h)
	if w := requestOnce(ctx, h, id, method); strings.Count(w.Body.String(), `"name":"`) != definitions { // it is rendered, once
		return 0, fmt.Errorf("%s has %d definitions, not %d", method, strings.Count(w.Body.String(), `"name":"`), definitions)
	}
	var times []float64
	for range rounds {
		begin := time.Now()
		requestOnce(ctx, h, id, method)
		times = append(times, float64(time.Since(begin).Microseconds())/1000)
	}
	return middle(times), nil
}

// listed are the lists that are measured: their names in the table, and a definition of each.
var listed = []struct{ name, method, member, definition string }{
	{"tools", "tools/list", "tools", `{"name":"tool_%d","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`},
	{"prompts", "prompts/list", "prompts", `{"name":"prompt_%d","description":"one of many prompts for measuring lists, with some words"}`},
	{"resources", "resources/list", "resources", `{"uri":"file:///srv/files/%d","name":"file %[1]d","mimeType":"text/plain"}`},
	{"templates", "resources/templates/list", "resourceTemplates", `{"uriTemplate":"file:///srv/%d/{name}","name":"files %[1]d"}`},
}

// startLists starts a manager with a server in this process whose lists have so many definitions each, and a gateway before it.
func startLists(ctx context.Context, definitions int) (_ serve.Service, end func(), err error) {
	results := map[string]string{"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},` +
		`"resources":{"listChanged":true}},"serverInfo":{"name":"lists","version":"1"}}`}
	for _, l := range listed {
		var all []string
		for i := range definitions {
			all = append(all, fmt.Sprintf(l.definition, i))
		}
		results[l.method] = `{"` + l.member + `":[` + strings.Join(all, ",") + `]}`
	}
	serveConnection := func(ctx context.Context, peer inprocess.Peer) error {
		for {
			body, err := peer.Read(ctx)
			if err != nil {
				return err
			}
			method, _ := rawjson.Text(rawjson.Member(body, "method"))
			if id := rawjson.Member(body, "id"); id != nil {
				if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, cmp.Or(results[method], "{}"))); err != nil {
					return err
				}
			}
		}
	}
	return startGateway(ctx, supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Type: messages.SDK}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": serveConnection}})
}
