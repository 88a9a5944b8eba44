package oauth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// configuredSpec is the spec of an entry of a configuration file.
func configuredSpec(t *testing.T, entry string, values map[string]string) supervisor.Spec {
	t.Helper()
	p := config.Parse(config.File{Path: "mcp.json", Scope: messages.ScopeUser, Data: []byte(`{"servers": {"protected": ` + entry + `}}`)})
	set := config.Merge([]config.Parsed{p}, config.Context{Lookup: func(n string) (string, bool) { v, ok := values[n]; return v, ok }})
	spec := set.Specs["protected"]
	if spec.Invalid != "" || len(set.Problems) > 0 {
		t.Fatal(spec.Invalid, set.Problems)
	}
	return spec
}

// TestConfiguredSignIns: what a configuration file says about tokens from an authorization server, without a person, and
// with one and without discovery.
func TestConfiguredSignIns(t *testing.T) {
	seeds.Shows(t, "004.fr5.oauth-config", "001.7.client-credentials", "001.6.oauth-token-exchange")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	jwk := map[string]any{"kty": "EC", "crv": "P-256", "kid": "k", "x": base64.RawURLEncoding.EncodeToString(point[1:33]),
		"y": base64.RawURLEncoding.EncodeToString(point[33:])}
	client := func(id, method string, more map[string]any) map[string]any {
		c := map[string]any{"client_id": id, "grant_types": []string{"client_credentials"}, "redirect_uris": []string{},
			"response_types": []string{}, "token_endpoint_auth_method": method}
		for k, v := range more {
			c[k] = v
		}
		return c
	}
	as := peers.StartAuthServer(t, peers.AuthSettings{Clients: []map[string]any{
		client("robot", "client_secret_basic", map[string]any{"client_secret": "secret of the robot"}),
		client("signer", "private_key_jwt", map[string]any{"jwks": map[string]any{"keys": []any{jwk}},
			"token_endpoint_auth_signing_alg": "ES256"}),
		{"client_id": "person", "token_endpoint_auth_method": "none", "application_type": "native",
			"redirect_uris": []string{"http://127.0.0.1/callback"}, "grant_types": []string{"authorization_code", "refresh_token"}},
	}})
	server := startMCP(t, as)
	values := map[string]string{"SECRET": "secret of the robot", "KEY": file, "AS": as.Issuer, "URL": server.URL}
	for name, entry := range map[string]string{
		"secret": `{"url": "${URL}", "auth": {"type": "client_credentials", "clientId": "robot", "clientSecret": "${SECRET}",
			"issuer": "${AS}"}}`,
		"key": `{"url": "${URL}", "auth": {"type": "client_credentials", "clientId": "signer", "clientKeyFile": "${KEY}",
			"clientKeyId": "k", "clientKeyAlgorithm": "ES256"}}`,
		"person": `{"url": "${URL}", "auth": {"type": "oauth", "authUrl": "${AS}/auth", "tokenUrl": "${AS}/token",
			"clientId": "person", "scopes": "mcp:read"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := testProgram{Dir: filepath.Join(t.TempDir(), "secrets")}
			m := startManager(t, p, supervisor.Config{Servers: map[string]supervisor.Spec{"protected": configuredSpec(t, entry, values)}})
			if name == "person" {
				awaitStatus(t, m, "protected", hasPhase(messages.NeedsAuth))
				if err := m.Login(t.Context(), "protected", supervisor.LoginOptions{Prompt: oauth.Prompt{Open: followSignIn}}); err != nil {
					t.Fatal(err)
				}
			}
			awaitStatus(t, m, "protected", hasPhase(messages.Connected))
			if _, err := m.CallServerTool(t.Context(), "protected", "echo", struct{}{}); err != nil {
				t.Error(err)
			}
			if s := authStatusOf(t, m, "protected"); s.State != supervisor.AuthSignedIn {
				t.Errorf("%+v", s)
			}
			if seen := as.Counts(t); seen.Registered != 0 {
				t.Errorf("it was registered: %+v", seen)
			}
		})
	}
}

// TestConfiguredTokenExchange: a token that a file holds is exchanged for one that the server takes (RFC 8693), and goes
// to the token endpoint only.
func TestConfiguredTokenExchange(t *testing.T) {
	seeds.Shows(t, "001.6.oauth-token-exchange", "001.7.token-exchange")
	var mu sync.Mutex
	var requests []string
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		mu.Lock()
		requests = append(requests, r.PostForm.Encode())
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "bought", "token_type": "Bearer", "expires_in": 3600,
			"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})
	}))
	defer tokens.Close()
	heard := &recordingServer{}
	mcp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(heard, r.Header)
		if r.Header.Get("Authorization") != "Bearer bought" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer mcp.Close()
	file := filepath.Join(t.TempDir(), "subject")
	if err := os.WriteFile(file, []byte("our own"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := configuredSpec(t, `{"type": "http", "url": "${URL}", "auth": {"type": "token_exchange", "clientId": "us", "clientSecret": "s3cret",
		"tokenPath": "${FILE}", "audience": "them", "tokenUrl": "${TOKENS}/token", "scopes": ["a", "b"]}}`,
		map[string]string{"URL": mcp.URL + "/mcp", "FILE": file, "TOKENS": tokens.URL})
	m := startManager(t, testProgram{Dir: filepath.Join(t.TempDir(), "secrets")}, supervisor.Config{
		Servers: map[string]supervisor.Spec{"protected": spec}})
	awaitStatus(t, m, "protected", func(st supervisor.Status) bool { return strings.Contains(st.Error, "404") })
	mu.Lock()
	defer mu.Unlock()
	if len(requests) != 1 || !strings.Contains(requests[0], "subject_token=our+own") || !strings.Contains(requests[0], "audience=them") ||
		!strings.Contains(requests[0], "token-exchange") || !strings.Contains(requests[0], "scope=a+b") {
		t.Errorf("the token endpoint was asked %q", requests)
	}
	if got := heard.receivedText(); strings.Contains(got, "our own") || strings.Contains(got, "s3cret") {
		t.Errorf("the server was told %q", got)
	}
}
