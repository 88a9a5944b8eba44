package auth

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// APIKey puts the value of a source into a header of every request.
func APIKey(header string, from Source) transports.Authorizer {
	return newValue(header, "", from)
}

// Bearer sends the value of a source as a bearer token: "Authorization: Bearer …". A value that begins with "Bearer "
// is taken as it is.
func Bearer(from Source) transports.Authorizer {
	return newValue("Authorization", "Bearer ", from)
}

// TokenFile is Bearer(File(path)): a token that another program writes, and replaces when it must.
func TokenFile(path string) transports.Authorizer { return Bearer(File(path)) }

// headerAuthorizer is one header whose value comes from a source. The value in use is read without a lock; the goroutine that reads the
// source holds the turn.
type headerAuthorizer struct {
	header, prefix string
	source         Source
	readLock       chan struct{}
	inUse          atomic.Pointer[sourceValue]
}

// sourceValue holds the value that a source gave, and how the source looked before.
type sourceValue struct {
	text  string
	stamp fileStamp
}

var _ Awaiter = (*headerAuthorizer)(nil)

func newValue(header, prefix string, from Source) *headerAuthorizer {
	return &headerAuthorizer{header: header, prefix: prefix, source: from, readLock: make(chan struct{}, 1)}
}

// Authorize implements transports.Authorizer.
func (v *headerAuthorizer) Authorize(ctx context.Context, h http.Header) error {
	if !httpguts.ValidHeaderFieldName(v.header) {
		return noCredentialsError("the header "+quoteLine(v.header)+" has a name that HTTP does not allow", "correct it", nil)
	}
	r, err := v.currentValue(ctx)
	if err != nil {
		return err
	}
	h.Set(v.header, r.text)
	return nil
}

// Refused implements transports.Authorizer: the source may have another value now. The same one would be refused again.
func (v *headerAuthorizer) Refused(ctx context.Context, status int, _ *messages.Challenge, used http.Header) (bool, error) {
	if status != http.StatusUnauthorized || v.source.fixed {
		return false, nil
	}
	refused := used.Get(v.header)
	if r := v.inUse.Load(); r != nil && r.text != refused {
		return true, nil
	}
	if err := v.lock(ctx); err != nil {
		return false, err
	}
	defer v.unlock()
	if r := v.inUse.Load(); r != nil && r.text != refused {
		return true, nil
	}
	r, err := v.readSource(ctx)
	if err != nil {
		return false, err
	}
	return r.text != refused, nil
}

// Await implements Awaiter. It looks every two seconds at a source that can be looked at; others never change by
// themselves.
func (v *headerAuthorizer) Await(ctx context.Context, used http.Header) error {
	for {
		if v.source.stamp != nil {
			if text, err := v.source.readValue(ctx); err == nil && v.withPrefix(text) != used.Get(v.header) {
				return nil
			}
		}
		if !sleepContext(ctx, awaitPeriod) {
			return ctx.Err()
		}
	}
}

// currentValue is the value in use, read first if there is none or its source looks different.
func (v *headerAuthorizer) currentValue(ctx context.Context) (*sourceValue, error) {
	if r := v.inUse.Load(); r != nil && !v.isStale(r) {
		return r, nil
	}
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.unlock()
	before := v.inUse.Load()
	if before != nil && !v.isStale(before) {
		return before, nil
	}
	r, err := v.readSource(ctx)
	if err != nil && before != nil {
		return before, nil // the next request looks again
	}
	return r, err
}

func (v *headerAuthorizer) isStale(r *sourceValue) bool {
	return v.source.stamp != nil && v.source.stamp() != r.stamp
}

// readSource reads the source. The stamp is from before the reading: what changes meanwhile is read again.
func (v *headerAuthorizer) readSource(ctx context.Context) (*sourceValue, error) {
	r := &sourceValue{}
	if v.source.stamp != nil {
		r.stamp = v.source.stamp()
	}
	text, err := v.source.readValue(ctx)
	if err != nil {
		return nil, err
	}
	r.text = v.withPrefix(text)
	v.inUse.Store(r)
	return r, nil
}

func (v *headerAuthorizer) withPrefix(text string) string {
	if len(text) > len(v.prefix) && strings.EqualFold(text[:len(v.prefix)], v.prefix) {
		return text
	}
	return v.prefix + text
}

func (v *headerAuthorizer) lock(ctx context.Context) error {
	select {
	case v.readLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx, "reading "+v.source.description)
	}
}

func (v *headerAuthorizer) unlock() { <-v.readLock }

// Awaiter is an Authorizer that can tell when it has other credentials than those that were refused: what a server that
// needs authorization waits for.
type Awaiter interface {
	transports.Authorizer
	// Await returns nil as soon as there may be credentials other than used, which is empty if there were none. It
	// returns the error of ctx when that ends.
	Await(ctx context.Context, used http.Header) error
}

// awaitPeriod is how often a place is looked at that does not tell of its changes.
const awaitPeriod = 2 * time.Second

// sleepContext reports false if ctx ended first.
func sleepContext(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// contextError says that ctx has ended while something was being done.
func contextError(ctx context.Context, doing string) *transports.Error {
	if err := ctx.Err(); err == context.DeadlineExceeded {
		return &transports.Error{Class: messages.ClassTimeout, Text: doing + " took too long", Err: err}
	}
	return &transports.Error{Class: messages.ClassCanceled, Text: doing + " was canceled", Err: ctx.Err()}
}
