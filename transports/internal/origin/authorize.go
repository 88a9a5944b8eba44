package origin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

// sendAuthorized sends one request with the connection's credentials, and once more if the server refuses them and there are
// others. send must put used into the request's headers, nil for nothing; it reports as RoundTrip does. The response may be a
// refusal: the caller judges it like any other.
//
// It serves every request that ends in an *http.Response, the upgrade to a WebSocket among them.
func (o *Origin) sendAuthorized(ctx context.Context,
	send func(used http.Header) (*http.Response, transports.Delivery, error)) (*http.Response, transports.Delivery, error) {
	c := o.credentials
	if c == nil {
		return send(nil)
	}
	if messages.CallerOf(ctx) == "" && o.caller != "" {
		ctx = messages.WithCaller(ctx, o.caller)
	}
	set, round, failed := c.authorizeRequest(ctx, o)
	if failed != nil {
		return nil, transports.NotWritten, c.markCallersOwn(ctx, o, failed)
	}
	resp, d, err := send(set.used)
	status := refusalStatus(resp)
	if err != nil && resp == nil || status == 0 {
		return resp, d, err
	}
	challenge := o.challengeOf(resp.Header, "")
	retry, failed := c.handleRefusal(ctx, o, set, round, status, challenge)
	if !retry && failed == nil {
		c.rememberRejection(ctx, o, resp, set)
		return resp, d, err
	}
	// The rest of the body is read so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, resp.Body, incoming.KeptEndSize)
	_ = resp.Body.Close()
	if failed == nil {
		set, _, failed = c.authorizeRequest(ctx, o)
	}
	if failed != nil {
		// The server has refused the message before it looked at it; the status in the error says so.
		failed.Status = status
		if failed.Challenge == nil && (failed.Class == messages.ClassUnauthorized ||
			failed.Class == messages.ClassForbidden) {
			failed.Challenge = challenge
		}
		return nil, transports.Written, c.markCallersOwn(ctx, o, failed)
	}
	resp, d, err = send(set.used)
	if refusalStatus(resp) != 0 {
		c.rememberRejection(ctx, o, resp, set)
	}
	return resp, d, err
}

// refusalStatus returns the status of a response that is a refusal of the credentials, else 0.
//
// 2026-07-28, Authorization, Error Handling: 401 is for "Authorization required or token invalid", 403 for "Invalid scopes or
// insufficient permissions". Other credentials can help only against a 403 that says insufficient_scope, or that names scopes and
// no error, which means the same.
func refusalStatus(resp *http.Response) int {
	switch {
	case resp == nil:
	case resp.StatusCode == http.StatusUnauthorized:
		return resp.StatusCode
	case resp.StatusCode == http.StatusForbidden:
		c := bearerChallenge(resp.Header)
		if c != nil && (c.params["error"] == "insufficient_scope" || c.params["error"] == "" && c.params["scope"] != "") {
			return resp.StatusCode
		}
	}
	return 0
}

// ForConnection returns o for one connection. What the connection learns about its credentials ends with it, so that a new
// connection tries the same credentials once more. ctx is that of Dial: requests that belong to no call are sent for its caller.
func (o *Origin) ForConnection(ctx context.Context) *Origin {
	if o.auth == nil {
		return o
	}
	k := *o
	k.credentials, k.caller = &credentials{authorizer: o.auth}, messages.CallerOf(ctx)
	return &k
}

// checkCredentialURL refuses a configuration that would send credentials in the clear to another machine.
//
// 2026-07-28, Authorization Security Considerations, Communication Security: "All authorization server endpoints MUST be served
// over HTTPS." The same care is taken here for the token itself.
func checkCredentialURL(u *url.URL, allowed bool) *transports.Error {
	if u.Scheme == "https" || u.Scheme == "wss" || allowed {
		return nil
	}
	// Names below localhost count as another machine, because requests to them may go through a configured proxy, in the clear.
	if addresses.ThisMachine(u.Hostname()) {
		return nil
	}
	return &transports.Error{Class: messages.ClassConfig,
		Text: "credentials are not sent over plain http to another machine, " + messages.Line(HostPort(u), 100),
		Fix:  "use https, or allow it for this server"}
}

// authError turns the error of an Authorizer into an error of this boundary, and takes every known secret out of it. An error
// that is no *Error counts as ClassUnauthorized.
func (o *Origin) authError(ctx context.Context, err error) *transports.Error {
	clean := func(s string) string { return string(o.RedactText([]byte(s), "")) }
	var own *transports.Error
	switch {
	case errors.As(err, &own):
		// This is a copy, because several callers may get the same error.
		e := *own
		e.Text, e.Fix, e.Body = clean(e.Text), clean(e.Fix), o.RedactText(e.Body, "")
		if e.Err != nil && clean(e.Err.Error()) != e.Err.Error() {
			e.Err = errors.New(clean(e.Err.Error()))
		}
		return &e
	case ctx.Err() != nil:
		return errs.ContextError(ctx, "authorizing the request to "+o.Label)
	}
	return &transports.Error{Class: messages.ClassUnauthorized, Err: errors.New(clean(err.Error())),
		Text: "there are no credentials for " + o.Label + ": " + errs.ShortSentence(clean(err.Error()))}
}

// usableHeaders returns the headers that an Authorizer gave, without those that no Authorizer may set. A value that HTTP does not
// allow is an error.
func (o *Origin) usableHeaders(given http.Header) (http.Header, *transports.Error) {
	used := make(http.Header, len(given))
	for name, values := range given {
		name = http.CanonicalHeaderKey(name)
		if isReservedHeader(name) || name == "Host" {
			continue
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
				return nil, &transports.Error{Class: messages.ClassUnauthorized,
					Text: "the credentials for " + o.Label + " hold what HTTP does not allow in the header " +
						messages.Line(name, 100),
					Fix: "look for line breaks and stray characters in them"}
			}
		}
		used[name] = append(used[name], values...)
	}
	return used, nil
}

// The header names of MCP, in Go's canonical form, so that they can be map keys of an http.Header. Names do not depend on case.
const (
	HeaderSession = "Mcp-Session-Id"
	HeaderVersion = "Mcp-Protocol-Version"
)

// isReservedHeader reports whether a header belongs to the message or the session, so that neither the configuration nor an
// Authorizer may set it.
func isReservedHeader(name string) bool {
	switch name {
	case "Content-Length", "Transfer-Encoding", "Connection", HeaderSession, HeaderVersion:
		return true
	}
	return false
}
