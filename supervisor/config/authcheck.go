package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// sourceKeys are the keys that say where a value comes from, clientKeys those that describe a client of an authorization
// server.
var (
	sourceKeys = []string{"apiKey", "token", "fromEnv", "tokenPath", "command", "args", "env", "timeout"}
	clientKeys = []string{
		"tokenUrl", "issuer", "clientId", "clientSecret", "clientKeyFile", "clientKeyId", "clientKeyAlgorithm",
		"clientMetadataUrl", "resource", "scopes",
	}
)

// authUses lists, by type of auth, the keys that count for it besides type. A type that has no row is unknown.
var authUses = map[string][]string{
	messages.AuthNone:              {},
	messages.AuthAPIKey:            slices.Concat(sourceKeys, []string{"headerName"}),
	messages.AuthBearer:            sourceKeys,
	messages.AuthTokenFile:         {"tokenPath"},
	messages.AuthHelper:            {"command", "args", "env", "timeout"},
	messages.AuthOAuth:             slices.Concat(clientKeys, []string{"authUrl", "redirectUrl", "callbackPort"}),
	messages.AuthClientCredentials: clientKeys,
	messages.AuthTokenExchange:     slices.Concat(clientKeys, sourceKeys, []string{"subjectTokenType", "audience"}),
}

// CheckAuth says what keeps auth from working with any server: the key, what is wrong and what to do. text is empty if it finds
// nothing. The result repeats no value of auth, except for a short unknown word in the place of a type. It is called with the
// values as written, in which a variable counts as a value, and again with the expanded ones.
func CheckAuth(a *messages.Auth) (key, text, fix string) {
	if a == nil {
		return "", "", ""
	}
	// More than one source of the value is a fault, because the file does not say which one wins.
	sources := 0
	for _, s := range []string{a.APIKey, a.Token, a.FromEnv, a.TokenPath, a.Command} {
		if s != "" {
			sources++
		}
	}
	needsValue := slices.Contains([]string{messages.AuthAPIKey, messages.AuthBearer, messages.AuthTokenExchange}, a.Type)
	switch {
	case a.Type == "":
		return "auth", "it has no type", "known are " + strings.Join(messages.AuthTypes, ", ")
	case authUses[a.Type] == nil:
		fix := "known are " + strings.Join(messages.AuthTypes, ", ")
		if near := nearestKey(a.Type, messages.AuthTypes); near != "" {
			fix = "did you mean " + near + "?"
		}
		return "auth.type", "unknown type " + quoteShort(messages.Line(a.Type, 40)), fix
	// A name with a space or a line break would break the request.
	case a.HeaderName != "" && !isToken(a.HeaderName):
		return "auth.headerName", "this cannot be the name of a header", `write "X-API-Key"`
	case needsValue && sources > 1:
		return "auth", "the value comes from several places", "keep one of apiKey, token, fromEnv, tokenPath and command"
	case a.Type == messages.AuthAPIKey && sources == 0:
		return "auth.apiKey", "api_key needs the key", `add "apiKey": "${NAME}", or fromEnv, tokenPath or command`
	case a.Type == messages.AuthBearer && sources == 0:
		return "auth.token", "bearer needs the token", `add "token": "${NAME}", or fromEnv, tokenPath or command`
	case a.Type == messages.AuthTokenExchange && sources == 0:
		return "auth", "token_exchange needs the token to exchange", "add fromEnv, tokenPath or command"
	case a.Type == messages.AuthTokenFile && a.TokenPath == "":
		return "auth.tokenPath", "token_file needs the file", `add "tokenPath": "…"`
	case a.Type == messages.AuthHelper && a.Command == "":
		return "auth.command", "helper needs the command that prints the headers", `add "command": ["program", "argument"]`
	case a.Type == messages.AuthClientCredentials && (a.ClientID == "" || a.ClientSecret == "" && a.ClientKeyFile == ""):
		return "auth", "client_credentials needs clientId, and clientSecret or clientKeyFile", "add them"
	case a.Type == messages.AuthTokenExchange && a.ClientID == "":
		return "auth", "token_exchange needs clientId", "add it"
	// A client proves its identity in one way; the authorization server decides which one it accepts.
	case a.ClientSecret != "" && a.ClientKeyFile != "":
		return "auth", "it has both clientSecret and clientKeyFile", "keep one of them"
	case a.ClientSecret != "" && a.ClientID == "", a.ClientKeyFile != "" && a.ClientID == "" && a.ClientMetadataURL == "":
		return "auth", "it has a secret or key of a client and no clientId", "add clientId"
	// Two endpoints replace discovery as a whole; one alone would mix what is written with what is discovered.
	case a.AuthURL != "" && a.TokenURL == "":
		return "auth.authUrl", "authUrl needs tokenUrl beside it", "add tokenUrl, or remove authUrl for discovery"
	case a.CallbackPort < 0 || a.CallbackPort > 65535:
		return "auth.callbackPort", "this is no port", "use 1 to 65535"
	}
	// The addresses come last, because they depend on no other key.
	return checkAuthURLs(a)
}

// checkAuthURLs checks that each URL of auth is an absolute one of http or https. A URL with a variable is skipped until the
// variable is expanded.
func checkAuthURLs(a *messages.Auth) (key, text, fix string) {
	for _, t := range authTexts {
		v := *t.fieldOf(a)
		if !t.url || v == "" || strings.Contains(v, "${") {
			continue
		}
		// http is accepted here: PlainCredentials and the transports decide whether a secret may go there.
		if u, err := url.Parse(v); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return "auth." + t.keys[0], "this is no https URL", "write https://host/path"
		}
	}
	return "", "", ""
}

// uselessAuth warns about keys that stand in the entry and have no effect on its type of auth.
func (r *reader) uselessAuth(e *Entry, a *messages.Auth) {
	uses := authUses[a.Type]
	if uses == nil {
		return
	}
	// The list has a fixed order, which the map of places has not.
	for _, key := range authNames {
		if at, written := e.positions["auth."+key]; written && key != "type" && !slices.Contains(uses, key) {
			r.addWarning(at, "auth."+key, "it has no effect on auth of type "+a.Type, "remove it")
		}
	}
}

// PlainCredentials returns the key of a spec whose secret would go to another machine without encryption: "auth", "url" or
// "headers.NAME". It is empty if there is none, or if the spec allows it by AllowPlainHTTP. Addresses of this machine count as
// safe.
func PlainCredentials(s messages.Spec) string {
	// An address that cannot be parsed is reported by checkRemote.
	u, err := url.Parse(s.URL)
	if s.AllowPlainHTTP || err != nil || u.Scheme != "http" && u.Scheme != "ws" || addresses.ThisMachine(u.Hostname()) {
		return ""
	}
	switch {
	case s.Auth != nil && s.Auth.Type != "" && s.Auth.Type != messages.AuthNone:
		return "auth"
	case u.User != nil:
		return "url"
	}
	// The name tells, because the value of a header may be any text.
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if isCredentialName(name) {
			return "headers." + name
		}
	}
	return ""
}

// isCredentialName reports whether the name of a header suggests that its value is a secret.
func isCredentialName(header string) bool {
	// The words are parts of names: X-Api-Key, Proxy-Authorization.
	h := strings.ToLower(header)
	return slices.ContainsFunc([]string{"auth", "cookie", "token", "secret", "key", "password", "credential"},
		func(word string) bool { return strings.Contains(h, word) })
}
