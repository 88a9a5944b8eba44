package control

import (
	"context"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

type elicit = func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error)

// Relay hands what a server asks of the person to who is waiting for that server: a caller on the control socket sits
// at a terminal of its own. Safe for concurrent use; the zero value is ready, and nil relays nothing.
type Relay struct {
	mu      sync.Mutex
	callers []*caller // the newest last
}

type caller struct {
	server string
	ask    elicit
}

// attach makes ask answer the questions of a server until the result is called.
func (r *Relay) attach(server string, ask elicit) (detach func()) {
	if r == nil || ask == nil || server == "" {
		return func() {}
	}
	c := &caller{server, ask}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers = append(r.callers, c)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.callers = slices.DeleteFunc(r.callers, func(other *caller) bool { return other == c })
	}
}

// Elicit is for supervisor.Config: it asks the newest caller who waits for the server, and otherwise whom it is given;
// so also if that caller goes away before it has answered. A server does not say which request its question is about:
// with several callers at the same server, one may be asked what another's call has led to.
func (r *Relay) Elicit(otherwise elicit) elicit {
	return func(ctx context.Context, q messages.ElicitRequest) (messages.ElicitResult, error) {
		r.mu.Lock()
		var ask elicit
		for _, c := range r.callers {
			if c.server == q.Server {
				ask = c.ask
			}
		}
		r.mu.Unlock()
		if ask != nil {
			res, err := ask(ctx, q)
			if err == nil || ctx.Err() != nil {
				return res, err
			}
		}
		return otherwise(ctx, q)
	}
}
