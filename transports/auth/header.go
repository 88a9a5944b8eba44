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
	"github.com/mcpvisor/mcpvisor/transports/internal/pause"
)

// APIKey sends the value of a source in a header of every request.
func APIKey(header string, from Source) transports.Authorizer {
	return newValue(header, "", from)
}

// Bearer sends the value of a source as a bearer token: "Authorization: Bearer …". A value that begins with "Bearer " is sent as
// it is.
func Bearer(from Source) transports.Authorizer {
	return newValue("Authorization", "Bearer ", from)
}

// TokenFile sends the token in a file that another program writes and replaces. It is short for Bearer(File(path)).
func TokenFile(path string) transports.Authorizer { return Bearer(File(path)) }

// headerAuthorizer sets one header whose value comes from a source. Requests read the value in use without a lock; the goroutine
// that reads the source holds readLock, so that a command runs once for many requests.
type headerAuthorizer struct {
	header, prefix string
	source         Source
	// readLock is held while it has an element; a channel, so that waiting ends with a context.
	readLock chan struct{}
	// inUse is nil until the first value was read.
	inUse atomic.Pointer[sourceValue]
}

// sourceValue is a value that a source gave, with the stamp of the source from before the reading.
type sourceValue struct {
	text  string
	stamp fileStamp
}

var _ Awaiter = (*headerAuthorizer)(nil)

// newValue makes an Authorizer that puts prefix before every value.
func newValue(header, prefix string, from Source) *headerAuthorizer {
	return &headerAuthorizer{header: header, prefix: prefix, source: from, readLock: make(chan struct{}, 1)}
}

// Authorize implements transports.Authorizer. An error keeps the request from being sent.
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

// Refused implements transports.Authorizer. It reads the source again, because that may have another value now; the same one
// would be refused again. A 403 is about rights that no other value of this source can be expected to have.
func (v *headerAuthorizer) Refused(ctx context.Context, status int, _ *messages.Challenge, used http.Header) (bool, error) {
	// A fixed source cannot bring another value.
	if status != http.StatusUnauthorized || v.source.fixed {
		return false, nil
	}
	refused := used.Get(v.header)
	// Another request has read a new value since this one was sent.
	if r := v.inUse.Load(); r != nil && r.text != refused {
		return true, nil
	}
	if err := v.lock(ctx); err != nil {
		return false, err
	}
	defer v.unlock()
	// Another request may have read the source while this one waited.
	if r := v.inUse.Load(); r != nil && r.text != refused {
		return true, nil
	}
	r, err := v.readSource(ctx)
	if err != nil {
		return false, err
	}
	return r.text != refused, nil
}

// Await implements Awaiter. It reads a file every two seconds; the other sources show no change by themselves, so that it waits
// for ctx then.
func (v *headerAuthorizer) Await(ctx context.Context, used http.Header) error {
	for {
		if v.source.stamp != nil {
			// The value is compared and not stored: the next request reads it by itself.
			if text, err := v.source.readValue(ctx); err == nil && v.withPrefix(text) != used.Get(v.header) {
				return nil
			}
		}
		if !pause.For(ctx, awaitPeriod) {
			return ctx.Err()
		}
	}
}

// currentValue returns the value in use. It reads the source first if there is no value yet or if the source looks different.
func (v *headerAuthorizer) currentValue(ctx context.Context) (*sourceValue, error) {
	if r := v.inUse.Load(); r != nil && !v.isStale(r) {
		return r, nil
	}
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.unlock()
	// The goroutine that held the lock before may have read the source already.
	before := v.inUse.Load()
	if before != nil && !v.isStale(before) {
		return before, nil
	}
	r, err := v.readSource(ctx)
	if err != nil && before != nil {
		// The file may be being written: the value from before still counts, and the next request tries again.
		return before, nil
	}
	return r, err
}

// isStale reports whether the source has changed since r was read, as far as its stamp shows.
func (v *headerAuthorizer) isStale(r *sourceValue) bool {
	return v.source.stamp != nil && v.source.stamp() != r.stamp
}

// readSource reads the source into inUse. It takes the stamp before the reading, so that a change meanwhile is read again. The
// caller holds readLock.
func (v *headerAuthorizer) readSource(ctx context.Context) (*sourceValue, error) {
	r := &sourceValue{}
	if v.source.stamp != nil {
		// The stamp must be older than the content, never newer.
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

// withPrefix returns text with the prefix, unless it begins with it in any case of letters.
func (v *headerAuthorizer) withPrefix(text string) string {
	if len(text) > len(v.prefix) && strings.EqualFold(text[:len(v.prefix)], v.prefix) {
		return text
	}
	return v.prefix + text
}

// lock takes readLock, or returns an error when ctx ends.
func (v *headerAuthorizer) lock(ctx context.Context) error {
	select {
	case v.readLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx, "reading "+v.source.description)
	}
}

func (v *headerAuthorizer) unlock() { <-v.readLock }

// Awaiter is an Authorizer that can wait for other credentials than those that were refused. The actor of a server that needs
// authorization waits so, and reconnects the server then.
type Awaiter interface {
	transports.Authorizer
	// Await returns nil as soon as there may be credentials other than used, which is empty if there were none. It
	// returns the error of ctx when that ends.
	Await(ctx context.Context, used http.Header) error
}

// awaitPeriod is the pause between two looks at a file or a store, which send no event when they change.
const awaitPeriod = 2 * time.Second

// contextError returns the error for a ctx that has ended while something was being done.
func contextError(ctx context.Context, doing string) *transports.Error {
	if err := ctx.Err(); err == context.DeadlineExceeded {
		return &transports.Error{Class: messages.ClassTimeout, Text: doing + " took too long", Err: err}
	}
	return &transports.Error{Class: messages.ClassCanceled, Text: doing + " was canceled", Err: ctx.Err()}
}
