package supervisor

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/credentials"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// LoginOptions change how one Login asks the person.
type LoginOptions struct {
	// Prompt says how the person is asked; the zero value means Config.LoginPrompt. Login fills in the challenge of a server that
	// needs credentials. A sign-in without a person (client credentials, token exchange) needs no prompt.
	Prompt oauth.Prompt
}

// Login signs in to a server, also if a sign-in is stored already, and connects the server if it is not connected and not
// disabled. It returns when the sign-in is stored and the attempt to connect has ended. The stored sign-in stays if the new one
// fails. Other managers on this machine that wait for this server's credentials notice the sign-in by themselves.
//
// The error is an *Error: of class invalid if the server's auth knows no sign-in, of class unauthorized if it was not
// completed; if only connecting failed, as that of Connect. A server that shows tools of another account is connected anew.
func (m *Manager) Login(ctx context.Context, server string, opts LoginOptions) error {
	const op = "login"
	if ctx == nil {
		return refusal.NilContextError(op, server, "")
	}
	in, v, err := m.signInOf(ctx, op, server)
	if err != nil {
		return err
	}
	p := opts.Prompt
	if p.Open == nil && p.Show == nil && m.cfg.LoginPrompt != nil {
		// Scopes that the caller asks for are added to those of the program's prompt.
		filled, err := m.askForPrompt(ctx, server)
		if err != nil {
			return err
		}
		filled.Scopes = append(filled.Scopes, p.Scopes...)
		p = filled
	}
	// The server's challenge names the scopes that it wants; without it the person might grant too little.
	if p.Challenge == nil && v.State.Phase == messages.NeedsAuth && v.State.Cause != nil {
		p.Challenge = v.State.Cause.Challenge
	}
	c := m.credentials.FindCredential(server)
	// The account before the sign-in decides whether the connection may stay.
	before := c.ActingAccount()
	_, err = in.Login(ctx, p)
	m.audit.RecordChange(auditor.CallerFromContext(ctx), audit.Record{Change: "sign-in", Server: server}, err)
	if err != nil {
		return authError(op, server, err)
	}
	// The sign-in is newer than a token that the program provided.
	c.DropToken()
	c.ForgetAccount()
	// Lists and the running connection belong to the account from before. They go first, so that no caller sees them with the
	// new account's name.
	m.forgetLists(server)
	// Watchers learn of the sign-in before the attempt that follows from it.
	m.shared.Hub.Publish(messages.Event{Kind: messages.EventAuth, Server: server})
	if c.ActingAccount() != before && m.showsTools(server) {
		return m.Reconnect(ctx, server)
	}
	return m.reconnectIfDown(ctx, server)
}

// askForPrompt calls Config.LoginPrompt, which holds Login no longer than its context and the manager last.
func (m *Manager) askForPrompt(ctx context.Context, server string) (oauth.Prompt, error) {
	const op = "login"
	prompt, err := hooks.Do(ctx, m.hooks, m.closed, hooks.Call{Function: "Config.LoginPrompt", Op: op, Server: server},
		func() oauth.Prompt { return m.cfg.LoginPrompt(server) })
	var broken *hooks.Broken
	switch {
	case errors.As(err, &broken):
		return oauth.Prompt{}, &Error{Op: op, Class: messages.ClassPanic, Server: server, Text: "the program's Config.LoginPrompt " + broken.Error(), Err: broken}
	case errors.Is(err, hooks.ErrOver):
		return oauth.Prompt{}, refusal.ClosedError(op)
	case err != nil && ctx.Err() != nil:
		return oauth.Prompt{}, &Error{Op: op, Class: messages.ClassOf(err), Server: server,
			Text: "the context ended before the program's Config.LoginPrompt returned", Fix: "make it return at once: what it returns may wait for the person", Err: err}
	}
	return prompt, err
}

// forgetLists removes the server's lists that are kept for the next start, and what is remembered of its resources, because
// they may belong to another account. Login and logout call it.
func (m *Manager) forgetLists(server string) {
	m.toolCache.ForgetServer(server)
	m.index.ForgetServer(server)
}

