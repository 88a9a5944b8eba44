package credentials

import (
	"context"
	"crypto/tls"
	"os"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/kinds"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// newAuthorizer makes the Authorizer of a spec's auth; nil if the requests carry none. The error is about the configuration or
// the store, and fails the attempt. It may read files, so it is called outside of actors.
func (k *Set) newAuthorizer(name string, spec *messages.Spec) (transports.Authorizer, error) {
	a := spec.Auth
	switch spec.AuthKind() {
	case messages.AuthNone:
		return nil, nil
	case messages.AuthAPIKey:
		if a.HeaderName == "" {
			return auth.Bearer(k.valueSource(spec, a)), nil
		}
		return auth.APIKey(a.HeaderName, k.valueSource(spec, a)), nil
	case messages.AuthBearer:
		return auth.Bearer(k.valueSource(spec, a)), nil
	case messages.AuthTokenFile:
		return auth.TokenFile(a.TokenPath), nil
	// A helper prints the headers; package auth runs it again when the server answers 401.
	case messages.AuthHelper:
		return auth.Helper(auth.HelperConfig{Program: k.helperCommand(spec, a), Limit: time.Duration(a.Timeout)}), nil
	// OAuth is the default of a remote server. Without an explicit auth it is lazy: the store is not opened for servers that
	// never ask for a sign-in.
	case messages.AuthOAuth:
		if a == nil || a.Type == "" {
			if IsSentInClear(*spec) {
				return nil, nil
			}
			return &lazySignIn{owner: k, name: name, spec: *spec}, nil
		}
		fallthrough
	case messages.AuthClientCredentials, messages.AuthTokenExchange:
		made, err := k.newOAuth(name, spec)
		if err != nil {
			// A nil *Authorizer in the interface would not be nil.
			return nil, err
		}
		return made, nil
	}
	return nil, &transports.Error{Class: messages.ClassConfig, Text: "its auth has an unknown type"}
}

// valueSource returns where the value of auth comes from. Package config has checked that exactly one of the keys is set.
func (k *Set) valueSource(spec *messages.Spec, a *messages.Auth) auth.Source {
	switch {
	case a.APIKey != "":
		return auth.Text(a.APIKey)
	case a.Token != "":
		return auth.Text(a.Token)
	case a.FromEnv != "":
		return auth.EnvOf(a.FromEnv, k.LookupEnv)
	case a.TokenPath != "":
		return auth.File(a.TokenPath)
	}
	// No key with a value is left, so the value comes from a command.
	return auth.Command(k.helperCommand(spec, a), time.Duration(a.Timeout))
}

// helperCommand returns the command of auth. It runs in the server's directory with the environment of a child; the server's own
// env is not given to it, because its author decided about the server only.
func (k *Set) helperCommand(spec *messages.Spec, a *messages.Auth) stdio.Config {
	p := stdio.Config{Command: a.Command, Args: a.Args}
	// A command without arguments is a line for the shell, as in the files of other programs.
	if a.Args == nil {
		p = auth.ShellCommand(a.Command)
	}
	p.Env, _ = stdio.ChildEnv(kinds.ParentEnv(k.SearchPath), a.Env, k.InheritEnv)
	p.Guard, p.Terminal, p.Dir = k.Guard, asksOnTerminal(spec.Scope), spec.Cwd
	return p
}

// asksOnTerminal reports whether the helper of a spec keeps the controlling terminal, so that it can ask for a passphrase
// (gpg, pass). Only helpers that the person or the organisation configured may: a program with the terminal can type into it,
// and a project file may come from an unknown author.
func asksOnTerminal(s messages.Scope) bool {
	return s == messages.ScopeUser || s == messages.ScopeManaged || s == messages.ScopeDynamic
}

// newOAuth makes an Authorizer that gets its tokens from an authorization server. It reads the client key's file; the TLS files
// are read with each connection, so that a renewed certificate counts.
func (k *Set) newOAuth(name string, spec *messages.Spec) (*oauth.Authorizer, error) {
	// The tokens live in the store that all processes of the user share, and so do the locks for their refresh.
	store, locks, err := k.openStore()
	if err != nil {
		return nil, err
	}
	a := spec.Auth
	if a == nil {
		a = &messages.Auth{}
	}
	cfg := oauth.Config{
		Server: name, URL: httpURL(spec.URL), Store: store, Locks: locks,
		ClientID: a.ClientID, ClientSecret: a.ClientSecret, Issuer: a.Issuer, ClientMetadataURL: a.ClientMetadataURL,
		ClientName: k.ClientName, AuthURL: a.AuthURL, TokenURL: a.TokenURL, Resource: a.Resource, Scopes: a.Scopes,
		RedirectURL: a.RedirectURL, CallbackPort: a.CallbackPort, AllowHTTP: spec.AllowPlainHTTP,
	}
	// The server's own metadata is fetched over the connection that its spec describes; authorization servers are verified as usual.
	if t := spec.TLS; t != nil {
		cfg.TLS = func() (*tls.Config, error) {
			made, _, err := httpclient.LoadTLS(*t)
			return made, err
		}
	}
	if a.ClientKeyFile != "" {
		text, err := os.ReadFile(a.ClientKeyFile)
		if err != nil {
			return nil, &transports.Error{Class: messages.ClassConfig, Err: err,
				Text: "the file of the client key cannot be read: " + messages.Line(err.Error(), 200)}
		}
		// The key authenticates this client to the authorization server (private_key_jwt), in the place of a secret.
		if cfg.Key, err = oauth.ParseKey(text, a.ClientKeyAlgorithm, a.ClientKeyID); err != nil {
			return nil, err
		}
	}
	switch a.Type {
	case messages.AuthClientCredentials:
		cfg.Grant = oauth.ClientCredentials{}
	case messages.AuthTokenExchange:
		from := k.valueSource(spec, a)
		cfg.Grant = oauth.TokenExchange{SubjectType: a.SubjectTokenType, Audience: a.Audience,
			Subject: func(ctx context.Context) (string, error) { return from.Value(ctx) }}
	}
	return oauth.New(cfg)
}

// httpURL returns a websocket's URL with the scheme of HTTP: the resource identifier of an authorization (RFC 8707) is that of
// the HTTP resource.
func httpURL(raw string) string {
	if rest, ok := strings.CutPrefix(raw, "ws://"); ok {
		return "http://" + rest
	}
	if rest, ok := strings.CutPrefix(raw, "wss://"); ok {
		return "https://" + rest
	}
	return raw
}

// DescribePlace describes the place of credentials that the configuration names. The helper's environment is left out: it may hold
// secrets.
func (k *Set) DescribePlace(spec *messages.Spec) string {
	a := spec.Auth
	switch spec.AuthKind() {
	case messages.AuthNone:
		return "the configured headers"
	case messages.AuthHelper:
		return auth.Command(k.helperCommand(spec, &messages.Auth{Command: a.Command, Args: a.Args}), 0).Describe()
	}
	return k.valueSource(spec, a).Describe()
}
