package e2e_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/certs"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

func TestAWebSocketServerIsSupervised(t *testing.T) {
	seeds.Shows(t, "004.fr1.transport-websocket")
	leavesNothing(t)
	server := newSocketServer()
	t.Cleanup(server.wait.Wait)
	url := strings.Replace(web.Serve(t, server), "http", "ws", 1)
	m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"socket": {Type: messages.WebSocket, URL: url},
	}})
	connected(t, m, "socket")
	says(t, m, "socket", "echo", object{"text": "über 2^53: 9007199254740993"}, "über 2^53: 9007199254740993")
	call(t, m, "socket", "grow", object{"name": "later"})
	before := status(t, m, "socket").Epoch
	server.drop()
	eventually(t, "the server is connected again", func() bool {
		st := status(t, m, "socket")
		return st.Status == messages.Connected && st.Epoch > before
	})
	says(t, m, "socket", "echo", object{"text": "again"}, "again")
	eventually(t, "the tool that the server has got is offered", func() bool {
		return slices.Contains(toolNames(m, "socket"), "later")
	})
	if err := m.Disconnect(within(t, bound), "socket"); err != nil {
		t.Error(err)
	}
}

func TestAConnectorIsReachedThroughItsProxy(t *testing.T) {
	seeds.Shows(t, "000.2.type-claudeai-proxy", "000.2.connector-id", "000.3.scope-claudeai")
	leavesNothing(t)
	var token atomic.Value
	token.Store("Bearer session-1")
	inner := web.Good()
	url := web.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != token.Load() {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	spec := supervisor.Spec{Type: messages.ClaudeAIProxy, URL: url + "/mcp", ID: "mcpsrv_01",
		Scope: messages.ScopeClaudeAI, Auth: &supervisor.Auth{Type: "api_key", APIKey: "session-1"}}
	m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"connector": spec, "nameless": with(spec, func(s *supervisor.Spec) { s.ID = "" }),
	}})
	connected(t, m, "connector")
	if st := asJSON(t, status(t, m, "connector")); !contains(st, `"scope":"claudeai"`) {
		t.Errorf("its status is %s", st)
	}
	says(t, m, "connector", "header", object{"name": "X-Mcp-Connector-Id"}, "mcpsrv_01")
	if st := status(t, m, "nameless"); st.Class != messages.ClassConfig || !contains(st.Error, "id of its connector") {
		t.Errorf("without an id it is %s (%s): %s", st.Status, st.Class, st.Error)
	}
	token.Store("Bearer session-2")
	_, err := m.CallServerTool(within(t, bound), "connector", "echo", object{"text": "x"})
	if err == nil {
		t.Error("a call with a refused session token has a result")
	}
	eventually(t, "a refused session token asks for authorization", func() bool {
		return status(t, m, "connector").Status == messages.NeedsAuth
	})
}

// secured serves h to clients whose certificate the authority has signed, and tells h their name.
func secured(t *testing.T, a *certs.Authority, h http.Handler) string {
	t.Helper()
	cert, _, _ := a.Issue(t, "server")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-Client", r.TLS.PeerCertificates[0].Subject.CommonName)
		h.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool,
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func TestTLSFromTheConfiguration(t *testing.T) {
	seeds.Shows(t, "001.6.tls")
	leavesNothing(t)
	a := certs.New(t)
	for _, who := range []string{"alice", "bob"} {
		a.Issue(t, who)
	}
	dir := filepath.Dir(a.CAFile)
	sockets := newSocketServer()
	t.Cleanup(sockets.wait.Wait)
	mux := http.NewServeMux()
	mux.Handle("/", web.Good())
	mux.Handle("/ws", sockets)
	url := secured(t, a, mux)
	ours := `"tls": {"caFile": "ca.pem", "certFile": "alice.pem", "keyFile": "alice-key.pem"}`
	config := fmt.Sprintf(`{"mcpServers": {
		"http": {"type": "http", "url": "%[1]s/mcp", %[2]s},
		"twin": {"type": "http", "url": "%[1]s/mcp", %[2]s},
		"sse": {"type": "sse", "url": "%[1]s/sse", %[2]s},
		"socket": {"type": "ws", "url": "%[3]s/ws", %[2]s},
		"proxy": {"type": "claudeai-proxy", "id": "x", "url": "%[1]s/mcp", %[2]s},
		"bob": {"type": "http", "url": "%[1]s/mcp",
			"tls": {"caFile": "ca.pem", "certFile": "bob.pem", "keyFile": "bob-key.pem"}},
		"nobody": {"type": "http", "url": "%[1]s/mcp", "tls": {"caFile": "ca.pem"}},
		"stranger": {"type": "http", "url": "%[1]s/mcp"},
		"lost": {"type": "http", "url": "%[1]s/mcp", "tls": {"caFile": "lost.pem"}}
	}}`, url, ours, strings.Replace(url, "https", "wss", 1))
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, problems, err := supervisor.FromFiles(dir)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	for name, spec := range cfg.Servers {
		cfg.Servers[name] = with(spec, func(s *supervisor.Spec) { s.Hold = "" }) // approved
	}
	m := start(t, cfg)
	connected(t, m, "http", "twin", "sse", "socket", "proxy", "bob")
	for _, name := range []string{"http", "twin", "sse", "socket", "proxy"} {
		says(t, m, name, "echo", object{"text": name}, name)
	}
	for name, want := range map[string]string{"http": "alice", "twin": "alice", "proxy": "alice", "bob": "bob"} {
		says(t, m, name, "header", object{"name": "X-Client"}, want)
	}
	eventually(t, "those who cannot be let in have failed", func() bool {
		return status(t, m, "nobody").Status == messages.Failed && status(t, m, "stranger").Status == messages.Failed
	})
	// With TLS 1.3 a client learns late that it lacks a certificate: the end may overtake the reason.
	if st := status(t, m, "nobody"); !contains(st.Error, "tls.certFile") && !contains(st.Error, "broke the connection") {
		t.Errorf("without a certificate: %s", st.Error)
	}
	if st := status(t, m, "stranger"); !contains(st.Error, "tls.caFile") {
		t.Errorf("without the authority: %s", st.Error)
	}
	lost := status(t, m, "lost")
	if lost.Status != messages.Failed || lost.Class != messages.ClassConfig ||
		!contains(lost.Error, filepath.Join(dir, "lost.pem")) || lost.NextAttempt != nil {
		t.Errorf("a server whose file is missing is %s (%s), next %v: %s",
			lost.Status, lost.Class, lost.NextAttempt, lost.Error)
	}

	// A renewed certificate counts from the next attempt on, and only for whom it is.
	_, cert, key := a.Issue(t, "carol")
	for from, to := range map[string]string{cert: "alice.pem", key: "alice-key.pem"} {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Reconnect(within(t, bound), "http"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"http": "carol", "bob": "bob"} {
		says(t, m, name, "header", object{"name": "X-Client"}, want)
	}
}
