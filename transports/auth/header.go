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

// value is one header whose value comes from a source. The value in use is read without a lock; the goroutine that reads the
// source holds the turn.
type value struct {
	header, prefix string
	from           Source
	turn           chan struct{}
	inUse          atomic.Pointer[read]
}

// read holds the value that a source gave, and how the source looked before.
type read struct {
	text  string
	stamp stamp
}

var _ Awaiter = (*value)(nil)

func newValue(header, prefix string, from Source) *value {
	return &value{header: header, prefix: prefix, from: from, turn: make(chan struct{}, 1)}
}

// Authorize implements transports.Authorizer.
func (v *value) Authorize(ctx context.Context, h http.Header) error {
	if !httpguts.ValidHeaderFieldName(v.header) {
		return missing("the header "+quote(v.header)+" has a name that HTTP does not allow", "correct it", nil)
	}
	r, err := v.current(ctx)
	if err != nil {
		return err
	}
	h.Set(v.header, r.text)
	return nil
}

// Refused implements transports.Authorizer: the source may have another value now. The same one would be refused again.
func (v *value) Refused(ctx context.Context, status int, _ *messages.Challenge, used http.Header) (bool, error) {
	if status != http.StatusUnauthorized || v.from.fixed {
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
	r, err := v.fetch(ctx)
	if err != nil {
		return false, err
	}
	return r.text != refused, nil
}

// Await implements Awaiter. It looks every two seconds at a source that can be looked at; others never change by
// themselves.
func (v *value) Await(ctx context.Context, used http.Header) error {
	for {
		if v.from.stamp != nil {
			if text, err := v.from.get(ctx); err == nil && v.whole(text) != used.Get(v.header) {
				return nil
			}
		}
		if !pause(ctx, awaitPeriod) {
			return ctx.Err()
		}
	}
}

// current is the value in use, read first if there is none or its source looks different.
func (v *value) current(ctx context.Context) (*read, error) {
	if r := v.inUse.Load(); r != nil && !v.stale(r) {
		return r, nil
	}
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.unlock()
	before := v.inUse.Load()
	if before != nil && !v.stale(before) {
		return before, nil
	}
	r, err := v.fetch(ctx)
	if err != nil && before != nil {
		return before, nil // the next request looks again
	}
	return r, err
}

func (v *value) stale(r *read) bool { return v.from.stamp != nil && v.from.stamp() != r.stamp }

// fetch reads the source. The stamp is from before the reading: what changes meanwhile is read again.
func (v *value) fetch(ctx context.Context) (*read, error) {
	r := &read{}
	if v.from.stamp != nil {
		r.stamp = v.from.stamp()
	}
	text, err := v.from.get(ctx)
	if err != nil {
		return nil, err
	}
	r.text = v.whole(text)
	v.inUse.Store(r)
	return r, nil
}

func (v *value) whole(text string) string {
	if len(text) > len(v.prefix) && strings.EqualFold(text[:len(v.prefix)], v.prefix) {
		return text
	}
	return v.prefix + text
}

func (v *value) lock(ctx context.Context) error {
	select {
	case v.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx, "reading "+v.from.what)
	}
}

func (v *value) unlock() { <-v.turn }

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

// pause reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
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
