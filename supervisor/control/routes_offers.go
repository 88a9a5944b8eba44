package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// listing is a list of which parts may be missing.
type listing[T any] struct {
	Items    []T       `json:"items"`
	Failures []failure `json:"failures,omitempty"`
}

// listed is what travels of a list: errors do not take the rest away.
func listed[T any](items []T, err error) (any, error) {
	l := listing[T]{Items: items}
	if l.Items == nil {
		l.Items = []T{}
	}
	for _, e := range each(err) {
		l.Failures = append(l.Failures, failureOf(e))
	}
	return l, nil
}

// each are the errors that one is made of.
func each(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok { // the outermost one alone
		return several.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

func (l listing[T]) err() error {
	var errs []error
	for _, f := range l.Failures {
		errs = append(errs, f.error())
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// completeAsk is what is asked on pathComplete, besides the server.
type completeAsk = messages.CompleteRequest

// pong is the answer on pathPing.
type pong struct {
	Took time.Duration `json:"took"` // in nanoseconds
}

// offers adds the routes that answer with one JSON value.
func offers(b Backend, answer func(pattern string, f func(ctx context.Context, r *http.Request) (any, error))) {
	answer("GET "+pathResources, func(ctx context.Context, r *http.Request) (any, error) {
		return listed(b.Resources(ctx, r.URL.Query()["server"]...))
	})
	answer("GET "+pathTemplates, func(ctx context.Context, r *http.Request) (any, error) {
		return listed(b.Templates(ctx, r.URL.Query()["server"]...))
	})
	answer("GET "+pathPrompts, func(ctx context.Context, r *http.Request) (any, error) {
		return listed(b.Prompts(ctx, r.URL.Query()["server"]...))
	})
	answer("POST "+pathComplete, func(ctx context.Context, r *http.Request) (any, error) {
		var c completeAsk
		if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxArgs)).Decode(&c); err != nil {
			return nil, malformed("body", err.Error())
		}
		return b.Complete(ctx, r.URL.Query().Get("server"), c)
	})
	answer("POST "+pathPing, func(ctx context.Context, r *http.Request) (any, error) {
		took, err := b.Ping(ctx, r.URL.Query().Get("server"))
		return pong{took}, err
	})
	answer("GET "+pathLogs, func(ctx context.Context, r *http.Request) (any, error) {
		return b.Logs(ctx, r.URL.Query().Get("server"))
	})
}
