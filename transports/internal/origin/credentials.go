package origin

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
)

// credentials remembers what one connection knows about the credentials that its Authorizer gives it. All its requests share it.
type credentials struct {
	authorizer transports.Authorizer

	// mu guards everything below. It is not held while the Authorizer is called.
	mu sync.Mutex
	// runningCall is the call of Refused in progress, nil for none; lastCall is the one before it. rounds counts the calls that
	// have an answer: a request that took its credentials in an earlier round uses the answer and need not ask.
	runningCall, lastCall *refusalCall
	rounds                int
	// givenHeaders are the headers that the Authorizer gave for the newest request, usedHeaders those of them that went into it.
	// rejectedHeaders are those that the server did not want, and rejection is its refusal. No code writes to any of them.
	givenHeaders, usedHeaders, rejectedHeaders http.Header
	rejection                                  *transports.Error
	// secrets has the values given lately, newest first, at most maxSecretSets, in the form of origin.secrets.
	secrets []credentialSecrets
}

// credentialSecrets has the secret values in one set of headers.
type credentialSecrets struct {
	headers http.Header
	values  [][]byte
}

// maxSecretSets bounds the sets of credentials that are remembered for redaction: a server can only repeat one that a request under
// way has carried.
const maxSecretSets = 8

// refusalCall is one call of Authorizer.Refused, which several refused requests share. done is closed when the fields below are
// set.
type refusalCall struct {
	status int
	// scope is that of the challenge, empty without one.
	scope string
	done  chan struct{}

	// retry says that there are other credentials now, or that the same may work; err is why there are none, nil if there was no
	// fault.
	retry bool
	err   *transports.Error
	// aborted is true if the context of the asking request ended: there is no answer, and the next request asks anew.
	aborted bool
}

// isForRefusal reports whether the answer counts for another refusal: same status, same scope.
func (q *refusalCall) isForRefusal(status int, scope string) bool {
	return q.status == status && q.scope == scope
}

// authorizeRequest returns the headers of a request, and the round in which they were taken. While a call of Refused runs it
// waits for that, because credentials that were refused would be refused again.
func (c *credentials) authorizeRequest(ctx context.Context, o *Origin) (used http.Header, round int, _ *transports.Error) {
	c.mu.Lock()
	for c.runningCall != nil {
		q := c.runningCall
		c.mu.Unlock()
		select {
		case <-q.done:
		case <-ctx.Done():
			return nil, 0, errs.ContextError(ctx, "authorizing the request to "+o.Label)
		}
		c.mu.Lock()
	}
	// A refusal that is answered after this moment may count for this request as well: handleRefusal compares the rounds.
	round = c.rounds
	c.mu.Unlock()
	// The Authorizer may read a file, run a program, or renew a token over the network: no lock is held meanwhile.
	h := http.Header{}
	err := callRecovering(func() error { return c.authorizer.Authorize(ctx, h) })
	used, failed := c.acceptHeaders(o, h)
	switch {
	case err != nil:
		return nil, 0, o.authError(ctx, err)
	case failed != nil:
		return nil, 0, failed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The server has refused credentials for good. They are not sent again; other ones clear the memory of it.
	if c.rejection == nil {
		return used, round, nil
	}
	if sameHeader(used, c.rejectedHeaders) {
		e := *c.rejection
		return nil, 0, &e
	}
	c.rejection, c.rejectedHeaders = nil, nil
	return used, round, nil
}

// handleRefusal asks the Authorizer about a refusal, or takes over the answer to the same refusal that another request has got
// since this one took its credentials. It blocks until there is an answer or ctx ends.
func (c *credentials) handleRefusal(ctx context.Context, o *Origin, round, status int, challenge *messages.Challenge,
	used http.Header) (retry bool, _ *transports.Error) {
	scope := ""
	if challenge != nil {
		scope = challenge.Scope
	}
	var call *refusalCall
	for call == nil {
		c.mu.Lock()
		switch q := c.runningCall; {
		// Another request asks already. Its answer counts here if it is about the same refusal; otherwise this one asks next.
		case q != nil:
			c.mu.Unlock()
			select {
			case <-q.done:
			case <-ctx.Done():
				return false, errs.ContextError(ctx, "authorizing the request to "+o.Label)
			}
			if !q.aborted && q.isForRefusal(status, scope) {
				return q.retry, q.errorCopy()
			}
			continue
		case c.rounds > round && c.lastCall.isForRefusal(status, scope):
			q = c.lastCall
			c.mu.Unlock()
			return q.retry, q.errorCopy()
		}
		// The call is aborted until there is an answer, so that a panic on the way leaves no wrong one.
		call = &refusalCall{status: status, scope: scope, done: make(chan struct{}), aborted: true}
		c.runningCall = call
		c.mu.Unlock()
	}
	// The others wait for done, so that it is closed also if the Authorizer panics.
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.runningCall = nil
		if !call.aborted {
			c.lastCall = call
			c.rounds++
		}
		close(call.done)
	}()
	err := callRecovering(func() (err error) {
		// The Authorizer gets a copy: used may be shared by all requests.
		call.retry, err = c.authorizer.Refused(ctx, status, challenge, used.Clone())
		return err
	})
	if err != nil {
		call.retry, call.err = false, o.authError(ctx, err)
	}
	call.aborted = err != nil && ctx.Err() != nil
	return call.retry, call.errorCopy()
}

