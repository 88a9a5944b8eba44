package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A partialList is a list of which parts may be missing, with the reasons.
type partialList[T any] struct {
	Items    []T       `json:"items"`
	Failures []failure `json:"failures,omitempty"`
}

// newPartialList returns the form in which a list and its errors travel. It never returns an error itself: the items
// of the servers that answered must arrive.
func newPartialList[T any](items []T, err error) (any, error) {
	l := partialList[T]{Items: items}
	if l.Items == nil {
		// nil would become null, which a reader in another language could stumble over.
		l.Items = []T{}
	}
	for _, e := range splitErrors(err) {
		l.Failures = append(l.Failures, failureOf(e))
	}
	return l, nil
}

// splitErrors returns the errors that err joins.
func splitErrors(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok { // only the outermost level: deeper ones belong to one server
		return several.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// joinedError returns the failures as one error, nil if there are none.
func (l partialList[T]) joinedError() error {
	var errs []error
	for _, f := range l.Failures {
		errs = append(errs, f.toError())
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// completeRequest is the body of a request on pathComplete.
type completeRequest = messages.CompleteRequest

// pingReply is the answer on pathPing.
type pingReply struct {
	// Took is in nanoseconds, measured on the answering side, so the socket's own time is not in it.
	Took time.Duration `json:"took"`
}

// addJSONRoutes adds the routes of lists and small requests that answer with one JSON value.
func addJSONRoutes(b Backend, answer func(pattern string, f func(ctx context.Context, r *http.Request) (any, error))) {
	// The lists use GET: they change nothing, although they may connect to a lazy server.
	answer("GET "+pathResources, func(ctx context.Context, r *http.Request) (any, error) {
		return newPartialList(b.Resources(ctx, r.URL.Query()["server"]...))
	})
	answer("GET "+pathTemplates, func(ctx context.Context, r *http.Request) (any, error) {
		return newPartialList(b.Templates(ctx, r.URL.Query()["server"]...))
	})
	answer("GET "+pathPrompts, func(ctx context.Context, r *http.Request) (any, error) {
		return newPartialList(b.Prompts(ctx, r.URL.Query()["server"]...))
	})
	// These two ask a server, so a peer that may only read cannot send them.
	answer("POST "+pathComplete, func(ctx context.Context, r *http.Request) (any, error) {
		var c completeRequest
		if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxArgs)).Decode(&c); err != nil {
			return nil, malformedError("body", err.Error())
		}
		return b.Complete(ctx, r.URL.Query().Get("server"), c)
	})
	answer("POST "+pathPing, func(ctx context.Context, r *http.Request) (any, error) {
		elapsed, err := b.Ping(ctx, r.URL.Query().Get("server"))
		return pingReply{elapsed}, err
	})
	answer("GET "+pathLogs, func(ctx context.Context, r *http.Request) (any, error) {
		return b.Logs(ctx, r.URL.Query().Get("server"))
	})
}
