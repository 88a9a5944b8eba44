package opener

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

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
	// The function may return after its attempt has ended: the transport that it stores then is not read.
	var t atomic.Pointer[transports.Transport]
	err := o.runProgram(ctx, "Config.Transport", "Config.Transport", name, func() error {
		made, err := o.Transport(cmp.Or(spec.InstanceOf, name), *spec)
		if made != nil {
			t.Store(&made)
		}
		return err
	})
	if made := t.Load(); made != nil && err == nil {
		return *made, nil
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
		return *made, nil
	}
	return t, nil
}
