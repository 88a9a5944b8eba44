package oauth

import (
	"context"
	"crypto/rand"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// SignInRequest asks a person to sign in at URL. It holds no secret.
type SignInRequest struct {
	// Server is the server's id. Issuer is the authorization server, which will ask for the password.
	Server, Issuer string
	// URL is the address to open. It is valid for one sign-in.
	URL string
	// RedirectURL is the address that the browser is sent to at the end.
	RedirectURL string
	// Scopes are the rights that are requested.
	Scopes []string

	// state identifies the sign-in in its answer.
	state string
}

// Interactive takes a person to ask.URL and returns the address that the browser was redirected to: the whole address, its query,
// or the bare code. It must return when ctx ends.
type Interactive func(ctx context.Context, ask SignInRequest) (redirected string, err error)

// redirectHandler brings a person to the authorization server and the answer back.
type redirectHandler interface {
	// redirectURL returns the redirect URL for this sign-in. registered is the one of the last registration, empty for none:
	// returning it saves another registration.
	redirectURL(registered string) (string, error)
	// awaitAnswer asks the person and blocks until there is an answer, which it does not check.
	awaitAnswer(ctx context.Context, ask SignInRequest) (string, error)
}

// staticRedirect is the redirect URL of sign-ins without a listener: the person copies the address out of the browser.
const staticRedirect = "http://127.0.0.1:33418/callback"

// interactiveHandler makes a redirectHandler of an Interactive.
type interactiveHandler struct {
	url         string
	interactive Interactive
}

// redirectURL prefers the configured URL, then that of the last registration, which an authorization server may compare
// letter by letter.
func (m interactiveHandler) redirectURL(registered string) (string, error) {
	switch {
	case m.url != "":
		return m.url, nil
	case registered != "":
		return registered, nil
	}
	return staticRedirect, nil
}

func (m interactiveHandler) awaitAnswer(ctx context.Context, ask SignInRequest) (string, error) {
	return m.interactive(ctx, ask)
}

// AuthorizationCode is the grant for people: authorization code with PKCE, in a browser.
type AuthorizationCode struct{}

func (AuthorizationCode) checkConfig(Config) string { return "" }
func (AuthorizationCode) needsPerson() bool         { return true }
func (AuthorizationCode) sentSecret() string        { return "" }
func (AuthorizationCode) endpointURLs() []string    { return nil }

// obtainToken sends a person to the authorization server's page, checks the answer, and exchanges its code.
func (AuthorizationCode) obtainToken(ctx context.Context, a *Authorizer, s *signInAttempt) (*oauth2.Token, error) {
	p := s.target
	switch {
	// 2026-07-28, Authorization Code Protection: "If code_challenge_methods_supported is absent, the authorization server
	// does not support PKCE and MCP clients MUST refuse to proceed." "MCP clients MUST use the S256 code challenge method
	// when technically capable".
	case !slices.Contains(p.server.CodeChallengeMethodsSupported, "S256"):
		return nil, &transports.Error{Class: messages.ClassProtocol,
			Text: "the authorization server " + hostLabel(p.server.TokenEndpoint) + " does not support PKCE with S256",
			Fix:  "nobody was asked to sign in: it would not be safe"}
	case p.server.AuthorizationEndpoint == "":
		return nil, &transports.Error{Class: messages.ClassProtocol,
			Text: "nothing says where to sign in for " + a.label, Fix: "set authUrl if you know it"}
	}
	if err := a.confirmAnswer(ctx, s); err != nil {
		return nil, err
	}
	// Both are made for this sign-in alone: the verifier binds the code to this process, the state the answer to this request.
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	// 2026-07-28, Resource Parameter Implementation: the resource parameter "MUST be included in both authorization
	// requests and token requests."
	params := url.Values{
		"response_type": {"code"}, "client_id": {s.client.ID}, "redirect_uri": {s.redirect}, "state": {state},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}, "code_challenge_method": {"S256"},
		"resource": {p.resource},
	}
	if len(s.scopes) > 0 {
		params.Set("scope", strings.Join(s.scopes, " "))
	}
	if slices.Contains(s.scopes, offlineAccess) {
		// OpenID Connect Core, 11: with offline_access "a prompt parameter value of consent MUST be used unless other
		// conditions for processing the request permitting offline access … are in place".
		params.Set("prompt", "consent")
	}
	at, err := authorizationURL(p.server.AuthorizationEndpoint, params)
	if err != nil {
		return nil, badEndpoint(p.server.AuthorizationEndpoint, refusalError("is not a usable URL"))
	}
	// Everything in it may be shown; the verifier stays here.
	ask := SignInRequest{
		Server: a.cfg.Server, Issuer: p.server.Issuer, URL: at, RedirectURL: s.redirect, Scopes: s.scopes, state: state,
	}
	answer, err := s.handler.awaitAnswer(ctx, ask)
	if err != nil {
		return nil, a.interruptedError(ctx, err)
	}
	code, err := codeFromResponse(answer, state, p)
	if err != nil {
		return nil, err
	}
	return a.requestToken(ctx, s.client, p.server.TokenEndpoint, p.issuer, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {s.redirect},
		"code_verifier": {verifier}, "resource": {p.resource},
	})
}

