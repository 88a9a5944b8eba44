package opener

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// askTransport asks the program for a transport of its own; nil for none.
func (o *Opener) askTransport(ctx context.Context, name string, spec *messages.Spec) (transports.Transport, error) {
	if o.Transport == nil {
		return nil, nil
	}
	return o.askProgram(ctx, "Config.Transport", name, func() (transports.Transport, error) {
		return o.Transport(cmp.Or(spec.InstanceOf, name), *spec)
	})
}

// wrapTransport gives t to the program's decorator, which may leave it as it is.
func (o *Opener) wrapTransport(ctx context.Context, name string, spec *messages.Spec, t transports.Transport) (transports.Transport, error) {
	if o.Wrap == nil {
		return t, nil
	}
	around, err := o.askProgram(ctx, "Config.Wrap", name, func() (transports.Transport, error) {
		return o.Wrap(cmp.Or(spec.InstanceOf, name), *spec, t), nil
	})
	if around == nil && err == nil {
		return t, nil
	}
	return around, err
}

// askProgram returns what a function of the program returns, or why it has returned nothing by the end of ctx.
func (o *Opener) askProgram(
	ctx context.Context, function, server string, ask func() (transports.Transport, error),
) (transports.Transport, error) {
	if o.AskProgram == nil {
		return ask()
	}
	// The function may return after its attempt has ended: the transport that it stores then is not read.
	var made atomic.Pointer[transports.Transport]
	err := o.AskProgram(ctx, function, function, server, func() error {
		t, err := ask()
		made.Store(&t)
		return err
	})
	if err != nil {
		return nil, openError(err)
	}
	return *made.Load(), nil
}
