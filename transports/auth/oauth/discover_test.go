package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// the paths of metadata documents
const (
	prmPath = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
	prmRoot = "https://mcp.example.com/.well-known/oauth-protected-resource"
	asDoc   = issuer + "/.well-known/oauth-authorization-server"
)

func resource(name string, servers ...string) map[string]any {
	return map[string]any{"resource": name, "authorization_servers": servers}
}

// TestWhereMetadataIsLookedFor holds the order of the specification, and where it ends.
func TestWhereMetadataIsLookedFor(t *testing.T) {
	const tenant = issuer + "/tenant1"
	down := errors.New("down")
	for _, c := range []struct {
		name      string
		challenge string
		docs      map[string]any
		asked     []string
		class     messages.Class // of the error
		resource  string
		token     string // the token endpoint
	}{
		{
			name: "the document that the challenge names", challenge: "https://mcp.example.com/meta",
			docs:  map[string]any{"https://mcp.example.com/meta": resource(mcpURL, issuer), asDoc: serverMetadata(nil)},
			asked: []string{"https://mcp.example.com/meta", asDoc}, resource: mcpURL, token: issuer + "/token",
		}, {
			name:  "the path of the endpoint",
			docs:  map[string]any{prmPath: resource(mcpURL, issuer), asDoc: serverMetadata(nil)},
			asked: []string{prmPath, asDoc}, resource: mcpURL, token: issuer + "/token",
		}, {
			name:  "the root, which speaks for the host",
			docs:  map[string]any{prmRoot: resource("https://mcp.example.com", issuer), asDoc: serverMetadata(nil)},
			asked: []string{prmPath, prmRoot, asDoc}, resource: "https://mcp.example.com", token: issuer + "/token",
		}, {
			name:  "the root, with a slash, in capitals, with the port",
			docs:  map[string]any{prmRoot: resource("https://MCP.example.com:443/", issuer), asDoc: serverMetadata(nil)},
			asked: []string{prmPath, prmRoot, asDoc}, resource: "https://MCP.example.com:443/", token: issuer + "/token",
		}, {
			name: "a named document that is not there", challenge: "https://mcp.example.com/gone",
			docs:  map[string]any{prmPath: resource(mcpURL, issuer), asDoc: serverMetadata(nil)},
			asked: []string{"https://mcp.example.com/gone", prmPath, asDoc}, resource: mcpURL, token: issuer + "/token",
		}, {
			name: "a site that answers everything with its page",
			docs: map[string]any{prmPath: func(w http.ResponseWriter, _ *http.Request) { write(w, 200, "<html>") },
				prmRoot: resource("https://mcp.example.com", issuer), asDoc: serverMetadata(nil)},
			asked: []string{prmPath, prmRoot, asDoc}, resource: "https://mcp.example.com", token: issuer + "/token",
		}, {
			// RFC 9728, 3.3: "the data contained in the response MUST NOT be used." No other place is tried.
			name: "another resource", docs: map[string]any{prmPath: resource("https://evil.example.com/mcp", issuer)},
			asked: []string{prmPath}, class: messages.ClassProtocol,
		}, {
			name: "a path of the host speaks for the whole host", challenge: "https://mcp.example.com/mcp/meta",
			docs:  map[string]any{"https://mcp.example.com/mcp/meta": resource("https://mcp.example.com", issuer)},
			asked: []string{"https://mcp.example.com/mcp/meta"}, class: messages.ClassProtocol,
		}, {
			name:  "a path that only begins like ours",
			docs:  map[string]any{prmPath: resource("https://mcp.example.com/mc", issuer)},
			asked: []string{prmPath}, class: messages.ClassProtocol,
		}, {
			name: "no authorization server", docs: map[string]any{prmPath: resource(mcpURL)},
			asked: []string{prmPath}, class: messages.ClassProtocol,
		}, {
			name: "a server that cannot answer is not a server without metadata", docs: map[string]any{prmPath: 503},
			asked: []string{prmPath}, class: messages.ClassNetwork,
		}, {
			name: "no connection", docs: map[string]any{prmPath: down}, asked: []string{prmPath}, class: messages.ClassNetwork,
		}, {
			name: "an issuer with a path: three places in their order",
			docs: map[string]any{prmPath: resource(mcpURL, tenant), tenant + "/.well-known/openid-configuration": serverMetadata(
				map[string]any{"issuer": tenant})},
			asked: []string{prmPath, issuer + "/.well-known/oauth-authorization-server/tenant1",
				issuer + "/.well-known/openid-configuration/tenant1", tenant + "/.well-known/openid-configuration"},
			resource: mcpURL, token: issuer + "/token",
		}, {
			name: "an issuer without a path: OpenID after OAuth",
			docs: map[string]any{prmPath: resource(mcpURL, issuer),
				issuer + "/.well-known/openid-configuration": serverMetadata(nil)},
			asked:    []string{prmPath, asDoc, issuer + "/.well-known/openid-configuration"},
			resource: mcpURL, token: issuer + "/token",
		}, {
			// RFC 8414, 3.3.
			name: "another issuer's metadata", docs: map[string]any{prmPath: resource(mcpURL, issuer),
				asDoc: serverMetadata(map[string]any{"issuer": "https://evil.example.com"})},
			asked: []string{prmPath, asDoc}, class: messages.ClassProtocol,
		}, {
			name: "the slash of an empty path", docs: map[string]any{prmPath: resource(mcpURL, issuer+"/"), asDoc: serverMetadata(nil)},
			asked: []string{prmPath, asDoc}, resource: mcpURL, token: issuer + "/token",
		}, {
			name: "an issuer over http", docs: map[string]any{prmPath: resource(mcpURL, "http://as.example.com")},
			asked: []string{prmPath}, class: messages.ClassDenied,
		}, {
			name: "an endpoint over http", docs: map[string]any{prmPath: resource(mcpURL, issuer),
				asDoc: serverMetadata(map[string]any{"token_endpoint": "http://as.example.com/token"})},
			asked: []string{prmPath, asDoc}, class: messages.ClassDenied,
		}, {
			name: "an endpoint that is a script", docs: map[string]any{prmPath: resource(mcpURL, issuer),
				asDoc: serverMetadata(map[string]any{"authorization_endpoint": "javascript:alert(1)"})},
			asked: []string{prmPath, asDoc}, class: messages.ClassDenied,
		}, {
			name: "an authorization server without metadata", docs: map[string]any{prmPath: resource(mcpURL, issuer)},
			asked: []string{prmPath, asDoc, issuer + "/.well-known/openid-configuration"}, class: messages.ClassProtocol,
		}, {
			name: "2025-03-26: metadata at the server's origin", docs: map[string]any{
				"https://mcp.example.com/.well-known/oauth-authorization-server": serverMetadata(map[string]any{
					"issuer": "https://mcp.example.com", "token_endpoint": "https://mcp.example.com/oauth/token"})},
			asked:    []string{prmPath, prmRoot, "https://mcp.example.com/.well-known/oauth-authorization-server"},
			resource: mcpURL, token: "https://mcp.example.com/oauth/token",
		}, {
			name: "2025-03-26: no metadata at all",
			asked: []string{prmPath, prmRoot, "https://mcp.example.com/.well-known/oauth-authorization-server",
				"https://mcp.example.com/.well-known/openid-configuration"},
			resource: mcpURL, token: "https://mcp.example.com/token",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			if w.docs = c.docs; w.docs == nil {
				w.docs = map[string]any{}
			}
			a := make1(t, config(w))
			var challenge *messages.Challenge
			if c.challenge != "" {
				challenge = &messages.Challenge{ResourceMetadata: c.challenge}
			}
			p, err := a.discoverTarget(t.Context(), challenge, nil)
			for i, asked := range w.asked {
				w.asked[i] = strings.TrimPrefix(asked, "GET ")
			}
			if !slices.Equal(w.asked, c.asked) {
				t.Errorf("asked %q, want %q", w.asked, c.asked)
			}
			if c.class != "" {
				wantClass(t, err, c.class)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.resource != c.resource || p.server.TokenEndpoint != c.token {
				t.Errorf("resource %q, token endpoint %q", p.resource, p.server.TokenEndpoint)
			}
		})
	}
}

