package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/session"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// bound is for what must happen, however slow the machine.
const bound = 2 * time.Minute

// mcpServer is an MCP server that lets no client in without a good token for itself.
type mcpServer struct {
	URL string
	// seen counts the requests that came, refused those that were answered 401 or 403.
	seen, refused atomic.Int64
	// shut answers every request with 401.
	shut atomic.Bool

	mu     sync.Mutex
	tokens map[string]bool // that were good
}

// startMCP starts one whose tools are echo, which needs the scope mcp:read, and write, which needs mcp:write.
func startMCP(t *testing.T, as *peers.AuthServer) *mcpServer {
	t.Helper()
	s := &mcpServer{tokens: map[string]bool{}}
	impl := mcp.NewServer(&mcp.Implementation{Name: "protected", Version: "1"}, nil)
	for _, name := range []string{"echo", "write"} {
		mcp.AddTool(impl, &mcp.Tool{Name: name, Description: name},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
			})
	}
	var protected http.Handler
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		s.seen.Add(1)
		count := &statusWriter{ResponseWriter: w}
		protected.ServeHTTP(count, r)
		if count.status == http.StatusUnauthorized || count.status == http.StatusForbidden {
			s.refused.Add(1)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/mcp"
	metadata := server.URL + "/.well-known/oauth-protected-resource/mcp"
	mux.Handle("/.well-known/oauth-protected-resource/mcp", sdkauth.ProtectedResourceMetadataHandler(
		&oauthex.ProtectedResourceMetadata{
			Resource: s.URL, AuthorizationServers: []string{as.Issuer}, ScopesSupported: []string{"mcp:read"},
		}))
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return impl }, nil)
	verify := func(_ context.Context, token string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		if s.shut.Load() {
			return nil, sdkauth.ErrInvalidToken
		}
		info, err := as.Check(token)
		switch {
		case err != nil:
			return nil, err
		case !info.Active || info.Audience != s.URL:
			return nil, fmt.Errorf("%w: not for us", sdkauth.ErrInvalidToken)
		}
		s.mu.Lock()
		s.tokens[token] = true
		s.mu.Unlock()
		// A user makes the handler refuse a session to somebody else.
		return &sdkauth.TokenInfo{Scopes: strings.Fields(info.Scope), Expiration: time.Unix(info.Expires, 0),
			UserID: info.Client}, nil
	}
	bearer := func(scopes ...string) http.Handler {
		return sdkauth.RequireBearerToken(verify, &sdkauth.RequireBearerTokenOptions{
			ResourceMetadataURL: metadata, Scopes: scopes,
		})(handler)
	}
	read, write := bearer("mcp:read"), bearer("mcp:write")
	protected = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"write"`) {
			write.ServeHTTP(w, r)
			return
		}
		read.ServeHTTP(w, r)
	})
	return s
}

// acceptedTokens is how many different tokens were accepted.
func (s *mcpServer) acceptedTokens() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tokens)
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// followSignIn is a browser with a person in front of it: it follows every redirect, to the end.
func followSignIn(ctx context.Context, url string) error {
	_, err := followRedirects(ctx, url, func(*http.Request) bool { return true })
	return err
}

// signInElsewhere is a browser on another machine: it reports the address that it was sent to at last.
func signInElsewhere(ctx context.Context, ask oauth.SignInRequest) (string, error) {
	return followRedirects(ctx, ask.URL, func(r *http.Request) bool { return !strings.HasPrefix(r.URL.String(), ask.RedirectURL) })
}

func followRedirects(ctx context.Context, url string, on func(*http.Request) bool) (last string, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		last = next.URL.String()
		if len(via) > 20 {
			return errors.New("redirected in circles")
		}
		if !on(next) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := browser.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if page, _ := io.ReadAll(resp.Body); resp.StatusCode >= 400 {
		return "", fmt.Errorf("the browser shows %s: %.2000s", resp.Status, page)
	}
	return last, nil
}

// openSession opens a session by the authorizer.
func openSession(ctx context.Context, url string, a transports.Authorizer) (*session.Gate, func(), error) {
	client := httpclient.New()
	s, err := session.Dial(ctx, web.NewHTTP(web.Config{URL: url, Auth: a, Client: client}),
		session.Config{ClientName: "test", ClientVersion: "1"})
	if err != nil {
		return nil, nil, err
	}
	end := func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		_ = s.Close(ctx)
		<-s.Released()
		client.CloseIdleConnections()
	}
	if _, err := s.Handshake(ctx); err != nil {
		end()
		return nil, nil, err
	}
	if _, err := s.ListTools(ctx); err != nil {
		end()
		return nil, nil, err
	}
	return s.OpenGate(), end, nil
}

func startAuthServer(t *testing.T) *peers.AuthServer {
	return peers.StartAuthServer(t, peers.AuthSettings{})
}

// stopBefore lets a browser go anywhere but there.
func stopBefore(back string) func(*http.Request) bool {
	return func(r *http.Request) bool { return !strings.HasPrefix(r.URL.String(), back) }
}
