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

// metadataURL is the client id of a client that describes itself at an address. The suite expects this one and does not fetch it.
const metadataURL = "https://conformance-test.local/client-metadata.json"

// newAuthorizer makes the credentials of a server from the input that the scenario gave, as a configuration would.
func (c *client) newAuthorizer(name string, spec supervisor.Spec) (transports.Authorizer, error) {
	if c.auth != nil {
		return c.auth, nil
	}
	cfg := oauth.Config{
		Server: name, URL: spec.URL, Store: auth.NewMemory(), Locks: auth.NewLocks(""),
		ClientID: c.input.ClientID, ClientSecret: c.input.ClientSecret, Issuer: c.input.Issuer,
		ClientMetadataURL: metadataURL, Interactive: followSignIn, Confirm: confirmAlways,
	}
	var err error
	if c.input.PrivateKey != "" {
		if cfg.Key, err = oauth.ParseKey([]byte(c.input.PrivateKey), c.input.Algorithm, ""); err != nil {
			return nil, err
		}
	}
	switch {
	case strings.HasPrefix(c.scenario, "auth/client-credentials"):
		cfg.Grant = oauth.ClientCredentials{}
	case c.input.IDPIDToken != "":
		cfg.Grant = oauth.Enterprise{
			Issuer: c.input.IDPIssuer, TokenURL: c.input.IDPTokenURL, ClientID: c.input.IDPClientID,
			IDToken: fixedSource(c.input.IDPIDToken),
		}
	case c.input.Assertion != "":
		cfg.Grant = oauth.JWTBearer{Assertion: fixedSource(c.input.Assertion)}
	}
	a, err := oauth.New(cfg)
	if err != nil {
		return nil, err // not c.auth: a nil *Authorizer in an interface is not nil
	}
	c.auth = a
	return a, nil
}

func fixedSource(s string) oauth.Source {
	return func(context.Context) (string, error) { return s, nil }
}

// confirmAlways is a person who knows the suite's authorization server.
func confirmAlways(_ context.Context, c oauth.Confirmation) (bool, error) {
	fmt.Println("agreed that", c.What, "goes to", c.TokenURL)
	return true, nil
}

// followSignIn is a person in a browser who agrees to everything at once: the suite's authorization server redirects the first
// request.
func followSignIn(ctx context.Context, ask oauth.SignInRequest) (string, error) {
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
	target, err := resp.Location()
	if err != nil {
		return "", fmt.Errorf("the authorization server answers %s and does not redirect: %w", resp.Status, err)
	}
	return target.String(), nil
}
