// Package stream is the transport for a server behind any stream of bytes that carries one JSON-RPC message per line, as a server over
// stdio writes them: a channel of SSH, a Unix socket, a serial line, the two ends of a pipe.
//
//	Transport: func(name string, spec supervisor.Spec) (transports.Transport, error) {
//		if spec.Type != "ssh" {
//			return nil, nil
//		}
//		return stream.New(func(ctx context.Context) (io.ReadWriteCloser, error) { return openChannel(ctx, spec.URL) }), nil
//	},
//
// # How it fits
//
//	session ── Send ──> writequeue.Queue ──> the stream ──> lines.Splitter ──> Sink
//
// The program opens the stream; this package frames, bounds, redacts and ends. An idle connection has one goroutine, which reads;
// another one writes while there is something to write.
//
// # Guarantees
//
//   - Messages are written whole and in the order of Send; their bytes come as they were sent, in both directions.
//   - A message over MaxMessage costs itself and not the connection; a line that is no message is noise.
//   - The end of the stream, an error of it, or a panic or a runtime.Goexit in its methods ends this connection and nothing else.
//   - A stream whose Read, Write, Close, or whose dial, does not return holds up Close for at most Grace each: its goroutine is left
//     behind then, and ends when the method returns.
//
// # Credentials
//
// Lines have no headers, so that nothing asks the Authorizer of Config.AuthProvider for a server on a stream. Credentials belong into
// dial: an SSH key, a TLS certificate, a token that is written before the first line. messages.CallerOf finds in its ctx for whom an
// instance is dialled (share "principal"). What must go with each request goes into its _meta, by an interceptor (Request.Meta).
//
// # Not promised
//
// A write that failed may have reached the peer, whatever number of bytes the stream reports: it is MaybeWritten. A stream that is
// silent because its network is gone looks like one that is idle: the manager's questions for life find that out.
package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
)

// Kind is what Transport.Kind returns unless Name is set.
const Kind messages.TransportKind = "stream"

// Transport opens streams with the program's own function. Its fields are read by Dial: set them before.
type Transport struct {
	// Name is the kind that the transport has in logs and in a status; empty is [Kind].
	Name messages.TransportKind
	// MaxMessage is the limit of one incoming message in bytes; 0 is 16 MiB.
	MaxMessage int64
	// Grace is the time that a method of the stream which does not return is waited for after the connection has ended; 0 is 2 s.
	Grace time.Duration
	// Secrets are values that never reach an error, a log or a noise line, however the server or the stream writes them.
	Secrets []string
	// Share counts the memory of messages that are being received; nil counts nothing.
	Share *budget.Share

	dial func(ctx context.Context) (io.ReadWriteCloser, error)
}

// New makes a transport whose every connection is a stream that dial opens. dial must return soon after ctx ends; ctx has no
// influence on the stream afterwards. Its error ends the attempt: a *transports.Error with its own class (ClassUnauthorized for
// credentials that were refused), any other one with ClassNetwork. The transport closes the stream once; Close must make a Read and
// a Write that wait return, as for a net.Conn.
func New(dial func(ctx context.Context) (io.ReadWriteCloser, error)) *Transport {
	return &Transport{dial: dial}
}

// Kind implements transports.Transport.
func (t *Transport) Kind() messages.TransportKind {
	if t.Name == "" {
		return Kind
	}
	return t.Name
}

// Dial implements transports.Transport.
func (t *Transport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	if t.dial == nil {
		return nil, &transports.Error{Class: messages.ClassConfig, Text: "there is no function that opens the stream"}
	}
	if ctx.Err() != nil {
		return nil, errs.ContextError(ctx, "opening the stream")
	}
	c := newConnection(t, sink)
	rwc, err := c.openStream(ctx, t.dial)
	if err != nil {
		return nil, c.dialError(err)
	}
	c.startLoops(rwc)
	return c, nil
}

// openStream calls dial in a goroutine of its own, because it is the program's code and may not return when ctx ends. A stream that
// comes too late is closed.
func (c *connection) openStream(ctx context.Context, dial func(context.Context) (io.ReadWriteCloser, error)) (io.ReadWriteCloser, error) {
	type opened struct {
		rwc io.ReadWriteCloser
		err error
	}
	result := make(chan opened, 1)
	go func() {
		const function = "the function that opens the stream"
		o := opened{err: goexitError(function)} // it stays where dial does not return
		defer func() {
			if v := recover(); v != nil {
				o = opened{err: panicError(function, v)}
			}
			result <- o
		}()
		o.rwc, o.err = dial(ctx)
		if o.err == nil && o.rwc == nil {
			o.err = errors.New("the function that opens the stream returned neither a stream nor an error")
		}
	}()
	select {
	case o := <-result:
		// An end of the context is the reason, whatever dial makes of it.
		if ctx.Err() != nil {
			c.closeQuietly(o.rwc)
			return nil, errs.ContextError(ctx, "opening the stream")
		}
		return o.rwc, o.err
	case <-ctx.Done():
	}
	// A dial that obeys its context returns now; one that does not is left behind.
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	select {
	case o := <-result:
		c.closeQuietly(o.rwc)
	case <-timer.C:
		go func() { c.closeQuietly((<-result).rwc) }()
	}
	return nil, errs.ContextError(ctx, "opening the stream")
}

// dialError translates what dial returned. An error of this boundary keeps its class and loses its secrets.
func (c *connection) dialError(err error) error {
	var e *transports.Error
	if errors.As(err, &e) {
		copied := *e
		copied.Text, copied.Fix = c.redactor.RedactText(e.Text), c.redactor.RedactText(e.Fix)
		if copied.Err != nil {
			copied.Err = errors.New(c.redactor.RedactText(e.Err.Error()))
		}
		if copied.Class == messages.ClassNone {
			copied.Class = messages.ClassNetwork
		}
		return &copied
	}
	return &transports.Error{Class: messages.ClassNetwork, Text: "opening the stream: " + c.describe(err)}
}

// describe is one line of a foreign error without secrets.
func (c *connection) describe(err error) string {
	return errs.ShortSentence(c.redactor.RedactText(fmt.Sprint(err)))
}