// TestKnownIssuerFirst: of several authorization servers, the one that credentials exist for.
func TestKnownIssuerFirst(t *testing.T) {
	w := newWorld()
	w.docs[prmPath] = resource(mcpURL, "https://other.example.com", issuer)
	p, err := make1(t, config(w)).discoverTarget(t.Context(), nil, []string{issuer})
	if err != nil || p.issuer != issuer {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestConfiguredResource: who names the resource accepts the document about it, and no other.
func TestConfiguredResource(t *testing.T) {
	for resource1, ok := range map[string]bool{"http://mcp.example.com/mcp": true, "https://evil.example.com": false} {
		w := newWorld()
		w.docs[prmPath] = resource(resource1, issuer)
		cfg := config(w)
		cfg.Resource = "http://mcp.example.com/mcp"
		p, err := make1(t, cfg).discoverTarget(t.Context(), nil, nil)
		if (err == nil) != ok || ok && p.resource != cfg.Resource {
			t.Errorf("%s: %+v, %v", resource1, p, err)
		}
	}
}

// TestConfiguredEndpoints: nothing is discovered.
func TestConfiguredEndpoints(t *testing.T) {
	w := newWorld()
	cfg := config(w)
	cfg.AuthURL, cfg.TokenURL = "https://login.example.com/authorize?tenant=1", issuer+"/token"
	cfg.ClientID, cfg.Scopes = "us", []string{"a", "b"}
	a := make1(t, cfg)
	status, err := a.Login(t.Context(), prompt(func(ctx context.Context, ask SignInRequest) (string, error) {
		u, _ := url.Parse(ask.URL)
		if q := u.Query(); q.Get("tenant") != "1" || q.Get("client_id") != "us" || q.Get("scope") != "a b" ||
			q.Get("resource") != mcpURL || q.Get("code_challenge_method") != "S256" {
			t.Errorf("the browser is sent to %s", ask.URL)
		}
		return signInPerson(map[string]string{"iss": ""})(ctx, ask)
	}))
	if err != nil || !status.SignedIn || status.Client != kindConfigured {
		t.Errorf("%+v, %v", status, err)
	}
	if !slices.Equal(w.asked, []string{"POST " + issuer + "/token"}) {
		t.Errorf("asked %q", w.asked)
	}
}

// TestDocumentBounds: what a metadata document may not do.
func TestDocumentBounds(t *testing.T) {
	hop := func(to string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	for name, c := range map[string]struct {
		docs map[string]any
		ok   bool
	}{
		"too large": {docs: map[string]any{prmPath: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"resource":"`+strings.Repeat("x", fetchSize)+`"}`)
		}}},
		"no JSON": {docs: map[string]any{prmPath: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"resource":`)
		}}},
		"one redirect": {ok: true, docs: map[string]any{prmPath: hop("https://meta.example.com/1"),
			"https://meta.example.com/1": resource(mcpURL, issuer), asDoc: serverMetadata(nil)}},
		"to http":         {docs: map[string]any{prmPath: hop("http://meta.example.com/1")}},
		"to this machine": {docs: map[string]any{prmPath: hop("http://127.0.0.1/1")}},
		"in circles":      {docs: map[string]any{prmPath: hop(prmPath)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.docs = c.docs
			if _, err := make1(t, config(w)).discoverTarget(t.Context(), nil, nil); (err == nil) != c.ok {
				t.Error(err)
			}
			if len(w.asked) > 2+fetchHops {
				t.Errorf("asked %q", w.asked)
			}
		})
	}
}
