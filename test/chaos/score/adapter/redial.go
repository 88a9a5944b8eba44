package adapter

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Link is one connection of a client library that does not reconnect by itself.
type Link interface {
	// Lost reports whether the library has reported that the connection is unusable.
	Lost() bool
	Close() error
}

// HealthChecker is a Link that also knows the result of its last health check.
type HealthChecker interface{ Healthy() bool }

// Redial keeps one Link for each server, and connects again at the next use of a lost one, as the documentation of client
// libraries advises. It never sends a call twice. Adapters of bare libraries embed it. Its methods are safe for concurrent use.
type Redial[L Link] struct {
	// Dial connects to a server.
	Dial func(ctx context.Context, s Server) (L, error)

	// mu guards links. It is never held while dialing.
	mu    sync.Mutex
	links map[string]*serverLink[L]
}

// serverLink is one server with its link.
type serverLink[L Link] struct {
	// mu is held while dialing, so that no server is connected twice at once.
	mu        sync.Mutex
	server    Server
	link      L
	connected bool
}

// Connect remembers the server and dials it. A server whose first dial fails is dialed again at its next use.
func (r *Redial[L]) Connect(ctx context.Context, name string, s Server) error {
	r.mu.Lock()
	if r.links == nil {
		r.links = map[string]*serverLink[L]{}
	}
	l := &serverLink[L]{server: s}
	r.links[name] = l
	r.mu.Unlock()
	_, err := r.connectedLink(ctx, l)
	return err
}

// connectedLink returns the link of a server, after dialing it again if it was lost.
func (r *Redial[L]) connectedLink(ctx context.Context, l *serverLink[L]) (L, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connected && !l.link.Lost() {
		return l.link, nil
	}
	if l.connected {
		l.connected = false
		// An error only repeats that it was lost.
		_ = l.link.Close()
	}
	link, err := r.Dial(ctx, l.server)
	if err != nil {
		return link, err
	}
	l.link, l.connected = link, true
	return link, nil
}

// Get returns the link of a server, a new one if the last was lost.
func (r *Redial[L]) Get(ctx context.Context, name string) (link L, err error) {
	r.mu.Lock()
	l := r.links[name]
	r.mu.Unlock()
	if l == nil {
		return link, fmt.Errorf("no server %q", name)
	}
	return r.connectedLink(ctx, l)
}

// Status returns for each server whether its link is connected, unhealthy, disconnected, or being dialed: while mu is held, the
// server counts as connecting.
func (r *Redial[L]) Status(context.Context) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]string{}
	for name, l := range r.links {
		if !l.mu.TryLock() {
			all[name] = "connecting"
			continue
		}
		all[name] = "disconnected"
		if l.connected && !l.link.Lost() {
			all[name] = "connected"
			if c, ok := any(l.link).(HealthChecker); ok && !c.Healthy() {
				all[name] = "unhealthy"
			}
		}
		l.mu.Unlock()
	}
	return all
}

// Close disconnects from one server and forgets it.
func (r *Redial[L]) Close(_ context.Context, name string) error {
	r.mu.Lock()
	l := r.links[name]
	delete(r.links, name)
	r.mu.Unlock()
	if l == nil {
		return errors.New("no such server")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.connected {
		return nil
	}
	l.connected = false
	return l.link.Close()
}

// Quit disconnects from all servers at the same time, and waits for the slowest or for the end of ctx.
func (r *Redial[L]) Quit(ctx context.Context) {
	r.mu.Lock()
	var names []string
	for name := range r.links {
		names = append(names, name)
	}
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, name := range names {
		// Quit has no caller that could use the error.
		all.Go(func() { _ = r.Close(ctx, name) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