// confirmAnswer asks the person whether the answer of one host's page may go to another host, if the authorization server does
// not promise to name itself in the answer. Otherwise metadata could name the page of another authorization server, and have the
// person's code from there sent to its own token endpoint.
//
// RFC 9700, 2.1: "clients MUST prevent mix-up attacks … when they interact with more than one authorization server".
func (a *Authorizer) confirmAnswer(ctx context.Context, s *signInAttempt) error {
	doc := s.target.server
	page, err := url.Parse(doc.AuthorizationEndpoint)
	if err != nil {
		return badEndpoint(doc.AuthorizationEndpoint, refusalError("is not a usable URL"))
	}
	to, err := url.Parse(doc.TokenEndpoint)
	if err != nil {
		return badEndpoint(doc.TokenEndpoint, refusalError("is not a usable URL"))
	}
	if a.cfg.TokenURL != "" || a.cfg.Issuer != "" || doc.AuthorizationResponseIssParameterSupported || sameOrigin(page, to) {
		return nil
	}
	// The parameters are not shown, because a stranger has written them.
	page.RawQuery = ""
	return a.askConfirmation(ctx, s, Confirmation{Server: a.cfg.Server, Issuer: s.target.issuer, TokenURL: doc.TokenEndpoint,
		What: "the answer of the sign-in", Page: page.String()},
		"the answer of the page of "+hostLabel(page.String())+" would go to another host, "+hostLabel(doc.TokenEndpoint)+
			", which "+messages.Line(s.target.issuer, maxURL)+" names")
}

// interruptedError is the error for a sign-in that ended without an answer. A timeout asks for a person, not for a retry.
func (a *Authorizer) interruptedError(ctx context.Context, err error) error {
	if own := (*transports.Error)(nil); asError(err, &own) {
		return own
	}
	if ctx.Err() != nil {
		return &transports.Error{Class: messages.ClassUnauthorized, Text: "nobody signed in to " + a.label + " in time",
			Fix: a.loginCommand(), Err: ctx.Err()}
	}
	return &transports.Error{Class: messages.ClassUnauthorized, Text: "the sign-in to " + a.label + " was not finished",
		Fix: a.loginCommand()}
}

// codeFromResponse takes the code out of an authorization response, after the checks that the specification asks for.
//
// 2026-07-28, security considerations: clients "discard any results that do not include or have a mismatch with the original
// state." Authorization Response Validation: "On receiving the authorization response, MCP clients MUST apply the validation in
// RFC9207 Section 2.4 before transmitting the authorization code to any token endpoint": with
// authorization_response_iss_parameter_supported, a response without iss is rejected; an iss that is present is compared,
// advertised or not, by "simple string comparison". "This validation applies equally to error responses".
//
// A bare code, as some authorization servers show it to be copied, carries neither state nor iss. It is accepted where iss is not
// required, because PKCE binds it to this sign-in.
func codeFromResponse(answer, state string, p *authTarget) (string, error) {
	fail := func(text string) (string, error) {
		return "", &transports.Error{Class: messages.ClassUnauthorized, Text: text, Fix: "sign in again"}
	}
	answer = strings.TrimSpace(answer)
	if answer == "" {
		return fail("there was no answer to the sign-in")
	}
	// A person may paste the whole address, its query, or the code alone.
	q, full := responseQuery(answer)
	if !full {
		// Some pages show the code with the state behind a "#".
		code, said, has := strings.Cut(answer, "#")
		switch {
		case has && said != state:
			return fail("the code belongs to another sign-in")
		case p.server.AuthorizationResponseIssParameterSupported:
			return fail("a bare code does not say which authorization server it is from; " +
				"paste the whole address that the browser was sent to")
		case strings.ContainsAny(code, " \t\r\n"):
			return fail("that is neither an address nor a code")
		}
		return code, nil
	}
	for _, name := range []string{"state", "iss", "code", "error"} {
		if len(q[name]) > 1 { // RFC 6749, 3.1: "parameters MUST NOT be included more than once."
			return fail("the authorization response is ambiguous")
		}
	}
	// The state is checked before anything of the answer is used, its error included.
	if q.Get("state") != state {
		return fail("the authorization response belongs to another sign-in")
	}
	// An answer of another authorization server, which shares the client's redirect URL, must not get its code redeemed here.
	switch iss := q.Get("iss"); {
	case q.Has("iss") && p.server.Issuer != "" && iss != p.server.Issuer:
		return fail("the authorization response is from another authorization server than the one that was asked")
	case !q.Has("iss") && p.server.AuthorizationResponseIssParameterSupported:
		return fail("the authorization response does not say which authorization server it is from")
	}
	// Only now: an error of another server's page must not be shown as this one's.
	if q.Has("error") {
		text := "the authorization server says: " + messages.Line(q.Get("error"), 60)
		if said := messages.Line(q.Get("error_description"), 200); said != "" {
			text += " (" + strings.TrimRight(said, ". ") + ")"
		}
		return fail(text)
	}
	if q.Get("code") == "" {
		return fail("the authorization response has no code")
	}
	return q.Get("code"), nil
}

// responseQuery reads an address, or the query of one. full is false for any other text, which may be a bare code.
func responseQuery(answer string) (q url.Values, full bool) {
	if u, err := url.Parse(answer); err == nil && u.Scheme != "" && (u.Host != "" || u.RawQuery != "") {
		return u.Query(), true
	}
	answer = strings.TrimPrefix(answer, "?")
	q, err := url.ParseQuery(answer)
	return q, err == nil && (q.Has("code") || q.Has("error"))
}
