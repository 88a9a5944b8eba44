package supervisor

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// LoginOptions say how somebody signs in.
type LoginOptions struct {
	// Prompt is how the person is asked; the zero value means Config.LoginPrompt. The challenge of a server that needs
	// credentials is filled in. A sign-in without a person (client credentials, token exchange) needs no prompt.
	Prompt oauth.Prompt
}

// Login signs in to a server, whatever is stored, and connects the server if it is not connected and not disabled. It
// returns when the sign-in is stored and the attempt to connect has ended. What was stored stays if the sign-in fails.
// The manager and every other one on this machine that waits for this server's credentials go on by themselves.
//
// The error is an *Error: of class invalid if the server's auth knows no sign-in, of class unauthorized if it was not
// completed; if only connecting failed, as that of Connect.
func (m *Manager) Login(ctx context.Context, server string, opts LoginOptions) error {
	const op = "login"
	in, v, err := m.signIn(op, server)
	if err != nil {
		return err
	}
	p := opts.Prompt
	if p.Open == nil && p.Show == nil && m.cfg.LoginPrompt != nil {
		filled := m.cfg.LoginPrompt(server)
		filled.Scopes = append(filled.Scopes, p.Scopes...)
		p = filled
	}
	if p.Challenge == nil && v.State.Phase == messages.NeedsAuth && v.State.Cause != nil {
		p.Challenge = v.State.Cause.Challenge
	}
	if _, err := in.Login(ctx, p); err != nil {
		return authError(op, server, err)
	}
	if c := m.cfg.credentials.known(server); c != nil {
		c.given.Store(nil) // the sign-in is newer
	}
	m.shared.hub.Publish(messages.Event{Kind: messages.EventAuth, Server: server})
	return m.connectAgain(ctx, server)
}

// connectAgain connects a server that has failed or needs credentials.
func (m *Manager) connectAgain(ctx context.Context, server string) error {
	cell := m.shared.cell(server)
	if cell == nil {
		return nil
	}
	switch cell.View().State.Phase {
	case messages.Failed, messages.NeedsAuth:
		return m.Reconnect(ctx, server)
	case messages.Pending, messages.Connected, messages.Disabled:
	}
	return nil
}

// Logout removes a server's sign-in from the store and asks the authorization server to revoke it; revoked says whether
// it did. A connected server is connected again, which makes it needs-auth if it wants credentials.
func (m *Manager) Logout(ctx context.Context, server string) (revoked bool, err error) {
	const op = "logout"
	in, _, err := m.signIn(op, server)
	if err != nil {
		return false, err
	}
	if c := m.cfg.credentials.known(server); c != nil {
		c.given.Store(nil)
	}
	revoked, err = in.Logout(ctx)
	if err != nil {
		return revoked, authError(op, server, err)
	}
	m.shared.hub.Publish(messages.Event{Kind: messages.EventAuth, Server: server})
	if cell := m.shared.cell(server); cell != nil && cell.View().State.Phase == messages.Connected {
		if err := m.Reconnect(ctx, server); err != nil && !errors.Is(err, ErrNeedsAuth) {
			return revoked, err
		}
	}
	return revoked, nil
}

// ProvideCredentials gives a remote server a bearer token, in the place of what its auth gives, and connects it if it has
// failed or needs credentials. The token is kept in memory, sent to this server and to no other, and dropped when the
// server refuses it, when its spec changes, and by Login and Logout. It is an answer to EventAuthRequired for programs
// that have tokens; actors send messages.ProvideCredentials.
func (m *Manager) ProvideCredentials(ctx context.Context, server, token string) error {
	if err := m.provide(server, token); err != nil {
		return err
	}
	return m.connectAgain(ctx, server)
}

// provide puts a token in its place.
func (m *Manager) provide(server, token string) error {
	const op = "authorize"
	wrong := func(text, fix string) error {
		return &Error{Op: op, Class: messages.ClassInvalid, Server: server, Text: text, Fix: fix}
	}
	token = strings.TrimPrefix(strings.TrimSpace(token), "Bearer ")
	if token == "" || !httpguts.ValidHeaderFieldValue(token) {
		return wrong("the token is empty or holds what HTTP does not allow", "")
	}
	c, v, err := m.credential(op, server)
	switch {
	case err != nil:
		return err
	case plain(*v.Spec):
		return wrong("credentials are not sent to another machine over plain http", "use https, or set allowPlainHTTP")
	}
	c.given.Store(&token)
	m.shared.hub.Publish(messages.Event{Kind: messages.EventAuth, Server: server})
	return nil
}

