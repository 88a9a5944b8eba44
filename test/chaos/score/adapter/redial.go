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

// Checked is a Link that also knows what its last health check said.
type Checked interface{ Healthy() bool }

// Redial keeps one Link for each server, and connects anew at the next use of one that was lost, as the documentations of
// client libraries advise. It never sends anything twice. It is what the adapters of bare libraries are made of.
type Redial[L Link] struct {
	// Dial connects.
	Dial func(ctx context.Context, s Server) (L, error)

	mu    sync.Mutex
	lines map[string]*line[L]
}

type line[L Link] struct {
	mu     sync.Mutex // held while dialling, so that a server is never connected twice
	server Server
	link   L
	open   bool
}

// Connect remembers the server and dials it.
func (r *Redial[L]) Connect(ctx context.Context, name string, s Server) error {
	r.mu.Lock()
	if r.lines == nil {
		r.lines = map[string]*line[L]{}
	}
	l := &line[L]{server: s}
	r.lines[name] = l
	r.mu.Unlock()
	_, err := r.get(ctx, l)
	return err
}

func (r *Redial[L]) get(ctx context.Context, l *line[L]) (L, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open && !l.link.Lost() {
		return l.link, nil
	}
	if l.open {
		l.open = false
		_ = l.link.Close() // it is lost
	}
	link, err := r.Dial(ctx, l.server)
	if err != nil {
		return link, err
	}
	l.link, l.open = link, true
	return link, nil
}

// Get gives the link of a server, a new one if the last was lost.
func (r *Redial[L]) Get(ctx context.Context, name string) (link L, err error) {
	r.mu.Lock()
	l := r.lines[name]
	r.mu.Unlock()
	if l == nil {
		return link, fmt.Errorf("no server %q", name)
	}
	return r.get(ctx, l)
}

// Status says of each server whether its link stands; dialling is a state of its own.
func (r *Redial[L]) Status(context.Context) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]string{}
	for name, l := range r.lines {
		if !l.mu.TryLock() {
			all[name] = "connecting"
			continue
		}
		all[name] = "disconnected"
		if l.open && !l.link.Lost() {
			all[name] = "connected"
			if c, ok := any(l.link).(Checked); ok && !c.Healthy() {
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
	l := r.lines[name]
	delete(r.lines, name)
	r.mu.Unlock()
	if l == nil {
		return errors.New("no such server")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return nil
	}
	l.open = false
	return l.link.Close()
}

// Quit disconnects from all, side by side, and waits for the slowest or for the end of ctx.
func (r *Redial[L]) Quit(ctx context.Context) {
	r.mu.Lock()
	var names []string
	for name := range r.lines {
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
