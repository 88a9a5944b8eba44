package origin

import (
	"context"
	"errors"
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
// What is known belongs to the credentials themselves, and not to the connection: requests of several callers may carry different
// ones, and a refusal of one caller's says nothing about another's.
type credentials struct {
	authorizer transports.Authorizer

	// mu guards everything below, and the fields of the sets. It is not held while the Authorizer is called.
	mu sync.Mutex
	// sets are the credentials that were given lately, by keyOf, at most maxSets; newest is the one that was given last. uses counts
	// the requests, so that the set whose last use is the oldest can be dropped.
	sets   map[string]*credentialSet
	newest *credentialSet
	uses   uint64
}

// credentialSet is one set of headers that the Authorizer gave, with what the server said of them.
type credentialSet struct {
	// given are the headers as the Authorizer gave them, used those of them that go into a request: the same map for every request,
	// so that merged headers can be reused. values are the secrets in them, in the form of origin.secrets. No code writes to them.
	given, used http.Header
	values      [][]byte
	// unusable says that they hold what HTTP does not allow.
	unusable *transports.Error
	lastUse  uint64

	// runningCall is the call of Refused in progress, nil for none; lastCall is the one before it. rounds counts the calls that
	// have an answer: a request that took its credentials in an earlier round uses the answer and need not ask.
	runningCall, lastCall *refusalCall
	rounds                int
	// rejection is the server's refusal for good, nil if there was none.
	rejection *transports.Error
}

// maxSets bounds the sets of credentials that are remembered: a server can only repeat one that a request under way has carried.
// What is forgotten is asked for, and refused, once more.
const maxSets = 1024

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

// authorizeRequest returns the credentials of a request, and the round in which they were taken. While a call of Refused about the
// same credentials runs it waits for that, because they would be refused again.
func (c *credentials) authorizeRequest(ctx context.Context, o *Origin) (set *credentialSet, round int, _ *transports.Error) {
	for {
		// The Authorizer may read a file, run a program, or renew a token over the network: no lock is held meanwhile.
		h := http.Header{}
		err := callRecovering(func() error { return c.authorizer.Authorize(ctx, h) })
		set, failed := c.setOf(o, h)
		switch {
		case err != nil:
			return nil, 0, o.authError(ctx, err)
		case failed != nil:
			return nil, 0, failed
		}
		c.mu.Lock()
		running := set.runningCall
		if running == nil {
			defer c.mu.Unlock()
			// The server has refused these credentials for good. They are not sent again.
			if set.rejection != nil {
				e := *set.rejection
				return nil, 0, &e
			}
			// A refusal that is answered after this moment may count for this request as well: handleRefusal compares the rounds.
			return set, set.rounds, nil
		}
		c.mu.Unlock()
		select {
		case <-running.done:
		case <-ctx.Done():
			return nil, 0, errs.ContextError(ctx, "authorizing the request to "+o.Label)
		}
	}
}

// handleRefusal asks the Authorizer about a refusal, or takes over the answer to the same refusal of the same credentials that
// another request has got since this one took them. It blocks until there is an answer or ctx ends.
func (c *credentials) handleRefusal(ctx context.Context, o *Origin, set *credentialSet, round, status int,
	challenge *messages.Challenge) (retry bool, _ *transports.Error) {
	scope := ""
	if challenge != nil {
		scope = challenge.Scope
	}
	var call *refusalCall
	for call == nil {
		c.mu.Lock()
		switch q := set.runningCall; {
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
		case set.rounds > round && set.lastCall.isForRefusal(status, scope):
			q = set.lastCall
			c.mu.Unlock()
			return q.retry, q.errorCopy()
		}
		// The call is aborted until there is an answer, so that a panic on the way leaves no wrong one.
		call = &refusalCall{status: status, scope: scope, done: make(chan struct{}), aborted: true}
		set.runningCall = call
		c.mu.Unlock()
	}
	// The others wait for done, so that it is closed also if the Authorizer panics.
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		set.runningCall = nil
		if !call.aborted {
			set.lastCall = call
			set.rounds++
		}
		close(call.done)
	}()
	err := callRecovering(func() (err error) {
		// The Authorizer gets a copy: used may be shared by all requests.
		call.retry, err = c.authorizer.Refused(ctx, status, challenge, set.used.Clone())
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
// because a missing scope concerns one request only. It marks the response if they were those of the request's caller alone.
func (c *credentials) rememberRejection(ctx context.Context, o *Origin, resp *http.Response, set *credentialSet) {
	if resp.StatusCode != http.StatusUnauthorized {
		return
	}
	if c.isCallersOwn(ctx, o, set) {
		marked := context.Background()
		if resp.Request == nil {
			resp.Request = &http.Request{}
		} else {
			marked = resp.Request.Context()
		}
		resp.Request = resp.Request.WithContext(context.WithValue(marked, callersOwnKey{}, true))
	}
	e := o.StatusError(resp, nil, "")
	e.Text += "; the same credentials are not sent again"
	c.mu.Lock()
	defer c.mu.Unlock()
	set.rejection = e
}

// callersOwnKey marks the context of a request whose caller's own credentials the server refused. StatusError reads it.
type callersOwnKey struct{}

// isCallersOwn reports whether credentials that failed were those of the request's caller alone: the connection's own requests
// carry others, or can be authorized where this one could not (set is nil then). It asks the Authorizer for those, because only it
// knows for whom it has which; an Authorizer that does not look at callers gives the same, or the same error.
func (c *credentials) isCallersOwn(ctx context.Context, o *Origin, set *credentialSet) bool {
	if caller := messages.CallerOf(ctx); caller == "" || caller == o.caller || ctx.Err() != nil {
		return false
	}
	h := http.Header{}
	ctx = messages.WithCaller(ctx, o.caller)
	if err := callRecovering(func() error { return c.authorizer.Authorize(ctx, h) }); err != nil {
		return false
	}
	own, failed := c.setOf(o, h)
	if failed != nil || own == set {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return own.rejection == nil
}

// markCallersOwn returns the error of a request that could not be authorized. Where only its caller has no credentials it says so,
// so that the server counts as signed in for all others.
func (c *credentials) markCallersOwn(ctx context.Context, o *Origin, e *transports.Error) *transports.Error {
	if !errors.Is(e, messages.ErrCallerRefused) && c.isCallersOwn(ctx, o, nil) {
		e.Err = callersOwnError(e.Err)
	}
	return e
}

// callersOwnError adds the mark of credentials that were the caller's alone to a cause, which may be nil.
func callersOwnError(cause error) error {
	if cause == nil {
		return messages.ErrCallerRefused
	}
	return errors.Join(messages.ErrCallerRefused, cause)
}

// setOf returns what is known of the credentials in h, which it keeps for redaction. used is the same map again for as long as the
// Authorizer gives the same. An error says that they hold what HTTP does not allow.
func (c *credentials) setOf(o *Origin, h http.Header) (*credentialSet, *transports.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	// Nearly every request carries the same as the one before it.
	if c.newest != nil && sameHeader(h, c.newest.given) {
		c.newest.lastUse = c.uses
		return c.newest, c.newest.unusable
	}
	key := keyOf(h)
	set := c.sets[key]
	if set == nil || !sameHeader(h, set.given) {
		set = &credentialSet{given: h.Clone()}
		// All values of the headers count, because an Authorizer may put a secret into any of them.
		for _, values := range h {
			for _, v := range values {
				set.values = appendSecret(set.values, v)
			}
		}
		sortSecrets(set.values)
		c.storeSet(key, set)
		if len(h) > 0 {
			set.used, set.unusable = o.usableHeaders(h)
		}
	}
	set.lastUse, c.newest = c.uses, set
	return set, set.unusable
}

// storeSet keeps a set, and forgets the one that was used the longest time ago beyond maxSets. The caller holds mu.
func (c *credentials) storeSet(key string, set *credentialSet) {
	if c.sets == nil {
		c.sets = map[string]*credentialSet{}
	}
	c.sets[key] = set
	if len(c.sets) <= maxSets {
		return
	}
	var oldest string
	for k, s := range c.sets {
		if k != key && (oldest == "" || s.lastUse < c.sets[oldest].lastUse) {
			oldest = k
		}
	}
	delete(c.sets, oldest)
}

// keyOf returns a text that is equal for equal headers only.
func keyOf(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		b.WriteString(name)
		for _, v := range h[name] {
			// No value that goes into a request has a NUL, and no name has a line break.
			b.WriteByte(0)
			b.WriteString(v)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// secretValues returns the values that no text may hold, longest first. A nil c has none.
func (c *credentials) secretValues() [][]byte {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all [][]byte
	for _, s := range c.sets {
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
