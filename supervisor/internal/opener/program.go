package opener

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// dialGrace is how long the Dial of a program's transport may take after the end of its context, to release what it had started.
const dialGrace = 5 * time.Second

// runProgram runs f, a function of the program, through Options.AskProgram.
func (o *Opener) runProgram(ctx context.Context, function, what, server string, f func() error) error {
	if o.AskProgram == nil {
		return f()
	}
	return o.AskProgram(ctx, function, what, server, f)
}

// askTransport asks the program for a transport of its own; nil for none.
func (o *Opener) askTransport(ctx context.Context, name string, spec *messages.Spec) (transports.Transport, error) {
	if o.Transport == nil {
		return nil, nil
	}
	// The function may return after it was given up: what it stores is read only if it has returned before.
	var t atomic.Pointer[transports.Transport]
	err := o.runProgram(ctx, "Config.Transport", "Config.Transport", name, func() error {
		made, err := o.Transport(cmp.Or(spec.InstanceOf, name), *spec)
		if made != nil {
			t.Store(&made)
		}
		return err
	})
	if made := t.Load(); made != nil && err == nil {
		return &programTransport{Transport: *made, opener: o, server: name, function: "Config.Transport"}, nil
	}
	return nil, openError(err)
}

// wrapTransport gives t to the program's decorator, which may leave it as it is.
func (o *Opener) wrapTransport(ctx context.Context, name string, spec *messages.Spec, t transports.Transport) (transports.Transport, error) {
	if o.Wrap == nil {
		return t, nil
	}
	var around atomic.Pointer[transports.Transport]
	err := o.runProgram(ctx, "Config.Wrap", "Config.Wrap", name, func() error {
		if made := o.Wrap(cmp.Or(spec.InstanceOf, name), *spec, t); made != nil {
			around.Store(&made)
		}
		return nil
	})
	if err != nil {
		return nil, openError(err)
	}
	if made := around.Load(); made != nil {
		return &programTransport{Transport: *made, opener: o, server: name, function: "Config.Wrap"}, nil
	}
	return t, nil
}

// programTransport is a transport that a function of the program has made. A Dial that does not return ends its attempt all the same.
type programTransport struct {
	transports.Transport
	opener           *Opener
	server, function string
}

// Who has the result of a Dial.
const (
	undecided int32 = iota
	taken           // the attempt has it
	left            // the attempt has ended: a connection that comes later is closed
)

// Dial dials, and waits no longer than the grace after the end of ctx.
func (p *programTransport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	waited, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(dialGrace, func() { end(context.Cause(ctx)) })
		context.AfterFunc(waited, func() { timer.Stop() })
	})
	defer stop()
	type result struct {
		conn transports.Conn
		err  error
	}
	var has atomic.Int32
	results := make(chan result, 1)
	err := p.opener.runProgram(waited, "the Dial of "+p.function, "the Dial of the transport of "+p.function, p.server, func() error {
		conn, err := p.Transport.Dial(ctx, sink)
		if !has.CompareAndSwap(undecided, taken) {
			if conn != nil {
				_ = conn.Close(context.Background()) // its attempt has ended with another error
			}
			return nil
		}
		results <- result{conn, err}
		return nil
	})
	// What has returned counts, also if the wait for it has ended at the same time.
	if err != nil && has.CompareAndSwap(undecided, left) {
		return nil, err
	}
	r := <-results
	return r.conn, r.err
}
