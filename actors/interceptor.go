package actors

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Handler sees a request through to its end. The error, if any, is a *messages.Error with the request's outcome.
type Handler func(ctx context.Context, r *Request) error

// Interceptor is one link of the chain that every request passes: a pair of functions that are called before and after all that
// follows, or one function around it. [Compose] makes one Handler of a list of them.
//
// A pair is for what every call passes, because neighbouring pairs have one frame on the stack together, and none while the
// request waits; an Around is for what must decide how often, or in which goroutine, the rest runs.
type Interceptor struct {
	// Name is for readers of the list.
	Name string
	// Before is called on the way in; nil does nothing. Its error ends the request: nothing that follows is called, nor its own After.
	Before func(ctx context.Context, r *Request) error
	// After is called on the way out with the error that the request has so far, and returns the one that the caller gets; nil
	// changes nothing. It is called as well if a function of the program panics; the panic goes on afterwards.
	After func(ctx context.Context, r *Request, err error) error
	// Around returns a Handler that calls next, or does not. A link with an Around has neither Before nor After.
	Around func(next Handler) Handler
}

// Compose returns last with the links around it, the first one outermost. A manager composes its chain once: a link that it does
// not need is not in the list, and costs nothing.
func Compose(links []Interceptor, last Handler) Handler {
	next := last
	for end := len(links); end > 0; {
		if around := links[end-1].Around; around != nil {
			next, end = around(next), end-1
			continue
		}
		begin := end - 1
		for begin > 0 && links[begin-1].Around == nil {
			begin--
		}
		next, end = handlePairs(links[begin:end], next), begin
	}
	return next
}

// handlePairs returns one Handler for neighbouring pairs. It is a single function with a loop, because a function for each pair
// would keep its frame on the stack of every call that waits: see test/bench/supervision.
func handlePairs(pairs []Interceptor, next Handler) Handler {
	return func(ctx context.Context, r *Request) (err error) {
		entered, returned := 0, false
		defer func() {
			if !returned {
				err = panickedError(r)
			}
			for entered > 0 {
				entered--
				if after := pairs[entered].After; after != nil {
					err = after(ctx, r, err)
				}
			}
		}()
		for ; entered < len(pairs); entered++ {
			if before := pairs[entered].Before; before != nil {
				if err = before(ctx, r); err != nil {
					returned = true
					return err
				}
			}
		}
		err = next(ctx, r)
		returned = true
		return err
	}
}

// panickedError returns the error that the links before a program's function get when that function panics, so that the record and
// the watchers have an end of the request. The panic itself goes on to the caller.
func panickedError(r *Request) error {
	return &messages.Error{Op: r.Operation(), Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a function of the program panicked"}
}
