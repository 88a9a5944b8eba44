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
	checkLeaks(t)
	server := newSocketServer()
	t.Cleanup(server.wait.Wait)
	url := strings.Replace(web.Serve(t, server), "http", "ws", 1)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"socket": {Type: messages.WebSocket, URL: url},
	}})
	awaitConnected(t, m, "socket")
	checkText(t, m, "socket", "echo", object{"text": "über 2^53: 9007199254740993"}, "über 2^53: 9007199254740993")
	mustCall(t, m, "socket", "grow", object{"name": "later"})
	before := statusOf(t, m, "socket").Epoch
	server.cutConnections()
	eventually(t, "the server is connected again", func() bool {
		st := statusOf(t, m, "socket")
		return st.Status == messages.Connected && st.Epoch > before
	})
	checkText(t, m, "socket", "echo", object{"text": "again"}, "again")
	eventually(t, "the tool that the server has got is offered", func() bool {
		return slices.Contains(toolNames(m, "socket"), "later")
	})
	if err := m.Disconnect(testContext(t, bound), "socket"); err != nil {
		t.Error(err)
	}
}

func TestAConnectorIsReachedThroughItsProxy(t *testing.T) {
	seeds.Shows(t, "000.2.type-claudeai-proxy", "000.2.connector-id", "000.3.scope-claudeai")
	checkLeaks(t)
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
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"connector": spec, "nameless": changeSpec(spec, func(s *supervisor.Spec) { s.ID = "" }),
	}})
	awaitConnected(t, m, "connector")
	if st := asJSON(t, statusOf(t, m, "connector")); !containsWords(st, `"scope":"claudeai"`) {
		t.Errorf("its status is %s", st)
	}
	checkText(t, m, "connector", "header", object{"name": "X-Mcp-Connector-Id"}, "mcpsrv_01")
	eventually(t, "the one without an id has failed", func() bool { return statusOf(t, m, "nameless").Status == messages.Failed })
	if st := statusOf(t, m, "nameless"); st.Class != messages.ClassConfig || !containsWords(st.Error, "id of its connector") {
		t.Errorf("without an id it is %s (%s): %s", st.Status, st.Class, st.Error)
	}
	token.Store("Bearer session-2")
	_, err := m.CallServerTool(testContext(t, bound), "connector", "echo", object{"text": "x"})
	if err == nil {
		t.Error("a call with a refused session token has a result")
	}
	eventually(t, "a refused session token asks for authorization", func() bool {
		return statusOf(t, m, "connector").Status == messages.NeedsAuth
	})
}

// serveSecured serves h to clients whose certificate the authority has signed, and tells h their name.
func serveSecured(t *testing.T, a *certs.Authority, h http.Handler) string {
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
	checkLeaks(t)
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
	url := serveSecured(t, a, mux)
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
		cfg.Servers[name] = changeSpec(spec, func(s *supervisor.Spec) { s.Hold = "" }) // approved
	}
	m := startManager(t, cfg)
	awaitConnected(t, m, "http", "twin", "sse", "socket", "proxy", "bob")
	for _, name := range []string{"http", "twin", "sse", "socket", "proxy"} {
		checkText(t, m, name, "echo", object{"text": name}, name)
	}
	for name, want := range map[string]string{"http": "alice", "twin": "alice", "proxy": "alice", "bob": "bob"} {
		checkText(t, m, name, "header", object{"name": "X-Client"}, want)
	}
	for _, name := range []string{"nobody", "stranger", "lost"} {
		eventually(t, name+" has failed", func() bool { return statusOf(t, m, name).Status == messages.Failed })
	}
	// With TLS 1.3 a client learns late that it lacks a certificate: the end may overtake the reason.
	if st := statusOf(t, m, "nobody"); !containsWords(st.Error, "tls.certFile") && !containsWords(st.Error, "broke the connection") {
		t.Errorf("without a certificate: %s", st.Error)
	}
	if st := statusOf(t, m, "stranger"); !containsWords(st.Error, "tls.caFile") {
		t.Errorf("without the authority: %s", st.Error)
	}
	lost := statusOf(t, m, "lost")
	if lost.Status != messages.Failed || lost.Class != messages.ClassConfig ||
		!containsWords(lost.Error, filepath.Join(dir, "lost.pem")) || lost.NextAttempt != nil {
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
	if err := m.Reconnect(testContext(t, bound), "http"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"http": "carol", "bob": "bob"} {
		checkText(t, m, name, "header", object{"name": "X-Client"}, want)
	}
}