// credential is that of a remote server which may be started.
func (m *Manager) credential(op, server string) (*credential, *actors.View, error) {
	if m.closing.Load() {
		return nil, nil, closedError(op)
	}
	cell := m.shared.cell(server)
	if cell == nil {
		return nil, nil, unknownServer(op, server)
	}
	v := cell.View()
	refuse := func(class messages.Class, text string) (*credential, *actors.View, error) {
		return nil, nil, &Error{Op: op, Class: class, Server: server, Text: text}
	}
	switch v.Spec.Kind() {
	case messages.HTTP, messages.SSE, messages.WebSocket, messages.ClaudeAIProxy:
	default:
		return refuse(messages.ClassInvalid, "it is no remote server and needs no credentials")
	}
	rule := m.cfg.refusal(*v.Spec)
	switch {
	case v.Spec.Invalid != "":
		return refuse(messages.ClassConfig, v.Spec.Invalid)
	case v.Spec.Hold != "":
		return refuse(messages.ClassDenied, v.Spec.Hold)
	case rule != "":
		return refuse(messages.ClassDenied, rule)
	}
	if text := m.cfg.check(server, *v.Spec); text != "" {
		return refuse(messages.ClassConfig, text)
	}
	c, err := m.cfg.credentials.of(server, v.Spec)
	if err != nil {
		return nil, nil, authError(op, server, err)
	}
	return c, v, nil
}

// signIn is how somebody signs in to a server.
func (m *Manager) signIn(op, server string) (signIn, *actors.View, error) {
	c, v, err := m.credential(op, server)
	if err != nil {
		return nil, nil, err
	}
	if in, ok := c.kind().(signIn); ok {
		return in, v, nil
	}
	e := &Error{Op: op, Class: messages.ClassInvalid, Server: server, Text: "there is nothing to sign in to: its auth is " +
		v.Spec.AuthKind(), Fix: `set its auth to {"type": "oauth"}`}
	switch {
	case c.inner.Load().program:
		e.Text, e.Fix = "the program that runs the manager gives it its credentials", ""
	case plain(*v.Spec):
		e.Text, e.Fix = "a sign-in is not used over plain http to another machine", "use https, or set allowPlainHTTP"
	}
	return nil, nil, e
}

// authError is an error of a sign-in in the words of the facade.
func authError(op, server string, err error) error {
	e := &Error{Op: op, Class: messages.ClassOf(err), Server: server, Text: "it failed", Err: err}
	var bad *transports.Error
	var own *Error
	switch {
	case errors.As(err, &bad):
		e.Class, e.Text, e.Fix, e.Err, e.Challenge, e.RetryAfter =
			bad.Class, bad.Text, bad.Fix, bad.Err, bad.Challenge, bad.RetryAfter
	case errors.As(err, &own):
		c := *own
		c.Op, c.Server = op, server
		return &c
	default: // a program's own: its text may hold anything
		e.Err = nil
		e.Text = messages.Line(err.Error(), 200)
	}
	return e
}

// AuthState says what is known of a server's credentials.
type AuthState string

const (
	// AuthNotUsed: requests carry nothing, and no sign-in is stored.
	AuthNotUsed AuthState = "none"
	// AuthConfigured: the configuration, or the program, has what is sent. Whether it is good shows when it is.
	AuthConfigured AuthState = "configured"
	// AuthProvided: somebody has provided a token, which lives in memory.
	AuthProvided AuthState = "provided"
	// AuthSignedIn: a sign-in is stored, and good or can be refreshed.
	AuthSignedIn AuthState = "signed-in"
	// AuthSignedOut: somebody must sign in.
	AuthSignedOut AuthState = "signed-out"
	// AuthExpired: there was a sign-in, and it has ended.
	AuthExpired AuthState = "expired"
	// AuthUnknown: it could not be found out; Problem says why.
	AuthUnknown AuthState = "unknown"
)

