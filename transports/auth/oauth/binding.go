package oauth

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Confirmation is the question to a person before a secret goes to a host that the server has named. It holds no secret. All its
// texts but Server and What come from strangers; they are printable ASCII.
type Confirmation struct {
	// Server is the server's id.
	Server string
	// Issuer is the authorization server that the server has named. Nothing has verified that it is the right one.
	Issuer string
	// TokenURL is the address that would get What.
	TokenURL string
	// What names the secret in words: "the client secret", "the answer of the sign-in".
	What string
	// Page is the page that the person would be sent to first, without its parameters; empty if there is none. Nothing proves
	// that it belongs to the owner of TokenURL.
	Page string
}

// Confirm asks a person whether a secret may be sent. true means yes; an error ends the sign-in. It must return when ctx ends.
type Confirm func(ctx context.Context, c Confirmation) (bool, error)

// sentSecrets names the secrets that a sign-in sends to the authorization server and that would be useful elsewhere, empty for
// none. A client assertion does not count, because its audience is one server.
func (a *Authorizer) sentSecrets() string {
	var all []string
	if what := a.cfg.Grant.sentSecret(); what != "" {
		all = append(all, what)
	}
	if a.cfg.ClientSecret != "" {
		all = append(all, "the client secret")
	}
	return strings.Join(all, " and ")
}

// confirmBinding makes sure that the authorization server which is about to get secrets was configured, or was confirmed by a
// person. It stores the person's answer before anything is sent.
//
// 2026-07-28, Authorization Server Binding: clients "MUST NOT assume that credentials valid for one authorization server will be
// accepted by another", and credentials are kept "keyed by the authorization server's issuer identifier".
func (a *Authorizer) confirmBinding(ctx context.Context, s *signInAttempt, known map[string]client) error {
	what := a.sentSecrets()
	// A client without a secret may go anywhere; configured endpoints were chosen by the person.
	if what == "" || a.cfg.Issuer != "" || a.cfg.TokenURL != "" || len(a.boundTo(known)) > 0 {
		return nil // checkBinding has compared them
	}
	p := s.target
	err := a.askConfirmation(ctx, s, Confirmation{Server: a.cfg.Server, Issuer: p.issuer, TokenURL: p.server.TokenEndpoint, What: what},
		"the server names the authorization server "+messages.Line(p.issuer, maxURL)+", which is not verified, and "+what+
			" would go there")
	if err != nil {
		return err
	}
	_, err = a.updateStored(ctx, func(r *storedSignIn) error { r.rememberClient(p.issuer, s.client); return nil })
	return err
}

// askConfirmation asks a person. The error says what to configure if there is no person to ask, or if the answer was no.
func (a *Authorizer) askConfirmation(ctx context.Context, s *signInAttempt, c Confirmation, reason string) error {
	fix := `if it is the right one, add "issuer": "` + messages.Line(c.Issuer, maxURL) + `" to the auth of this server, or run: ` +
		"mcpvisor login " + messages.Line(a.cfg.Server, 100)
	refused := func(text string) error {
		return &transports.Error{Class: messages.ClassUnauthorized, Text: text, Fix: fix}
	}
	if s.confirm == nil {
		return refused(reason)
	}
	// The person's prompt may take minutes; no lock but the sign-in's own is held meanwhile.
	switch ok, err := s.confirm(ctx, c); {
	case err != nil:
		return a.interruptedError(ctx, err)
	case !ok:
		return refused("the authorization server " + hostLabel(c.TokenURL) + " was not accepted, and nothing was sent to it")
	}
	return nil
}

// boundTo returns the issuers that the configured client id was used with, or may be used with, sorted.
func (a *Authorizer) boundTo(known map[string]client) []string {
	var all []string
	for _, issuer := range slices.Sorted(maps.Keys(known)) {
		if c := known[issuer]; c.Kind == kindConfigured && c.ID == a.cfg.ClientID {
			all = append(all, issuer)
		}
	}
	return all
}

// configuredClients returns the clients of a record that a sign-out keeps: the binding of configured credentials to their
// authorization server is no part of the sign-in, and losing it would let a server name another one.
func (r *storedSignIn) configuredClients() map[string]client {
	configured := map[string]client{}
	for issuer, c := range r.Clients {
		if c.Kind == kindConfigured {
			configured[issuer] = c
		}
	}
	return configured
}

// isForOtherServer reports whether the configuration names another authorization server than the record is from. No secret goes
// to the old one any more then.
func (a *Authorizer) isForOtherServer(r *storedSignIn) bool {
	switch {
	// Nothing has been issued yet.
	case r.TokenURL == "":
		return false
	case a.cfg.TokenURL != "":
		return r.TokenURL != a.cfg.TokenURL
	}
	return a.cfg.Issuer != "" && !sameIssuer(a.cfg.Issuer, r.Issuer)
}
