package messages

import (
	"maps"
	"reflect"
	"slices"
)

// The types of Auth.
const (
	// AuthNone sends nothing, also after a sign-in.
	AuthNone = "none"
	// AuthAPIKey sends a value in a header.
	AuthAPIKey = "api_key"
	// AuthBearer sends a value as "Authorization: Bearer …".
	AuthBearer = "bearer"
	// AuthTokenFile is AuthBearer with the content of a file, which is read again whenever it changes.
	AuthTokenFile = "token_file"
	// AuthHelper sends the headers that a command prints as a JSON object. It runs again when the server answers 401.
	AuthHelper = "helper"
	// AuthOAuth is a person's sign-in in a browser: authorization code with PKCE.
	AuthOAuth = "oauth"
	// AuthClientCredentials is a program's own sign-in, with a secret or a key (private_key_jwt).
	AuthClientCredentials = "client_credentials"
	// AuthTokenExchange exchanges a token that we have for one that the server takes (RFC 8693).
	AuthTokenExchange = "token_exchange"
)

// AuthTypes lists every type, in the order in which documents name them.
var AuthTypes = []string{
	AuthNone, AuthAPIKey, AuthBearer, AuthTokenFile, AuthHelper, AuthOAuth, AuthClientCredentials, AuthTokenExchange,
}

// Auth says how the requests to a remote server are authorised. Credentials go to the origin of the server's URL and
// nowhere else, and over plain http to another machine only if the spec has AllowPlainHTTP.
type Auth struct {
	// Type is one of AuthTypes. An Auth with a credential and no Type cannot work; one with neither is AuthOAuth.
	Type string `json:"type,omitempty"`

	// HeaderName is the header of an API key; "Authorization" if empty, then the value is "Bearer " and the key.
	HeaderName string `json:"headerName,omitempty"`

	// The value of an API key, a bearer token or the subject of a token exchange comes from one of these places: APIKey or
	// Token as it is written, a variable of the manager's environment (FromEnv), a file (TokenPath), or what a command
	// prints (Command).
	APIKey    string `json:"apiKey,omitempty"`
	Token     string `json:"token,omitempty"`
	FromEnv   string `json:"fromEnv,omitempty"`
	TokenPath string `json:"tokenPath,omitempty"`
	// Command is a line for the system's shell if Args is nil, else a program with its arguments. It runs in the manager's
	// directory with the environment of a child (Env on top) and is ended after Timeout; 0 means 10 s.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitzero"` // omitzero: an empty list makes a program of the line
	Env     map[string]string `json:"env,omitempty"`
	Timeout Duration          `json:"timeout,omitempty"`

	// AuthURL and TokenURL are the endpoints of an authorization server that publishes no metadata. Both empty: they are
	// discovered. AuthURL is for AuthOAuth alone.
	AuthURL  string `json:"authUrl,omitempty"`
	TokenURL string `json:"tokenUrl,omitempty"`
	// Issuer is the authorization server that ClientID is registered with; the first one that is used, if empty.
	Issuer string `json:"issuer,omitempty"`
	// ClientID is the client under which we are registered there, with ClientSecret or the private key in ClientKeyFile (PEM) if need
	// be.
	// Without it, ClientMetadataURL (an https URL where this client describes itself) or a dynamic registration is used.
	// ClientKeyID and ClientKeyAlgorithm (ES256, RS256, …) are those of the key; both may be empty.
	ClientID           string `json:"clientId,omitempty"`
	ClientSecret       string `json:"clientSecret,omitempty"`
	ClientKeyFile      string `json:"clientKeyFile,omitempty"`
	ClientKeyID        string `json:"clientKeyId,omitempty"`
	ClientKeyAlgorithm string `json:"clientKeyAlgorithm,omitempty"`
	ClientMetadataURL  string `json:"clientMetadataUrl,omitempty"`
	// Resource takes the place of the resource parameter that is discovered.
	Resource string `json:"resource,omitempty"`
	// Scopes are asked for in the place of what the server proposes.
	Scopes []string `json:"scopes,omitempty"`
	// RedirectURL is the address to which the authorization server sends the browser at the end, in the place of
	// http://127.0.0.1:PORT/callback; CallbackPort is that port, any free one if 0.
	RedirectURL  string `json:"redirectUrl,omitempty"`
	CallbackPort int    `json:"callbackPort,omitempty"`
	// SubjectTokenType and Audience belong to a token exchange: the kind of the token that we have (an access token, if
	// empty), and the server's name at the authorization server, where its resource does not do.
	SubjectTokenType string `json:"subjectTokenType,omitempty"`
	Audience         string `json:"audience,omitempty"`
}

// AuthKind returns the type of auth in force: that of the spec, or AuthOAuth for a remote server that names none and
// has no Authorization header of its own. A server that is not remote has AuthNone.
func (s Spec) AuthKind() string {
	if !s.Kind().Remote() {
		return AuthNone
	}
	if s.Auth != nil && s.Auth.Type != "" {
		return s.Auth.Type
	}
	for name := range s.Headers {
		if lowerASCII(name) == "authorization" {
			return AuthNone
		}
	}
	return AuthOAuth
}

// Local reports whether auth reads or runs something of the machine that the manager is on: a variable, a file, a
// command.
func (a *Auth) Local() bool {
	return a != nil && (a.FromEnv != "" || a.TokenPath != "" || a.Command != "" || a.ClientKeyFile != "")
}

// normalized returns a copy in which empty lists are nil, so that two that mean the same compare as equal.
func (a *Auth) normalized() *Auth {
	if a == nil {
		return nil
	}
	c := *a
	dropEmpty(reflect.ValueOf(&c).Elem())
	return &c
}

// redactedCopy returns a copy that is safe to show.
func (a *Auth) redactedCopy() *Auth {
	if a == nil {
		return nil
	}
	r := *a
	for _, secret := range []*string{&r.APIKey, &r.Token, &r.ClientSecret} {
		if *secret != "" {
			*secret = redaction
		}
	}
	for _, u := range []*string{&r.AuthURL, &r.TokenURL, &r.Issuer, &r.ClientMetadataURL, &r.Resource, &r.RedirectURL} {
		*u = RedactURL(*u)
	}
	r.Env = redactValues(r.Env)
	r.Command, r.Args = redactCommand(r.Command, r.Args)
	r.Scopes = slices.Clone(r.Scopes)
	return &r
}

// secretValues returns the values that redactedCopy hides.
func (a *Auth) secretValues() []string {
	if a == nil {
		return nil
	}
	all := []string{a.APIKey, a.Token, a.ClientSecret}
	all = slices.AppendSeq(all, maps.Values(a.Env))
	for _, u := range []string{a.AuthURL, a.TokenURL, a.Issuer, a.ClientMetadataURL, a.Resource, a.RedirectURL} {
		all = append(all, urlSecrets(u)...)
	}
	return append(all, commandSecrets(a.Command, a.Args)...)
}
