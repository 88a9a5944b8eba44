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
	from Authorizer

	mu sync.Mutex
	// running is the question about a refusal that is being asked, last the one before it. rounds counts those that
	// have an answer: a request that took its credentials in an earlier round need not ask.
	running, last *question
	rounds        int
	// given are the headers that were given for the newest request, used what of them went into it; rejected those that
	// the server did not want, and what it said. None of them is written to.
	given, used, rejected http.Header
	verdict               *Error
	// secrets are the values given lately, newest first, in the form of origin.secrets.
	secrets []heldSecrets
}

// heldSecrets are those of one set of headers.
type heldSecrets struct {
	of     http.Header
	values [][]byte
}

// keptSecrets is how many sets of credentials are remembered: what a server repeats belongs to a request that is under
// way.
const keptSecrets = 8

// question is one call of Refused. done is closed when the rest is set.
type question struct {
	status int
	scope  string
	done   chan struct{}

	again bool
	err   *Error
	// aborted says that the caller who asked gave up: there is no answer.
	aborted bool
}

func (q *question) same(status int, scope string) bool { return q.status == status && q.scope == scope }

// authorize gives the headers of a request, and the round in which they were taken. While a question is being asked it
// waits for the answer: the credentials that were refused would be refused again.
func (c *credentials) authorize(ctx context.Context, o *origin) (used http.Header, round int, _ *Error) {
	c.mu.Lock()
	for c.running != nil {
		q := c.running
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
	err := guarded(func() error { return c.from.Authorize(ctx, h) })
	used, failed := c.remember(o, h)
	switch {
	case err != nil:
		return nil, 0, o.authError(ctx, err)
	case failed != nil:
		return nil, 0, failed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdict == nil {
		return used, round, nil
	}
	if sameHeader(used, c.rejected) {
		e := *c.verdict
		return nil, 0, &e
	}
	c.verdict, c.rejected = nil, nil
	return used, round, nil
}

// refused asks the Authorizer about a refusal, or adopts the answer to the same question that was asked since the
// request took its credentials.
func (c *credentials) refused(ctx context.Context, o *origin, round, status int, challenge *messages.Challenge,
	used http.Header) (again bool, _ *Error) {
	scope := ""
	if challenge != nil {
		scope = challenge.Scope
	}
	var mine *question
	for mine == nil {
		c.mu.Lock()
		switch q := c.running; {
		case q != nil:
			c.mu.Unlock()
			select {
			case <-q.done:
			case <-ctx.Done():
				return false, contextError(ctx, "authorizing the request to "+o.label)
			}
			if !q.aborted && q.same(status, scope) {
				return q.again, q.copy()
			}
			continue
		case c.rounds > round && c.last.same(status, scope):
			q = c.last
			c.mu.Unlock()
			return q.again, q.copy()
		}
		mine = &question{status: status, scope: scope, done: make(chan struct{}), aborted: true}
		c.running = mine
		c.mu.Unlock()
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running = nil
		if !mine.aborted {
			c.last = mine
			c.rounds++
		}
		close(mine.done)
	}()
	err := guarded(func() (err error) {
		mine.again, err = c.from.Refused(ctx, status, challenge, used.Clone())
		return err
	})
	if err != nil {
		mine.again, mine.err = false, o.authError(ctx, err)
	}
	mine.aborted = err != nil && ctx.Err() != nil
	return mine.again, mine.copy()
}

// copy is the error, for one caller.
func (q *question) copy() *Error {
	if q.err == nil {
		return nil
	}
	e := *q.err
	return &e
}

// reject remembers that the server does not want these credentials, and that there are no others. A refused scope is
// about one request only.
func (c *credentials) reject(o *origin, resp *http.Response, used http.Header) {
	if resp.StatusCode != http.StatusUnauthorized {
		return
	}
	e := o.statusError(resp, nil, "")
	e.Text += "; the same credentials are not sent again"
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rejected, c.verdict = used, e
}

// remember keeps the values in h for scrub, and gives what of h may go into a request: the same header again, for as long
// as what is given stays the same.
func (c *credentials) remember(o *origin, h http.Header) (http.Header, *Error) {
	if len(h) == 0 {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used != nil && sameHeader(h, c.given) {
		return c.used, nil
	}
	used, failed := o.usable(h)
	c.keep(h)
	c.used = used
	return used, failed
}

// keep makes h what was given last.
func (c *credentials) keep(h http.Header) {
	c.given = h.Clone()
	set := heldSecrets{of: c.given}
	for _, values := range h {
		for _, v := range values {
			set.values = appendSecret(set.values, v)
		}
	}
	sortSecrets(set.values)
	c.secrets = slices.DeleteFunc(c.secrets, func(s heldSecrets) bool { return sameHeader(s.of, h) })
	c.secrets = slices.Insert(c.secrets, 0, set)
	c.secrets = c.secrets[:min(len(c.secrets), keptSecrets)]
}

// held are the values that texts must not hold.
func (c *credentials) held() [][]byte {
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

// guarded runs code that is not ours and returns its panic as an error, because the callers that wait for the result would wait for
// ever otherwise.
func guarded(f func() error) (err error) {
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
