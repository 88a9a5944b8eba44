package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

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

// AuthStatus tells about the credentials of the named servers, or of all remote ones, sorted by name. It reads the
// store and sends nothing. The error is about a name; what cannot be found out stands in AuthStatus.Problem.
func (m *Manager) AuthStatus(ctx context.Context, servers ...string) ([]AuthStatus, error) {
	named := len(servers) > 0
	if !named {
		servers = m.Servers()
	}
	out := []AuthStatus{}
	for _, name := range servers {
		cell := m.shared.cellOf(name)
		if cell == nil {
			if named {
				return nil, unknownServer("auth status", name)
			}
			continue
		}
		if v := cell.View(); remoteKind(v.Spec) {
			out = append(out, m.authStatus(ctx, name, v))
		}
	}
	return out, nil
}

func (m *Manager) authStatus(ctx context.Context, name string, v *actors.View) AuthStatus {
	s := AuthStatus{Server: name, Kind: v.Spec.AuthKind(), NeedsAuth: v.State.Phase == messages.NeedsAuth}
	c, _, err := m.remoteCredential("auth status", name)
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
	in, signs := c.innerAuthorizer().(signIn)
	switch {
	case c.providedToken.Load() != nil:
		s.State, s.Where = AuthProvided, "memory"
	case signs:
		st, err := in.Status(ctx)
		s.setSignIn(st, err)
		if _, implied := in.(*lazySignIn); implied && !s.NeedsAuth && s.State == AuthSignedOut {
			s.State = AuthNotUsed
		}
	case c.innerAuthorizer() == nil && len(v.Spec.Headers) == 0:
		s.State = AuthNotUsed
	default:
		s.State = AuthConfigured
		if s.Where == "" {
			s.Where = whereOf(m.cfg.credentials, v.Spec)
		}
	}
	return s
}

func (s *AuthStatus) setSignIn(st oauth.Status, err error) {
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
		return auth.Command(k.helperCommand(spec, &Auth{Command: a.Command, Args: a.Args}), 0).Describe()
	}
	return k.valueSource(spec, a).Describe()
}
