package transports

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// credentials remembers what one connection knows about the credentials that its Authorizer gives it.
type credentials struct {
	authorizer Authorizer

	mu sync.Mutex
	// runningCall is the question about a refusal that is being asked, last the one before it. rounds counts those that
	// have an answer: a request that took its credentials in an earlier round need not ask.
	runningCall, lastCall *refusalCall
	rounds                int
	// givenHeaders are the headers that were given for the newest request, used what of them went into it; rejected those that
	// the server did not want, and what it said. None of them is written to.
	givenHeaders, usedHeaders, rejectedHeaders http.Header
	rejection                                  *Error
	// secrets are the values given lately, newest first, in the form of origin.secrets.
	secrets []credentialSecrets
}

// credentialSecrets are those of one set of headers.
type credentialSecrets struct {
	headers http.Header
	values  [][]byte
}

// maxSecretSets is how many sets of credentials are remembered: what a server repeats belongs to a request that is under
// way.
const maxSecretSets = 8

// refusalCall is one call of Refused. done is closed when the rest is set.
type refusalCall struct {
	status int
	scope  string
	done   chan struct{}

	retry bool
	err   *Error
	// aborted says that the caller who asked gave up: there is no answer.
	aborted bool
}

func (q *refusalCall) isForRefusal(status int, scope string) bool {
	return q.status == status && q.scope == scope
}

// authorizeRequest gives the headers of a request, and the round in which they were taken. While a question is being asked it
// waits for the answer: the credentials that were refused would be refused again.
func (c *credentials) authorizeRequest(ctx context.Context, o *origin) (used http.Header, round int, _ *Error) {
	c.mu.Lock()
	for c.runningCall != nil {
		q := c.runningCall
		c.mu.Unlock()
		select {
		case <-q.done:
		case <-ctx.Done():
			return nil, 0, contextError(ctx, "authorizing the request to "+o.label)
		}
		c.mu.Lock()
	}
	round = c.rounds
	c.mu.Unlock()
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

// handleRefusal asks the Authorizer about a refusal, or adopts the answer to the same question that was asked since the
// request took its credentials.
func (c *credentials) handleRefusal(ctx context.Context, o *origin, round, status int, challenge *messages.Challenge,
	used http.Header) (retry bool, _ *Error) {
	scope := ""
	if challenge != nil {
		scope = challenge.Scope
	}
	var call *refusalCall
	for call == nil {
		c.mu.Lock()
		switch q := c.runningCall; {
		case q != nil:
			c.mu.Unlock()
			select {
			case <-q.done:
			case <-ctx.Done():
				return false, contextError(ctx, "authorizing the request to "+o.label)
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
		call = &refusalCall{status: status, scope: scope, done: make(chan struct{}), aborted: true}
		c.runningCall = call
		c.mu.Unlock()
	}
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
		call.retry, err = c.authorizer.Refused(ctx, status, challenge, used.Clone())
		return err
	})
	if err != nil {
		call.retry, call.err = false, o.authError(ctx, err)
	}
	call.aborted = err != nil && ctx.Err() != nil
	return call.retry, call.errorCopy()
}

// errorCopy is the error, for one caller.
func (q *refusalCall) errorCopy() *Error {
	if q.err == nil {
		return nil
	}
	e := *q.err
	return &e
}

// rememberRejection remembers that the server does not want these credentials, and that there are no others. A refused scope is
// about one request only.
func (c *credentials) rememberRejection(o *origin, resp *http.Response, used http.Header) {
	if resp.StatusCode != http.StatusUnauthorized {
		return
	}
	e := o.statusError(resp, nil, "")
	e.Text += "; the same credentials are not sent again"
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rejectedHeaders, c.rejection = used, e
}

// acceptHeaders keeps the values in h for scrub, and gives what of h may go into a request: the same header again, for as long
// as what is given stays the same.
func (c *credentials) acceptHeaders(o *origin, h http.Header) (http.Header, *Error) {
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

// storeHeaders makes h what was given last.
func (c *credentials) storeHeaders(h http.Header) {
	c.givenHeaders = h.Clone()
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

// secretValues are the values that texts must not hold.
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

func sameHeader(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }

// callRecovering runs code that is not ours and returns its panic as an error, because the callers that wait for the result would wait for
// ever otherwise.
func callRecovering(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicError(v)
		}
	}()
	return f()
}

// appendSecret adds a value that texts must not hold, and its words: of "Bearer abc", a server may repeat abc alone.
func appendSecret(to [][]byte, value string) [][]byte {
	for _, v := range append(strings.Fields(value), value) {
		if len(v) >= 5 && !strings.EqualFold(v, "bearer") && !strings.EqualFold(v, "basic") {
			to = append(to, []byte(v))
		}
	}
	return to
}
