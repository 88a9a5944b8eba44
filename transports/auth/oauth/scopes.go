package oauth

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// offlineAccess is the scope of OpenID Connect that asks for a refresh token.
const offlineAccess = "offline_access"

// requestedScopes returns the scopes of an authorization request, in the order of their origins, each once.
//
// 2026-07-28, Scope Selection Strategy: "1. Use scope parameter from the initial WWW-Authenticate header in the 401 response, if
// provided. 2. If scope is not available, use all scopes defined in scopes_supported from the Protected Resource Metadata
// document, omitting the scope parameter if scopes_supported is undefined." Configured scopes replace both.
//
// Step-Up Authorization Flow: "computing the union of the client's previously requested scope set and the scopes from the current
// challenge": before has the scopes that were requested earlier at the same authorization server.
func requestedScopes(configured []string, challenge *messages.Challenge, p *authTarget, before []string) []string {
	var base []string
	switch {
	case len(configured) > 0:
		base = configured
		// This is a step-up: a scope that the server demands must not be left out.
		if challenge != nil && len(before) > 0 {
			base = unionScopes(base, scopesOf(challenge.Scope))
		}
	case challenge != nil && challenge.Scope != "":
		base = scopesOf(challenge.Scope)
	default:
		base = p.scopes
	}
	return unionScopes(before, base)
}

// withOffline adds offline_access if the authorization server supports it, because without a refresh token the person would have
// to sign in again at the end of each access token.
//
// 2026-07-28, Refresh Tokens: clients "MAY add offline_access to the scope parameter of the authorization and token
// requests when the Authorization Server metadata contains it in scopes_supported".
func withOffline(scopes []string, p *authTarget) []string {
	// One place is kept free, so that the bound cannot cut this scope off.
	if slices.Contains(p.server.ScopesSupported, offlineAccess) {
		return unionScopes(scopes[:min(len(scopes), maxScopes-1)], []string{offlineAccess})
	}
	return scopes
}

// maxScopes bounds the scopes of one request, of an answer and of a record. Scopes beyond are left out: a server that has more
// asks for those that it needs by a challenge.
const maxScopes = 300

// maxScope bounds the length of one scope, in bytes.
const maxScope = 500

// unionScopes joins scopes in the order of first appearance, at most maxScopes, without words that RFC 6749, 3.3, does not allow.
func unionScopes(sets ...[]string) []string {
	var all []string
	have := map[string]bool{}
	for _, set := range sets {
		for _, s := range set {
			if len(all) == maxScopes {
				return all
			}
			if !have[s] && usableScope(s) {
				have[s] = true
				all = append(all, s)
			}
		}
	}
	return all
}

// usableScope reports whether s is a scope-token = 1*( %x21 / %x23-5B / %x5D-7E ).
func usableScope(s string) bool {
	return s != "" && len(s) <= maxScope && isPrintable(s) && !strings.ContainsAny(s, "\"\\")
}

// scopesOf returns the scopes in a text of a server.
func scopesOf(text string) []string { return unionScopes(strings.Fields(text)) }

// missingScopes returns the scopes of want that are not in have.
func missingScopes(want, have []string) []string {
	present := make(map[string]bool, len(have))
	for _, s := range have {
		present[s] = true
	}
	var missing []string
	for _, s := range want {
		if !present[s] {
			missing = append(missing, s)
		}
	}
	return missing
}