// AuthStatus is what is known of the credentials of one remote server. It holds no secret.
type AuthStatus struct {
	Server string `json:"server"`
	// Kind is the type of its auth, or "program" for a Config.AuthProvider's.
	Kind  string    `json:"kind"`
	State AuthState `json:"state"`
	// NeedsAuth says that the server waits for credentials now.
	NeedsAuth bool `json:"needsAuth,omitempty"`
	// Who is signed in, Issuer where, and Scopes what was granted, as far as the authorization server said.
	Who    string   `json:"who,omitempty"`
	Issuer string   `json:"issuer,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// Wanted are the scopes that the server asked for since: the next sign-in asks for them.
	Wanted []string `json:"wanted,omitempty"`
	// Expiry is the end of the access token, zero if it is not known. Renewable: it is refreshed by itself.
	Expiry    time.Time `json:"expiry,omitzero"`
	Renewable bool      `json:"renewable,omitempty"`
	// Where is where the credentials are, for people.
	Where string `json:"where,omitempty"`
	// Unsaved: the newest token could not be stored and is held in memory.
	Unsaved bool `json:"unsaved,omitempty"`
	// Problem is why the state is not known.
	Problem string `json:"problem,omitempty"`
}

// AuthStatus tells about the credentials of the named servers, or of all remote ones, sorted by name. It reads the store
// and sends nothing. The error is about a name; what cannot be found out stands in AuthStatus.Problem.
func (m *Manager) AuthStatus(ctx context.Context, servers ...string) ([]AuthStatus, error) {
	named := len(servers) > 0
	if !named {
		servers = m.Servers()
	}
	out := []AuthStatus{}
	for _, name := range servers {
		cell := m.shared.cell(name)
		if cell == nil {
			if named {
				return nil, unknownServer("auth status", name)
			}
			continue
		}
		switch v := cell.View(); v.Spec.Kind() {
		case messages.HTTP, messages.SSE, messages.WebSocket, messages.ClaudeAIProxy:
			out = append(out, m.authStatus(ctx, name, v))
		case messages.Stdio, messages.SDK: // they take their credentials from their environment
		}
	}
	return out, nil
}

func (m *Manager) authStatus(ctx context.Context, name string, v *actors.View) AuthStatus {
	s := AuthStatus{Server: name, Kind: v.Spec.AuthKind(), NeedsAuth: v.State.Phase == messages.NeedsAuth}
	c, _, err := m.credential("auth status", name)
	if err != nil {
		s.State = AuthUnknown
		if own := (*Error)(nil); errors.As(err, &own) {
			s.Problem = messages.Line(own.Text, 300)
		}
		return s
	}
	if c.inner.Load().program {
		s.Kind, s.Where = "program", "the program"
	}
	in, signs := c.kind().(signIn)
	switch {
	case c.given.Load() != nil:
		s.State, s.Where = AuthProvided, "memory"
	case signs:
		st, err := in.Status(ctx)
		s.fill(st, err)
		if _, implied := in.(*lazily); implied && !s.NeedsAuth && s.State == AuthSignedOut {
			s.State = AuthNotUsed
		}
	case c.kind() == nil && len(v.Spec.Headers) == 0:
		s.State = AuthNotUsed
	default:
		s.State = AuthConfigured
		if s.Where == "" {
			s.Where = whereOf(m.cfg.credentials, v.Spec)
		}
	}
	return s
}

func (s *AuthStatus) fill(st oauth.Status, err error) {
	s.Who, s.Issuer, s.Scopes, s.Wanted = st.Who, st.Issuer, st.Scopes, st.Wanted
	s.Expiry, s.Renewable, s.Where, s.Unsaved = st.Expires, st.Renewable, st.Where, st.Unsaved
	switch {
	case err != nil:
		s.State = AuthUnknown
		if bad := (*transports.Error)(nil); errors.As(err, &bad) {
			s.Problem = messages.Line(bad.Text, 300)
		}
	case st.SignedIn:
		s.State = AuthSignedIn
	case st.Issuer != "" || !st.Expires.IsZero():
		s.State = AuthExpired
	default:
		s.State = AuthSignedOut
	}
}

// whereOf is the place of credentials that the configuration names.
func whereOf(k *credentials, spec *Spec) string {
	a := spec.Auth
	switch spec.AuthKind() {
	case messages.AuthNone:
		return "the configured headers"
	case messages.AuthHelper:
		return auth.Command(k.program(&Auth{Command: a.Command, Args: a.Args}), 0).What()
	}
	return k.source(a).What()
}
