package transports

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// Authorizer gives the requests of one remote server their credentials. Safe for concurrent use. Package auth has the
// usual kinds; a program may bring its own.
//
// A transport asks it at most once about a refusal of one request, and repeats the request at most once. Of one
// connection's requests that are refused together one asks, and the others adopt what it was told. Credentials that the
// server has answered with 401, and for which there were no others, are not sent again on that connection.
type Authorizer interface {
	// Authorize adds credentials to the headers of a request that is about to be sent. h is empty at first; what is in
	// it afterwards takes the place of configured headers of the same name. It may block (a refresh); an error, an
	// *Error of class ClassUnauthorized or ClassNetwork, keeps the request from being sent (NotWritten).
	Authorize(ctx context.Context, h http.Header) error
	// Refused is told that the server refused (401, or 403 insufficient_scope) a request that had been sent with the
	// headers used. retry reports that there are other credentials now, so that the same request is worth sending once
	// more. challenge may be nil. The caller gets an error in the place of the refusal: of class ClassNetwork,
	// that it is not known yet whether there are others (the token endpoint does not answer).
	Refused(ctx context.Context, status int, challenge *messages.Challenge, used http.Header) (retry bool, err error)
}

// sendAuthorized sends one request with the connection's credentials, and once more if the server refuses them and there
// are others. used is what send has to put into the request's headers, nil for nothing; send reports as roundTrip does.
// The response may be a refusal: it is the caller's to judge, like every other.
//
// It is made for any request that ends in an *http.Response, the upgrade to a websocket among them.
func (o *origin) sendAuthorized(ctx context.Context,
	send func(used http.Header) (*http.Response, Delivery, error)) (*http.Response, Delivery, error) {
	c := o.credentials
	if c == nil {
		return send(nil)
	}
	used, round, failed := c.authorizeRequest(ctx, o)
	if failed != nil {
		return nil, NotWritten, failed
	}
	resp, d, err := send(used)
	status := refusalStatus(resp)
	if err != nil && resp == nil || status == 0 {
		return resp, d, err
	}
	challenge := o.challengeOf(resp.Header, "")
	retry, failed := c.handleRefusal(ctx, o, round, status, challenge, used)
	if !retry && failed == nil {
		c.rememberRejection(o, resp, used)
		return resp, d, err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, keptEndSize) // so that the connection can be used again
	_ = resp.Body.Close()
	if failed == nil {
		used, _, failed = c.authorizeRequest(ctx, o)
	}
	if failed != nil {
		// The server has refused the message before it looked at it, which its status says.
		failed.Status = status
		if failed.Challenge == nil && (failed.Class == messages.ClassUnauthorized ||
			failed.Class == messages.ClassForbidden) {
			failed.Challenge = challenge
		}
		return nil, Written, failed
	}
	resp, d, err = send(used)
	if refusalStatus(resp) != 0 {
		c.rememberRejection(o, resp, used)
	}
	return resp, d, err
}

// refusalStatus is the status of a response that means the credentials, else 0.
//
// 2026-07-28, Authorization, Error Handling: 401 is for "Authorization required or token invalid", 403 for "Invalid
// scopes or insufficient permissions". Only a 403 that says insufficient_scope can be cured by other credentials; one
// that names scopes and no error means the same.
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

// forConnection is o for one connection: what a connection learns about its credentials ends with it.
func (o *origin) forConnection() *origin {
	if o.auth == nil {
		return o
	}
	k := *o
	k.credentials = &credentials{authorizer: o.auth}
	return &k
}

// checkCredentialURL refuses a configuration that would show credentials to everybody on the way.
//
// 2026-07-28, Authorization Security Considerations, Communication Security: "All authorization server
// endpoints MUST be served over HTTPS." The token itself deserves no less.
func checkCredentialURL(u *url.URL, allowed bool) *Error {
	if u.Scheme == "https" || u.Scheme == "wss" || allowed {
		return nil
	}
	// Names below localhost are another machine: requests to them go through a configured proxy, in the clear.
	if addresses.ThisMachine(u.Hostname()) {
		return nil
	}
	return &Error{Class: messages.ClassConfig,
		Text: "credentials are not sent over plain http to another machine, " + messages.Line(hostPort(u), 100),
		Fix:  "use https, or allow it for this server"}
}

// authError turns what an Authorizer returned into an error of this boundary that holds none of the known secrets.
func (o *origin) authError(ctx context.Context, err error) *Error {
	clean := func(s string) string { return string(o.redactText([]byte(s), "")) }
	var own *Error
	switch {
	case errors.As(err, &own):
		e := *own // another caller may be given the same one
		e.Text, e.Fix, e.Body = clean(e.Text), clean(e.Fix), o.redactText(e.Body, "")
		if e.Err != nil && clean(e.Err.Error()) != e.Err.Error() {
			e.Err = errors.New(clean(e.Err.Error()))
		}
		return &e
	case ctx.Err() != nil:
		return contextError(ctx, "authorizing the request to "+o.label)
	}
	return &Error{Class: messages.ClassUnauthorized, Err: errors.New(clean(err.Error())),
		Text: "there are no credentials for " + o.label + ": " + shortSentence(clean(err.Error()))}
}

// usableHeaders keeps of the headers that an Authorizer gave what may go into a request.
func (o *origin) usableHeaders(given http.Header) (http.Header, *Error) {
	used := make(http.Header, len(given))
	for name, values := range given {
		name = http.CanonicalHeaderKey(name)
		if isReservedHeader(name) || name == "Host" {
			continue
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
				return nil, &Error{Class: messages.ClassUnauthorized,
					Text: "the credentials for " + o.label + " hold what HTTP does not allow in the header " +
						messages.Line(name, 100),
					Fix: "look for line breaks and stray characters in them"}
			}
		}
		used[name] = append(used[name], values...)
	}
	return used, nil
}

// isReservedHeader reports whether a header belongs to the message or the session, so that no configuration may set it.
func isReservedHeader(name string) bool {
	switch name {
	case "Content-Length", "Transfer-Encoding", "Connection", headerSession, headerVersion:
		return true
	}
	return false
}
