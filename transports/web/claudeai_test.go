package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

func claudeAI(cfg web.Config) *web.ClaudeAI {
	return web.NewClaudeAI(web.ClaudeAIConfig{Config: cfg, ConnectorID: "mcpsrv_01"})
}

// behindProxy lets only those requests through that name the connector and the account.
func behindProxy(t *testing.T, token string, inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Values("X-Mcp-Connector-Id"); len(id) != 1 || id[0] != "mcpsrv_01" {
			t.Errorf("%s named the connector %q, want mcpsrv_01", r.Method, id)
		}
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func TestClaudeAIContract(t *testing.T) {
	seeds.Shows(t, "000.2.type-claudeai-proxy", "000.2.connector-id")
	broken := conntest.BrokenConfigs(func(c web.Config) transports.Transport { return claudeAI(c) })
	for name, id := range map[string]string{"no connector": "", "no id of a connector": "a\nb"} {
		broken[name] = func(t *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
			cfg := conntest.ContractConfig(t, "https://proxy.example", o)
			return web.NewClaudeAI(web.ClaudeAIConfig{Config: cfg, ConnectorID: id}), messages.ClassConfig
		}
	}
	transporttest.Run(t, transporttest.Harness{
		New: func(t *testing.T, o transporttest.Options) transports.Transport {
			p := conntest.NewWebPeer(t, func(p *conntest.WebPeer) http.Handler { return behindProxy(t, o.Secret, conntest.StreamableHandler(p)) })
			cfg := conntest.ContractConfig(t, p.Server.URL+"/v1/mcp/mcpsrv_01", o)
			cfg.Headers["x-mcp-connector-id"] = "somebody else's"
			return conntest.ListeningTransport{Transport: claudeAI(cfg)}
		},
		Broken:   broken,
		Features: transporttest.Features{SendWaits: true, Push: true, CancelClosesStream: true},
	})
}

func TestClaudeAIRefusedSessionTokenAsksForAuthorization(t *testing.T) {
	s := httptest.NewServer(behindProxy(t, "new", http.NotFoundHandler()))
	t.Cleanup(s.Close)
	c, err := claudeAI(web.Config{
		URL: s.URL, Headers: map[string]string{"Authorization": "Bearer old"}, Client: conntest.OwnClient(t),
	}).Dial(t.Context(), &transporttest.Recorder{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	_, err = c.Send(t.Context(), transports.Message{ID: 1, Method: "initialize", Body: []byte(`{"jsonrpc":"2.0","id":1}`)})
	var e *transports.Error
	if !errors.As(err, &e) || e.Class != messages.ClassUnauthorized || e.Challenge == nil {
		t.Errorf("Send: %v, want class unauthorized with a challenge", err)
	}
}