// errorCopy returns the error for one caller, who may change it.
func (q *refusalCall) errorCopy() *transports.Error {
	if q.err == nil {
		return nil
	}
	e := *q.err
	return &e
}

// rememberRejection remembers that the server does not want these credentials, and that there are no others. It ignores a 403,
// because a missing scope concerns one request only.
func (c *credentials) rememberRejection(o *Origin, resp *http.Response, used http.Header) {
	if resp.StatusCode != http.StatusUnauthorized {
		return
	}
	e := o.StatusError(resp, nil, "")
	e.Text += "; the same credentials are not sent again"
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rejectedHeaders, c.rejection = used, e
}

// acceptHeaders keeps the values in h for redaction, and returns the headers of h that may go into a request: the same map again
// for as long as the Authorizer gives the same, so that merged headers can be reused.
func (c *credentials) acceptHeaders(o *Origin, h http.Header) (http.Header, *transports.Error) {
	if len(h) == 0 {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.usedHeaders != nil && sameHeader(h, c.givenHeaders) {
		return c.usedHeaders, nil
	}
	used, failed := o.usableHeaders(h)
	c.storeHeaders(h)
	c.usedHeaders = used
	return used, failed
}

// storeHeaders makes h the set that was given last, and forgets the oldest beyond maxSecretSets. The caller holds mu.
func (c *credentials) storeHeaders(h http.Header) {
	c.givenHeaders = h.Clone()
	// All values of the headers count, because an Authorizer may put a secret into any of them.
	set := credentialSecrets{headers: c.givenHeaders}
	for _, values := range h {
		for _, v := range values {
			set.values = appendSecret(set.values, v)
		}
	}
	sortSecrets(set.values)
	c.secrets = slices.DeleteFunc(c.secrets, func(s credentialSecrets) bool { return sameHeader(s.headers, h) })
	c.secrets = slices.Insert(c.secrets, 0, set)
	c.secrets = c.secrets[:min(len(c.secrets), maxSecretSets)]
}

// secretValues returns the values that no text may hold, longest first. A nil c has none.
func (c *credentials) secretValues() [][]byte {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all [][]byte
	for _, s := range c.secrets {
		all = append(all, s.values...)
	}
	sortSecrets(all)
	return all
}

// sameHeader reports whether two headers have the same values, in the same order.
func sameHeader(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }

// callRecovering runs code of another package and returns its panic as an error, because the callers that wait for the result
// would wait for ever otherwise.
func callRecovering(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errs.PanicError(v)
		}
	}()
	return f()
}

// appendSecret adds a value that no text may hold, and its words: of "Bearer abc", a server may repeat abc alone. Words below 5
// bytes, and the names of the schemes, would hide harmless text.
func appendSecret(to [][]byte, value string) [][]byte {
	for _, v := range append(strings.Fields(value), value) {
		if len(v) >= 5 && !strings.EqualFold(v, "bearer") && !strings.EqualFold(v, "basic") {
			to = append(to, []byte(v))
		}
	}
	return to
}
