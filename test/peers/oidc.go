package peers

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// oldestNodeOfOIDC is older than what oidc-provider asks for; it warns and works.
const oldestNodeOfOIDC = 20

// AuthServer is a running authorization server: oidc-provider at the version of oidc/package-lock.json, configured by
// oidc/server.mjs. It rotates refresh tokens, takes a spent one for theft and revokes what came of it, requires PKCE,
// registers clients dynamically and binds tokens to resources. It listens on 127.0.0.1 and ends with the test.
type AuthServer struct {
	// Issuer is its address.
	Issuer string
}

// AuthSettings hold the settings in which tests differ. They are passed to the server as JSON, in its argument.
type AuthSettings struct {
	// AccessTTL is the life of access tokens in seconds; 3600 if 0.
	AccessTTL int `json:"accessTTL,omitempty"`
	// Clients are registered beforehand, in OpenID Connect's metadata.
	Clients []map[string]any `json:"clients,omitempty"`
}

// StartAuthServer starts one, and installs it first if need be.
func StartAuthServer(tb testing.TB, settings AuthSettings) *AuthServer {
	tb.Helper()
	node, dir, err := installAuthServer(tb.Output(), false)
	if err != nil {
		skipOrFail(tb, "the authorization server of npm", err)
	}
	arg, err := json.Marshal(settings)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join(dir, "server.mjs"), string(arg))
	cmd.Dir = dir
	errs := &boundedOutput{}
	cmd.Stderr = errs
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		stop := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer stop.Stop()
		_ = cmd.Wait()
		if tb.Failed() {
			tb.Log("the authorization server said:\n" + errs.String())
		}
	})
	s := &AuthServer{}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct{ Issuer string }
	if err != nil || json.Unmarshal(line, &ready) != nil || ready.Issuer == "" {
		tb.Fatalf("the authorization server does not start: %s%s", line, errs.String())
	}
	s.Issuer = ready.Issuer
	return s
}

// AuthCounts counts the requests to an AuthServer.
type AuthCounts struct {
	Registered, SignedIn, Revoked int
	// Unavailable counts the requests to the token endpoint that Break answered.
	Unavailable int
	// Code, Refresh and Client are by grant type.
	Code    GrantCounts `json:"authorization_code"`
	Refresh GrantCounts `json:"refresh_token"`
	Client  GrantCounts `json:"client_credentials"`
}

// GrantCounts counts the answers of the token endpoint.
type GrantCounts struct{ Granted, Refused int }

// Counts asks what was asked so far.
func (s *AuthServer) Counts(tb testing.TB) AuthCounts {
	tb.Helper()
	var seen AuthCounts
	s.requestJSON(tb, http.MethodGet, "/test/seen", nil, &seen)
	return seen
}

// Break lets the token endpoint answer with a status, 0 for itself again.
func (s *AuthServer) Break(tb testing.TB, status int) {
	tb.Helper()
	s.requestJSON(tb, http.MethodPost, fmt.Sprintf("/test/token?status=%d", status), nil, &struct{}{})
}

// SetTokenLifetime sets the life of the access tokens to come, in seconds.
func (s *AuthServer) SetTokenLifetime(tb testing.TB, seconds int) {
	tb.Helper()
	s.requestJSON(tb, http.MethodPost, fmt.Sprintf("/test/life?seconds=%d", seconds), nil, &struct{}{})
}

// Token describes an access token, as the authorization server introspects it.
type Token struct {
	Active                  bool
	Audience, Scope, Client string
	Expires                 int64
}

// Check looks an access token up, as an MCP server does.
func (s *AuthServer) Check(token string) (Token, error) {
	resp, err := http.PostForm(s.Issuer+"/test/check", url.Values{"token": {token}})
	if err != nil {
		return Token{}, err
	}
	defer resp.Body.Close()
	var t Token
	return t, json.NewDecoder(resp.Body).Decode(&t)
}

// requestJSON makes a request to the pages that only the tests use, and fails the test for anything but an answer.
func (s *AuthServer) requestJSON(tb testing.TB, method, path string, body io.Reader, v any) {
	tb.Helper()
	req, err := http.NewRequest(method, s.Issuer+path, body)
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil || resp.StatusCode != http.StatusOK {
		tb.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
}

// installAuthServer installs the provider, and beside it the script that configures and starts it.
func installAuthServer(log io.Writer, retry bool) (node, dir string, err error) {
	if node, err = exec.LookPath("node"); err != nil {
		return "", "", errors.New("node is not installed")
	}
	if err := nodeIsNewEnough(node, oldestNodeOfOIDC); err != nil {
		return "", "", err
	}
	dir, err = installPackages(log, retry, "oidc", "oidc", "server.mjs")
	return node, dir, err
}

// boundedOutput keeps the first 64 KiB of what a program says.
type boundedOutput struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer. It accepts everything, so that the program never fails because of a full buffer.
func (t *boundedOutput) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(p[:min(len(p), max(0, 64<<10-t.text.Len()))])
	return len(p), nil
}

func (t *boundedOutput) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
