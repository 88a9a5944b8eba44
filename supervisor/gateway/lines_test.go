package gateway_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// An agent that has ended its lines cannot answer: a server that asks it is told so at once, and its call ends. It kept the server busy
// for five minutes once.
func TestNobodyIsAskedAfterTheEndOfTheLines(t *testing.T) {
	for name, lines := range map[string][]string{
		"modern": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":` + canAll + `}}}`},
		"legacy": {`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + canAll + `,"clientInfo":{"name":"x","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one := supervisortest.NewServer("one", questioner("ask", 1))
				one.Spec.CallTimeout = messages.Duration(10 * time.Minute)
				var cfg supervisor.Config
				gateway.PassQuestions(&cfg)
				m := supervisortest.StartConfig(t, cfg, one)
				g := gateway.New(gateway.Config{Manager: m, Prefix: gateway.PrefixNever})
				t.Cleanup(g.Close)
				if err := m.Settled(t.Context()); err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				began := time.Now()
				err := serve.Stdio(t.Context(), serve.Options{Service: g}, serve.Principal{Name: "a"}, serve.Path{}, strings.NewReader(strings.Join(lines, "\n")+"\n"), &out)
				if took := time.Since(began); err != nil || took > time.Second {
					t.Errorf("the lines took %v and ended with %v", took, err)
				}
				if !strings.Contains(out.String(), "refused: ") {
					t.Errorf("the agent got %s", out.String())
				}
			})
		})
	}
}
