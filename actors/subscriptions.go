package actors

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// maxWatched bounds the resources that are watched at one server.
const maxWatched = 1024

// Subscriptions is which resources of a server somebody wants to be told about. It outlives connections, and ends with the
// server: after each handshake the server is asked again. Safe for concurrent use.
type Subscriptions struct {
	mu   sync.Mutex
	uris map[string]bool // whether a server has agreed once
}

// addURI notes the wish. It reports false if there are too many.
func (w *Subscriptions) addURI(uri string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.uris[uri]; known {
		return true
	}
	if len(w.uris) >= maxWatched {
		return false
	}
	if w.uris == nil {
		w.uris = map[string]bool{}
	}
	w.uris[uri] = false
	return true
}

// noteAgreement notes what came of the question: a wish that no server ever agreed to is forgotten.
func (w *Subscriptions) noteAgreement(uri string, agreed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, known := w.uris[uri]
	switch {
	case !known: // somebody took it back meanwhile
	case agreed:
		w.uris[uri] = true
	case !was:
		delete(w.uris, uri)
	}
}

// removeURI takes the wish back.
func (w *Subscriptions) removeURI(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.uris, uri)
}

// hasURI reports whether anything is watched, and whether this is.
func (w *Subscriptions) hasURI(uri string) (some, this bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, this = w.uris[uri]
	return len(w.uris) > 0, this
}

// URIs are the resources that are watched, sorted.
func (w *Subscriptions) URIs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.uris))
}

// Subscribe watches a resource: it returns when the server has agreed, and every later connection of the server is asked
// for the same. The error is a *messages.Error with Op "read"; the resource is not watched then, unless it was before.
func (c *Calls) Subscribe(ctx context.Context, server, uri string) error {
	cell := c.Cell(server)
	if cell != nil && !cell.Subscriptions.addURI(uri) {
		return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted, Server: server,
			Text: "1,024 of its resources are watched already", Fix: "unsubscribe from others first"}
	}
	err := c.SendRequest(ctx, Request{Server: server, Repeatable: true, SkipsQueue: true, Send: func(ctx context.Context, s *session.Session) error {
		return s.Subscribe(ctx, uri)
	}})
	if cell != nil {
		cell.Subscriptions.noteAgreement(uri, err == nil)
	}
	return err
}

// Unsubscribe ends what Subscribe began. A server that is not connected is not asked: there is nothing to end.
func (c *Calls) Unsubscribe(ctx context.Context, server, uri string) error {
	cell := c.Cell(server)
	if cell != nil {
		cell.Subscriptions.removeURI(uri)
		if cell.View().State.Phase != messages.Connected {
			return nil
		}
	}
	err := c.SendRequest(ctx, Request{Server: server, Repeatable: false, SkipsQueue: true, Send: func(ctx context.Context, s *session.Session) error {
		return s.Unsubscribe(ctx, uri)
	}})
	if cell != nil && errors.Is(err, messages.ErrNotSent) && cell.View().State.Phase != messages.Connected {
		return nil
	}
	return err
}

// resubscribeAll asks a new connection for what is watched, one after the other. A resource that is refused stays on the
// list: the server of the next connection may have it again.
// hide takes the server's secrets out of a text.
func (a *attempt) resubscribeAll(
	sess *session.Session, watched *Subscriptions, timeout time.Duration, hide func(string) string, log *zap.Logger,
) {
	uris := watched.URIs()
	if len(uris) == 0 {
		return
	}
	a.runningSteps.Add(1)
	go func() { // ends with the session, or after a timeout for each
		defer a.runningSteps.Done()
		labelGoroutine(a.name, a.spec)
		defer func() {
			if r := recover(); r != nil {
				log.Error("panic while subscribing again", zap.String("server", a.name), zap.Any("panic", r))
			}
		}()
		for _, uri := range uris {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			err := sess.Subscribe(ctx, uri)
			cancel()
			select {
			case <-sess.Dead():
				return
			default:
			}
			if err != nil {
				log.Warn("a resource is not watched any more", zap.String("server", a.name),
					zap.String("error", hide(err.Error())))
			}
		}
	}()
}
