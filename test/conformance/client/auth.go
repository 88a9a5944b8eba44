package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// metadataURL is where this client would describe itself. The suite expects this address, and nobody reads it.
const metadataURL = "https://conformance-test.local/client-metadata.json"

// authorizer signs in as somebody would have configured it who was given what the scenario gave.
func (c *client) authorizer(name string, spec supervisor.Spec) (transports.Authorizer, error) {
	if c.auth != nil {
		return c.auth, nil
	}
	cfg := oauth.Config{
		Server: name, URL: spec.URL, Store: auth.NewMemory(), Locks: auth.NewLocks(""),
		ClientID: c.given.ClientID, ClientSecret: c.given.ClientSecret, Issuer: c.given.Issuer,
		ClientMetadataURL: metadataURL, Interactive: visit, Confirm: agree,
	}
	var err error
	if c.given.PrivateKey != "" {
		if cfg.Key, err = oauth.ParseKey([]byte(c.given.PrivateKey), c.given.Algorithm, ""); err != nil {
			return nil, err
		}
	}
	switch {
	case strings.HasPrefix(c.scenario, "auth/client-credentials"):
		cfg.Grant = oauth.ClientCredentials{}
	case c.given.IDPIDToken != "":
		cfg.Grant = oauth.Enterprise{
			Issuer: c.given.IDPIssuer, TokenURL: c.given.IDPTokenURL, ClientID: c.given.IDPClientID,
			IDToken: text(c.given.IDPIDToken),
		}
	case c.given.Assertion != "":
		cfg.Grant = oauth.JWTBearer{Assertion: text(c.given.Assertion)}
	}
	a, err := oauth.New(cfg)
	if err != nil {
		return nil, err // not c.auth: a nil *Authorizer in an interface is not nil
	}
	c.auth = a
	return a, nil
}

func text(s string) oauth.Source {
	return func(context.Context) (string, error) { return s, nil }
}

// agree is a person who knows the suite's authorization server.
func agree(_ context.Context, c oauth.Confirmation) (bool, error) {
	fmt.Println("agreed that", c.What, "goes to", c.TokenURL)
	return true, nil
}

// visit is a person in a browser who agrees to everything at once: the suite's authorization server redirects the first
// request.
func visit(ctx context.Context, ask oauth.Ask) (string, error) {
	fmt.Println("signing in at", ask.Issuer, "for", ask.Scopes)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, ask.URL, nil)
	if err != nil {
		return "", err
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return "", fmt.Errorf("the authorization server answers %s and does not redirect: %w", resp.Status, err)
	}
	return to.String(), nil
}
