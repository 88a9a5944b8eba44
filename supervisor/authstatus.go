package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/credentials"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// AuthState describes a server's credentials as far as they are known without a request to the server.
type AuthState string

const (
	// AuthNotUsed says that requests carry no credentials and no sign-in is stored.
	AuthNotUsed AuthState = "none"
	// AuthConfigured says that the configuration, or the program, has the credentials. Only a request shows whether they are valid.
	AuthConfigured AuthState = "configured"
	// AuthProvided says that ProvideCredentials gave a token, which is kept in memory.
	AuthProvided AuthState = "provided"
	// AuthSignedIn says that a sign-in is stored, and is valid or can be refreshed.
	AuthSignedIn AuthState = "signed-in"
	// AuthSignedOut says that the person must sign in: see Manager.Login.
	AuthSignedOut AuthState = "signed-out"
	// AuthExpired says that there was a sign-in, and it has ended: the person must sign in again.
	AuthExpired AuthState = "expired"
	// AuthUnknown says that the state could not be read; Problem says why.
	AuthUnknown AuthState = "unknown"
)

// AuthStatus describes the credentials of one remote server. It holds no secret.
type AuthStatus struct {
	Server string `json:"server"`
	// Kind is the type of the server's auth, or "program" for the credentials of a Config.AuthProvider.
	Kind  string    `json:"kind"`
	State AuthState `json:"state"`
	// NeedsAuth says that the server is in the phase needs-auth now.
	NeedsAuth bool `json:"needsAuth,omitempty"`
	// Who is the account that is signed in, Issuer the authorization server, and Scopes what it granted, as far as it said.
	Who    string   `json:"who,omitempty"`
	Issuer string   `json:"issuer,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// Wanted are the scopes that the server has asked for since: the next sign-in requests them.
	Wanted []string `json:"wanted,omitempty"`
	// Expiry is the end of the access token, zero if it is not known. Renewable says that it is refreshed without the person.
	Expiry    time.Time `json:"expiry,omitzero"`
	Renewable bool      `json:"renewable,omitempty"`
	// Where names the place of the credentials in words for a person.
	Where string `json:"where,omitempty"`
	// Unsaved says that the newest token could not be stored: it is kept in memory, and lost with this process.
	Unsaved bool `json:"unsaved,omitempty"`
	// Problem says why the state is not known.
	Problem string `json:"problem,omitempty"`
}

// AuthStatus returns the state of the credentials of the named servers, or of all remote ones, sorted by name. It reads the
// store and sends nothing. The error is about a name; what could not be read stands in AuthStatus.Problem.
func (m *Manager) AuthStatus(ctx context.Context, servers ...string) ([]AuthStatus, error) {
	if ctx == nil {
		return nil, refusal.NilContextError("auth status", "", "")
	}
	named := len(servers) > 0
	if !named {
		servers = m.Servers()
	}
	out := []AuthStatus{}
	for _, name := range servers {
		cell := m.shared.CellOf(name)
		if cell == nil {
			if named {
				return nil, m.unknownServerError("auth status", name)
			}
			continue
		}
		if v := cell.View(); credentials.IsRemote(v.Spec) {
			out = append(out, m.authStatus(ctx, name, v))
		}
	}
	return out, nil
}

// authStatus looks at one server. The order of the cases is that in which a request would use them: a provided token first, then a
// sign-in, then the configuration.
func (m *Manager) authStatus(ctx context.Context, name string, v *actors.View) AuthStatus {
	s := AuthStatus{Server: name, Kind: v.Spec.AuthKind(), NeedsAuth: v.State.Phase == messages.NeedsAuth}
	// A server that may not be started has no credential to describe; its problem is the reason.
	c, _, err := m.remoteCredential(ctx, "auth status", name)
	if err != nil {
		s.State = AuthUnknown
		// Only the text of an *Error is shown: others may hold anything.
		if own := (*Error)(nil); errors.As(err, &own) {
			s.Problem = messages.Line(own.Text, 300)
		}
		return s
	}
	if c.IsFromProgram() {
		s.Kind, s.Where = "program", "the program"
	}
	in := c.SignIn()
	switch {
	case c.IsProvided():
		s.State, s.Where = AuthProvided, "memory"
	case in != nil:
		st, err := in.Status(ctx)
		s.setSignIn(st, err)
		// Such a server never asked for credentials: that no sign-in is stored does not mean that one is missing.
		if c.IsImplied() && !s.NeedsAuth && s.State == AuthSignedOut {
			s.State = AuthNotUsed
		}
	case c.IsEmpty() && len(v.Spec.Headers) == 0:
		s.State = AuthNotUsed
	default:
		s.State = AuthConfigured
		if s.Where == "" {
			s.Where = m.credentials.DescribePlace(v.Spec)
		}
	}
	return s
}

// setSignIn takes over what the store says of a sign-in. An issuer or an expiry without a usable token means that there was one.
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
