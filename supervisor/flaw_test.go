package supervisor_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// promising is a server whose tools promise a sum and answer with what their name says.
func promising(answers map[string]string) func(context.Context, inprocess.Peer) error {
	return func(ctx context.Context, peer inprocess.Peer) error {
		for {
			body, err := peer.Read(ctx)
			if err != nil {
				return nil //nolint:nilerr // the end of the connection
			}
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct{ Name string }
			}
			if json.Unmarshal(body, &m) != nil || m.ID == nil {
				continue
			}
			result := `{}`
			switch m.Method {
			case "initialize":
				result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}`
			case "tools/list":
				var tools []string
				for name := range answers {
					schema := `,"outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`
					if name == "plain" {
						schema = ""
					}
					tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"}`+schema+`}`)
				}
				result = `{"tools":[` + strings.Join(tools, ",") + `]}`
			case "tools/call":
				result = answers[m.Params.Name]
			case "server/discover":
				if err := peer.Write(ctx, []byte(`{"jsonrpc":"2.0","id":`+string(m.ID)+
					`,"error":{"code":-32601,"message":"Method not found"}}`)); err != nil {
					return err
				}
				continue
			}
			if err := peer.Write(ctx, []byte(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`)); err != nil {
				return err
			}
		}
	}
}

func TestAResultThatMissesItsOutputSchemaIsFlaggedAndKept(t *testing.T) {
	answers := map[string]string{
		"good":  `{"content":[],"structuredContent":{"sum":9007199254740993},"unknownField":{"kept":true}}`,
		"bad":   `{"content":[],  "structuredContent":{"sum":"two"}}`,
		"none":  `{"content":[{"type":"text","text":"2"}]}`,
		"error": `{"content":[],"isError":true}`,
		"plain": `{"content":[]}`,
	}
	flaws := map[string]string{
		"bad": "structuredContent/sum: it is of type string, not integer", "none": "no structuredContent",
	}
	for _, skip := range []bool{false, true} {
		m, err := supervisor.Start(t.Context(), supervisor.Config{
			SkipOutputCheck: skip,
			Servers:         map[string]supervisor.Spec{"p": {Type: messages.SDK}},
			InProcess:       map[string]func(context.Context, inprocess.Peer) error{"p": promising(answers)},
			Sanitize:        func(_ *supervisor.Tool, raw json.RawMessage) json.RawMessage { return raw },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Settled(t.Context()); err != nil {
			t.Fatal(err)
		}
		for tool, raw := range answers {
			res, err := m.CallServerTool(t.Context(), "p", tool, nil)
			if err != nil {
				t.Fatal(err)
			}
			if string(res.Raw) != raw {
				t.Errorf("%s: %s is not what the server sent", tool, res.Raw)
			}
			want := flaws[tool]
			if skip {
				want = ""
			}
			for range 2 {
				if got := res.Flaw(); want == "" && got != "" || !strings.Contains(got, want) {
					t.Errorf("%s: flaw %q, want %q", tool, got, want)
				}
			}
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