// showsTools reports whether callers see tools of a server, from a connection or, for a lazy server that rests, from a list. After
// a change of account those must be replaced.
func (m *Manager) showsTools(server string) bool {
	cell := m.shared.CellOf(server)
	if cell == nil {
		return false
	}
	v := cell.View()
	return v.State.Phase == messages.Connected || v.State.Phase == messages.Pending && v.State.Step == messages.Idle
}

// reconnectIfDown connects a server that has failed or needs credentials, and leaves every other phase alone.
func (m *Manager) reconnectIfDown(ctx context.Context, server string) error {
	cell := m.shared.CellOf(server)
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
// it did. The authorization server to which configured credentials belong stays known; see Forget. A connected server is
// connected again, and becomes needs-auth if it requires credentials.
func (m *Manager) Logout(ctx context.Context, server string) (revoked bool, err error) {
	return m.endSignIn(ctx, server, credentials.SignIn.Logout)
}

// Forget does what Logout does, and also forgets to which authorization server configured credentials belong: before they are sent
// to one again, the person is asked, or the configuration names it.
func (m *Manager) Forget(ctx context.Context, server string) (revoked bool, err error) {
	return m.endSignIn(ctx, server, func(in credentials.SignIn, ctx context.Context) (bool, error) {
		// Only the authorizers of this project tie credentials to an authorization server.
		if all, ok := in.(interface {
			Forget(ctx context.Context) (bool, error)
		}); ok {
			return all.Forget(ctx)
		}
		// A program's own sign-in has no more to forget.
		return in.Logout(ctx)
	})
}

// endSignIn is the common part of Logout and Forget. The provided token is dropped first, so that no request is sent with it while
// the store is changed. Needs-auth is the expected outcome of the reconnect and no error.
func (m *Manager) endSignIn(ctx context.Context, server string, leave func(credentials.SignIn, context.Context) (bool, error)) (
	revoked bool, err error) {
	const op = "logout"
	if ctx == nil {
		return false, refusal.NilContextError(op, server, "")
	}
	in, _, err := m.signInOf(ctx, op, server)
	if err != nil {
		return false, err
	}
	m.credentials.FindCredential(server).DropToken()
	// The store is cleared first and the revocation comes after it, so that a server that does not answer cannot keep the sign-in.
	revoked, err = leave(in, ctx)
	m.audit.RecordChange(auditor.CallerFromContext(ctx), audit.Record{Change: "sign-out", Server: server}, err)
	if err != nil {
		return revoked, authError(op, server, err)
	}
	m.credentials.FindCredential(server).ForgetAccount()
	m.forgetLists(server)
	m.shared.Hub.Publish(messages.Event{Kind: messages.EventAuth, Server: server})
	if m.showsTools(server) {
		if err := m.Reconnect(ctx, server); err != nil && !errors.Is(err, ErrNeedsAuth) {
			return revoked, err
		}
	}
	return revoked, nil
}

// ProvideCredentials gives a remote server a bearer token, in the place of what its auth gives, and connects it if it
// has failed or needs credentials. The token is kept in memory, sent to this server and to no other, and dropped when
// the server refuses it, when its spec changes, and by Login and Logout. A program that has tokens answers EventAuthRequired with
// it; actors send messages.ProvideCredentials.
func (m *Manager) ProvideCredentials(ctx context.Context, server, token string) error {
	if ctx == nil {
		return refusal.NilContextError("authorize", server, "")
	}
	if err := m.provideToken(ctx, auditor.CallerFromContext(ctx), server, token); err != nil {
		return err
	}
	return m.reconnectIfDown(ctx, server)
}

// provideToken checks a token and makes the next requests of the server carry it. A running connection uses it too. The
// audit log records the attempt, never the token.
func (m *Manager) provideToken(ctx context.Context, b auditor.Caller, server, token string) (err error) {
	const op = "authorize"
	defer func() { m.audit.RecordChange(b, audit.Record{Change: "credentials", Server: server}, err) }()
	invalid := func(text, fix string) error {
		return &Error{Op: op, Class: messages.ClassInvalid, Server: server, Text: text, Fix: fix}
	}
	// Programs often pass the whole header value, or a line of a file.
	token = strings.TrimPrefix(strings.TrimSpace(token), "Bearer ")
	if token == "" || !httpguts.ValidHeaderFieldValue(token) {
		return invalid("the token is empty or holds what HTTP does not allow", "")
	}
	c, v, err := m.remoteCredential(ctx, op, server)
	switch {
	case err != nil:
		return err
	// A spec may allow plain http for itself; PlainCredentials knows.
	case credentials.IsSentInClear(*v.Spec):
		return invalid("credentials are not sent to another machine over plain http", "use https, or set allowPlainHTTP")
	}
	c.ProvideToken(token)
	m.shared.Hub.Publish(messages.Event{Kind: messages.EventAuth, Server: server})
	return nil
}

// remoteCredential returns the credential of a remote server and the view that it belongs to. It refuses servers that may not be
// started: a policy that forbids the server must also keep the person from sending it a secret.
func (m *Manager) remoteCredential(ctx context.Context, op, server string) (*credentials.Credential, *actors.View, error) {
	if m.closing.Load() {
		return nil, nil, refusal.ClosedError(op)
	}
	cell := m.shared.CellOf(server)
	if cell == nil {
		return nil, nil, m.unknownServerError(op, server)
	}
	v := cell.View()
	refuse := func(class messages.Class, text string) (*credentials.Credential, *actors.View, error) {
		return nil, nil, &Error{Op: op, Class: class, Server: server, Text: text}
	}
	if !credentials.IsRemote(v.Spec) {
		return refuse(messages.ClassInvalid, "it is no remote server and needs no credentials")
	}
	// The same checks as before an attempt, in the same order.
	rule := m.opener.RefusingRule(*v.Spec)
	switch {
	case v.Spec.Invalid != "":
		return refuse(messages.ClassConfig, v.Spec.Invalid)
	case v.Spec.Hold != "":
		return refuse(messages.ClassDenied, v.Spec.Hold)
	case rule != "":
		return refuse(messages.ClassDenied, rule)
	}
	if text := m.opener.SpecProblem(server, *v.Spec); text != "" {
		return refuse(messages.ClassConfig, text)
	}
	c, err := m.credentials.CredentialFor(ctx, server, v.Spec)
	if err != nil {
		return nil, nil, authError(op, server, err)
	}
	return c, v, nil
}

// signInOf returns the sign-in of a server. The error says what to change in its spec, or that the program has the credentials.
func (m *Manager) signInOf(ctx context.Context, op, server string) (credentials.SignIn, *actors.View, error) {
	c, v, err := m.remoteCredential(ctx, op, server)
	if err != nil {
		return nil, nil, err
	}
	if in := c.SignIn(); in != nil {
		return in, v, nil
	}
	// The default text is for a server with another kind of auth; the cases below are more exact.
	e := &Error{Op: op, Class: messages.ClassInvalid, Server: server,
		Text: "there is nothing to sign in to: its auth is " + v.Spec.AuthKind(), Fix: `set its auth to {"type": "oauth"}`}
	switch {
	case c.IsFromProgram():
		e.Text, e.Fix = "the program that runs the manager gives it its credentials", ""
	case credentials.IsSentInClear(*v.Spec):
		e.Text, e.Fix = "a sign-in is not used over plain http to another machine", "use https, or set allowPlainHTTP"
	}
	return nil, nil, e
}

// authError translates the error of a sign-in into the facade's type.
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
	// The text of a program's own error may be long or hold secrets that errors.Unwrap would reveal: only one line of it is kept.
	default:
		e.Err = nil
		e.Text = messages.Line(err.Error(), 200)
	}
	return e
}

// DefaultAuthOptions returns where the manager and the mcpvisor command keep sign-ins by default: the system's
// keyring, else encrypted files in auth.DefaultDir. Their key is made from the passphrase in MCPVISOR_PASSPHRASE, if
// that is set, and otherwise stands in a file of its own beside the person's configuration (secrets.key, 0600): a thief with
// a copy of one of the two directories cannot read the sign-ins.
func DefaultAuthOptions() (auth.Options, error) { return credentials.DefaultAuthOptions() }

// LocksFor returns the locks that belong to a store of those options: all processes that share the store must share the locks,
// because two refreshes with one refresh token end the sign-in at many servers.
func LocksFor(o auth.Options) *auth.Locks { return credentials.LocksFor(o) }
