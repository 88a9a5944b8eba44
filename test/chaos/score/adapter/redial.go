package adapter

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Link is one connection of a client library that does not reconnect by itself.
type Link interface {
	// Lost reports whether the library has said that the connection is of no use any more.
	Lost() bool
	Close() error
}

// HealthChecker is a Link that also knows what its last health check said.
type HealthChecker interface{ Healthy() bool }

// Redial keeps one Link for each server, and connects anew at the next use of one that was lost, as the documentations of
// client libraries advise. It never sends anything twice. It is what the adapters of bare libraries are made of.
type Redial[L Link] struct {
	// Dial connects.
	Dial func(ctx context.Context, s Server) (L, error)

	mu    sync.Mutex
	links map[string]*serverLink[L]
}

type serverLink[L Link] struct {
	mu        sync.Mutex // held while dialling, so that a server is never connected twice
	server    Server
	link      L
	connected bool
}

// Connect remembers the server and dials it.
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

func (r *Redial[L]) connectedLink(ctx context.Context, l *serverLink[L]) (L, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connected && !l.link.Lost() {
		return l.link, nil
	}
	if l.connected {
		l.connected = false
		_ = l.link.Close() // it is lost
	}
	link, err := r.Dial(ctx, l.server)
	if err != nil {
		return link, err
	}
	l.link, l.connected = link, true
	return link, nil
}

// Get gives the link of a server, a new one if the last was lost.
func (r *Redial[L]) Get(ctx context.Context, name string) (link L, err error) {
	r.mu.Lock()
	l := r.links[name]
	r.mu.Unlock()
	if l == nil {
		return link, fmt.Errorf("no server %q", name)
	}
	return r.connectedLink(ctx, l)
}

// Status says of each server whether its link stands; dialling is a state of its own.
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

// Close disconnects from one server.
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

// Quit disconnects from all, side by side, and waits for the slowest or for the end of ctx.
func (r *Redial[L]) Quit(ctx context.Context) {
	r.mu.Lock()
	var names []string
	for name := range r.links {
		names = append(names, name)
	}
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { _ = r.Close(ctx, name) }) // there is nobody to tell
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
