// Package opener decides whether a spec may be tried, and makes its transport: a process, a remote connection with its
// credentials, or a server of the same program.
//
//	o := opener.New(opener.Options{Credentials: set})
//	problem, rule := o.SpecProblem("files", spec), o.RefusingRule(spec)      // both empty: it may be tried
//	transport, err := o.OpenTransport("files", &spec, share)
//
// Guarantees: the policies in force are checked last before a transport is made; servers share a pool of connections only if their TLS
// configuration and origin are the same; certificates that were renewed count from the next attempt on.
//
// # How it fits
//
// Package core asks for the problem and the rule of every spec, an attempt of package actors calls OpenTransport in its own goroutine.
//
// Not promised: that a transport can connect. SpecProblem finds what no attempt could mend; everything else shows when the transport
// is dialled.
package opener

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/credentials"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/kinds"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Opener decides whether a spec may be tried, and makes its transport. Safe for concurrent use.
type Opener struct {
	Options
	// managed are the policies of the organisation in force, replaced by each reload of the files.
	managed atomic.Pointer[[]config.Policy]
	clients *httpClients
}

// Options holds the policies, and what transports are made with.
type Options struct {
	// Policy is the program's own, Managed are those of the organisation at the start; Allowed are the only kinds, nil for all.
	Policy  config.Policy
	Managed []config.Policy
	Allowed []messages.TransportKind
	// Transport is asked first, Wrap puts a decorator around each transport; both may be nil.
	Transport func(name string, spec messages.Spec) (transports.Transport, error)
	Wrap      func(name string, spec messages.Spec, t transports.Transport) transports.Transport
	// AskProgram runs f, which calls one of these two, and returns its error, or why there is none: it
	// broke, or had not returned when ctx ended. what is how an error names it. nil calls f.
	AskProgram func(ctx context.Context, function, what, server string, f func() error) error
	// InProcess holds the servers of this very program.
	InProcess map[string]func(ctx context.Context, peer inprocess.Peer) error
	// Guard learns of every process group, nil is none. InheritEnv gives children the whole environment of this process, where
	// their spec does not say otherwise.
	Guard      stdio.Guard
	InheritEnv bool
	// SearchPath returns the PATH of children whose spec has none; nil means that of this process.
	SearchPath func() string
	// Credentials authorise the requests of remote servers.
	Credentials *credentials.Set
}

// New makes an opener with the policies of o, and opens nothing. The caller must call Close when no transport of it is in use.
func New(o Options) *Opener {
	made := &Opener{Options: o, clients: newClients()}
	made.SetManaged(o.Managed)
	return made
}

// SetManaged replaces the policies of the organisation. Servers that run are not looked at again.
func (o *Opener) SetManaged(policies []config.Policy) { o.managed.Store(&policies) }

// Close releases idle connections: see httpClients.close.
func (o *Opener) Close() { o.clients.close() }

// OpenTransport makes the transport of a spec, with the program's decorator around it. An attempt calls it in a goroutine of its
// own, so it may block; a function of the program holds it until ctx ends.
func (o *Opener) OpenTransport(ctx context.Context, name string, spec *messages.Spec, share *budget.Share) (transports.Transport, error) {
	t, err := o.newTransport(ctx, name, spec, share)
	if err != nil {
		return nil, err
	}
	// Wrap comes last, so that it sees the transport that the session will use.
	return o.wrapTransport(ctx, name, spec, t)
}

// newTransport makes the transport that a spec describes. The bytes that it holds count in share.
func (o *Opener) newTransport(ctx context.Context, name string, spec *messages.Spec, share *budget.Share) (transports.Transport, error) {
	// The last check before anything of the server runs. A managed policy may have changed since the start was granted.
	if rule := o.RefusingRule(*spec); rule != "" { // a start that came before a new policy is refused as well
		return nil, &messages.Error{Op: "connect", Class: messages.ClassDenied, Text: rule}
	}
	// The program's own transport comes before the known kinds, which it may replace.
	if t, err := o.askTransport(ctx, name, spec); t != nil || err != nil {
		return t, err
	}
	with := kinds.Options{
		Server: name, Share: share, Grace: time.Duration(spec.StopGrace), Guard: o.Guard, InheritEnv: o.InheritEnv, SearchPath: o.SearchPath,
		InProcess: o.InProcess,
	}
	if spec.Kind().Remote() {
		var err error
		if with.Client, with.Auth, err = o.clientAndCredential(ctx, name, spec); err != nil {
			return nil, openError(err)
		}
	}
	if t := kinds.New(spec, with); t != nil {
		return t, nil
	}
	// The program's Transport does not know it either.
	return nil, &messages.Error{Op: "connect", Class: messages.ClassConfig, Text: o.specProblem(name, *spec, false)}
}

// clientAndCredential returns what the requests to a server behind a URL are sent with. It reads the files of the spec's TLS anew for
// each attempt, so that renewed certificates count.
func (o *Opener) clientAndCredential(ctx context.Context, name string, spec *messages.Spec) (*http.Client, transports.Authorizer, error) {
	// The client is shared with other servers unless the spec has a TLS configuration of its own.
	client, err := o.clients.clientFor(spec.TLS, addresses.OriginOf(spec.URL))
	if err != nil {
		return nil, nil, err
	}
	// The credential outlives this attempt: a refresh that runs is shared.
	credential, err := o.Credentials.CredentialFor(ctx, name, spec)
	if err != nil {
		return nil, nil, err
	}
	return client, credential.ForConnection(), nil
}

// openError translates an error of the layers below into the facade's type, once, so that errors.As finds one type everywhere.
func openError(err error) error {
	var own *messages.Error
	var bad *transports.Error
	switch {
	case errors.As(err, &own):
		return err
	// The outcome stays empty, because connecting is no call.
	case errors.As(err, &bad):
		return &messages.Error{Op: "connect", Class: bad.Class, Text: bad.Text, Fix: bad.Fix, Err: bad.Err, Challenge: bad.Challenge,
			RetryAfter: bad.RetryAfter}
	}
	return err
}

// checkURL returns why a URL of one of some schemes cannot be dialled; empty if it can. It quotes only the scheme: the rest may hold
// secrets.
func checkURL(schemes []string, raw string) string {
	u, err := url.Parse(raw)
	switch {
	// The parse error would repeat the URL, which may hold a token.
	case err != nil:
		return "its url cannot be parsed"
	case !slices.Contains(schemes, u.Scheme):
		// The first two are the usual ones.
		usual := schemes[:min(len(schemes), 2)]
		return fmt.Sprintf("its url must begin with %s://, not %q", strings.Join(usual, ":// or "), u.Scheme)
	case u.Host == "":
		return "its url names no host"
	}
	return ""
}
