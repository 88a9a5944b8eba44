package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Client is the client under test, as its user sees it: one client of one server. Run calls its methods concurrently; every ctx has
// a deadline.
type Client interface {
	// Tools returns the names of the tools that the client would offer now.
	Tools(ctx context.Context) ([]string, error)
	// Call calls a tool and returns the first text of its result. An error means that there is no result, also if nobody knows
	// whether the tool ran.
	Call(ctx context.Context, tool string, arguments map[string]any) (text string, err error)
	// Close ends the client and everything that it has opened.
	Close() error
}

// OutcomeKnower is a Client that says of an error of Call whether the call has certainly not been sent. It is held to it.
type OutcomeKnower interface{ NotSent(err error) bool }

// ProgressCaller is a Client that can tell of the progress of a call. It is held to telling of nothing that belongs to another call:
// message is that of the server's notification, and progress is called with no other.
type ProgressCaller interface {
	CallWithProgress(ctx context.Context, tool string, arguments map[string]any, progress func(message string)) (text string, err error)
}

// Server is how a client reaches one server of a day. A day with several servers dials a client for each.
type Server struct {
	// Name is unique in a day.
	Name string
	// URL and HTTP reach a server over HTTP: the client must send its requests with HTTP, because there is no network. URL is empty
	// for a server over stdio.
	URL  string
	HTTP *http.Client

	open func(ctx context.Context) (io.ReadWriteCloser, error)
}

// Open starts a server over stdio (one without a URL), as a client starts a process, and returns its standard input and output: a message per line. A
// client opens one at a time, and closes it before the next one; closing it ends the process.
func (s *Server) Open(ctx context.Context) (io.ReadWriteCloser, error) { return s.open(ctx) }

// Dial makes a client of a server. A client that connects again by itself opens the server whenever it wants; one that does not is
// dialled by [Redial].
type Dial func(ctx context.Context, s *Server) (Client, error)

// Redial is the Dial of a client that does not connect again by itself, as those of bare libraries: at the first use after its
// connection has ended, or after it said so by a method Lost() bool, it is closed and dialled anew, and no call is made twice. That is
// what the documentation of such libraries shows. dial gets the stream of a server over stdio.
func Redial(dial func(ctx context.Context, stream io.ReadWriteCloser) (Client, error)) Dial {
	return func(_ context.Context, s *Server) (Client, error) {
		return &redialer{connect: func(ctx context.Context) (Client, func() bool, error) {
			stream, err := s.Open(ctx)
			if err != nil {
				return nil, nil, err
			}
			c, err := dial(ctx, stream)
			if err != nil {
				_ = stream.Close() // the first error counts
				return nil, nil, err
			}
			return c, func() bool { e, ok := stream.(interface{ Ended() bool }); return ok && e.Ended() }, nil
		}}, nil
	}
}

// RedialHTTP is [Redial] for a server over HTTP. A client whose session has ended says so by its method Lost() bool, or starts a new
// one by itself.
func RedialHTTP(dial func(ctx context.Context, url string, c *http.Client) (Client, error)) Dial {
	return func(_ context.Context, s *Server) (Client, error) {
		return &redialer{connect: func(ctx context.Context) (Client, func() bool, error) {
			c, err := dial(ctx, s.URL, s.HTTP)
			return c, func() bool { return false }, err
		}}, nil
	}
}

// redialer is the client of Redial.
type redialer struct {
	connect func(ctx context.Context) (c Client, ended func() bool, err error)

	// dialing holds one token while nobody dials: unlike a mutex it can be given up when ctx ends.
	dialing chan struct{}
	once    sync.Once
	// The holder of the token uses these.
	client Client
	ended  func() bool
	closed bool
}

// currentClient returns the client of a connection that stands, a new one if the last has ended.
func (r *redialer) currentClient(ctx context.Context) (Client, error) {
	r.once.Do(func() { r.dialing = make(chan struct{}, 1) })
	select {
	case r.dialing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-r.dialing }()
	if r.closed {
		return nil, fmt.Errorf("the client is closed")
	}
	if r.client != nil {
		lost, ok := r.client.(interface{ Lost() bool })
		if !r.ended() && !(ok && lost.Lost()) {
			return r.client, nil
		}
		_ = r.client.Close() // an error only repeats that it was lost
		r.client = nil
	}
	c, ended, err := r.connect(ctx)
	if err == nil && c == nil {
		err = errNoClient
	}
	if err != nil {
		return nil, err
	}
	r.client, r.ended = c, ended
	return c, nil
}

// Tools implements Client.
func (r *redialer) Tools(ctx context.Context) ([]string, error) {
	c, err := r.currentClient(ctx)
	if err != nil {
		return nil, err
	}
	return c.Tools(ctx)
}

// Call implements Client.
func (r *redialer) Call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	c, err := r.currentClient(ctx)
	if err != nil {
		return "", err
	}
	return c.Call(ctx, tool, arguments)
}

// CallWithProgress implements ProgressCaller; a client that cannot tell of progress tells of none.
func (r *redialer) CallWithProgress(ctx context.Context, tool string, arguments map[string]any, progress func(string)) (string, error) {
	c, err := r.currentClient(ctx)
	if err != nil {
		return "", err
	}
	if p, ok := c.(ProgressCaller); ok {
		return p.CallWithProgress(ctx, tool, arguments, progress)
	}
	return c.Call(ctx, tool, arguments)
}

// Close implements Client.
func (r *redialer) Close() error {
	r.once.Do(func() { r.dialing = make(chan struct{}, 1) })
	r.dialing <- struct{}{}
	defer func() { <-r.dialing }()
	r.closed = true
	if r.client == nil {
		return nil
	}
	return r.client.Close()
}
