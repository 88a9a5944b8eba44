package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// connectionFor returns the connection on which a request may be sent: the open one if it is newer than after, else the one that
// appears within wait, at once if that is 0. A lazy server that rests is woken, and may take its whole connect timeout.
func (c *Calls) connectionFor(ctx context.Context, r *Request, after uint64, wait time.Duration) (*Link, error) {
	// Nearly every call finds its connection here, without a look at its server.
	if e := r.Entry; e != nil && e.State == catalog.Live && e.Epoch > after {
		if link, ok := e.Route.(*Link); ok {
			return link, nil
		}
	}
	server, tool := r.target(), r.toolName()
	cell := c.Cell(server)
	if cell == nil {
		return nil, c.notConnectedError(server, tool, nil)
	}
	v := cell.View()
	if r.Entry != nil && r.Entry.State != catalog.Live {
		// The connection with which the entry was lost may still be published as connected for a moment; it is no use.
		after = max(after, r.Entry.Epoch)
	}
	if r.mayWake && !connectedSince(v, after) {
		if e := r.Entry; e != nil && e.State == catalog.Cached {
			// The catalog shows a moment sooner than the view that the server rests.
			if _, err := cell.Wait(ctx, func(v *View) bool { return v.State.Phase != messages.Connected || v.State.Epoch > e.Epoch }); err != nil {
				return nil, c.notConnectedError(server, tool, err)
			}
		}
		if err := c.wakeServer(ctx, server, tool); err != nil {
			return nil, err
		}
		v = cell.View()
	}
	if !connectedSince(v, after) {
		if wait <= 0 {
			return nil, c.notConnectedError(server, tool, nil)
		}
		var err error
		if v, err = c.awaitConnected(ctx, cell, server, tool, after, wait); err != nil {
			return nil, err
		}
	}
	if !connectedSince(v, after) {
		return nil, c.notConnectedError(server, tool, ctx.Err())
	}
	return c.linkIn(v, r)
}

// linkIn returns the connection of a connected server: that of the tool's entry, because only the catalog knows whether the
// connection still offers the tool, and the published one for any other request.
func (c *Calls) linkIn(v *View, r *Request) (*Link, error) {
	link, tool := v.Link, r.toolName()
	if r.Entry != nil {
		// A server is published as connected after its tools are in the catalog; the entry of before has the route of before.
		e, ok := c.Catalog.Snapshot().LookupTool(r.target(), tool)
		if !ok {
			return nil, c.unknownToolError(r.target(), tool, v)
		}
		if link, ok = e.Route.(*Link); !ok || e.State != catalog.Live {
			link = nil
		}
	}
	if link == nil { // lost again already
		return nil, c.notConnectedError(r.target(), tool, nil)
	}
	return link, nil
}

// awaitConnected waits, at most so long, until a server is connected by an epoch newer than after, or cannot be in that time. A
// server that was disconnected for idleness at this moment is woken. The caller checks which of these the view shows.
func (c *Calls) awaitConnected(ctx context.Context, cell *Cell, server, tool string, after uint64, wait time.Duration) (*View, error) {
	until := time.Now().Add(wait)
	bounded, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	v, err := cell.Wait(bounded, func(v *View) bool { return connectedSince(v, after) || !mayConnectBy(v, until) || isResting(v) })
	if err == nil && isResting(v) { // it was let go at this very moment
		if err := c.wakeServer(ctx, server, tool); err != nil {
			return nil, err
		}
		v = cell.View()
	}
	return v, nil
}

// connectedSince reports whether a server is connected by an epoch newer than after.
func connectedSince(v *View, after uint64) bool {
	return v.State.Phase == messages.Connected && v.State.Epoch > after
}

// isResting reports whether a lazy server rests: it has no connection and waits for a call.
func isResting(v *View) bool { return v.State.Step == messages.Idle }

// mayConnectBy reports whether a server may be connected by itself until then: one that waits for a person or a command may not,
// and a parked one only if its next probe comes before. One that this machine has no means to start is tried again, but is not waited
// for: what is lacking comes back when somebody gives it up, and the caller should know it now.
func mayConnectBy(v *View, until time.Time) bool {
	switch v.State.Phase {
	case messages.Pending, messages.Connected:
		return true
	case messages.Failed:
		lacking := v.State.Cause != nil && v.State.Cause.Class == messages.ClassExhausted && !v.State.Cause.Displaced
		return v.State.Retry == "" || v.State.Retry == messages.RetryAt && !lacking ||
			v.State.Retry == messages.RetryParked && v.State.NextAt.Before(until)
	case messages.NeedsAuth, messages.Disabled:
	}
	return false
}

// wakeServer connects a server that rests, and waits for the end of its attempt; of an instance that was made for this request it
// waits for the first one. It does nothing about other servers. tool is
// the one to be called, empty for other requests; it only appears in the error.
func (c *Calls) wakeServer(ctx context.Context, server, tool string) error {
	cell := c.Cell(server)
	if cell == nil {
		return nil
	}
	v := cell.View()
	// Only a lazy server that is not connected needs a call to connect. What waits to be tried again is not waited for here.
	starting := cell.Use != nil && v.State.Step != messages.Restarting
	if v.State.Phase != messages.Pending || v.Spec.Connect != messages.Lazy && !starting {
		return nil
	}
	if v.State.Step == messages.Idle {
		c.Wake(server)
	}
	// Wake is a message, so the resting state may still be visible: it is no end of the wait. Nor is the connection of before, which the
	// cell announces until the watchers have heard of the rest.
	oldest := v.State.Epoch
	switch v.State.Step {
	case messages.Idle, messages.Closing, messages.Queued:
		oldest++
	default:
	}
	isOver := func(v *View) bool {
		return v.State.Phase != messages.Pending && (v.State.Phase != messages.Connected || v.State.Epoch >= oldest)
	}
	v, err := cell.Wait(ctx, isOver)
	if err != nil || v.State.Phase != messages.Connected {
		return c.notConnectedError(server, tool, err)
	}
	return nil
}

// NotReadyError returns the error of a wait for a server that did not connect: what a call of it would get now, under another name of
// the operation. cause is the error of the context that ended the wait, or nil.
func (c *Calls) NotReadyError(op, server string, cause error) error {
	e := c.notConnectedError(server, "", cause)
	e.Op, e.Outcome = op, ""
	return e
}

// notConnectedError explains why a call cannot be sent, from the server's published state, with the time of the next attempt.
func (c *Calls) notConnectedError(server, tool string, cause error) *messages.Error {
	e := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassNetwork, Server: server, Tool: tool,
		Text: "it is not connected", Err: cause}
	cell := c.Cell(server)
	if cell == nil {
		e.Class, e.Text, e.Err = messages.ClassInvalid, "no such server is configured", messages.ErrUnknownServer
		return e
	}
	v := cell.View()
	// Each phase has its own reason, its own advice, and its own hope.
	s := v.State
	e.Retry = messages.RetryAt
	switch s.Phase {
	case messages.Disabled:
		e.Class, e.Text, e.Fix, e.Err = messages.ClassInvalid, "it is disabled", "enable it first", messages.ErrDisabled
		e.Retry = ""
		if s.Removing {
			e.Text, e.Fix, e.Err = "it has just been removed", "", messages.ErrUnknownServer
		}
	case messages.NeedsAuth:
		e.Class, e.Text, e.Fix = messages.ClassUnauthorized, "it needs credentials",
			"sign in to it, or correct its headers or auth and reconnect it"
		e.Retry = messages.RetryNever
		if s.Cause != nil {
			e.Challenge = s.Cause.Challenge
			if e.Challenge == nil { // the server demanded nothing: its credentials could not be made, or it gave no reason
				e.Text += ": " + s.Cause.Text
				if v.Spec.Auth != nil && v.Spec.Auth.Command != "" { // the cause says what to do about its command
					e.Fix = "then reconnect it"
				}
			}
		}
	case messages.Failed:
		e.Text, e.Retry = "it is not connected ("+v.Reason()+")", cmp.Or(s.Retry, messages.RetryAt)
		if s.Cause != nil {
			e.Class = s.Cause.Class
			e.Text += ": " + s.Cause.Text
		}
	case messages.Pending:
		e.Text = fmt.Sprintf("it is not connected yet (%s)", v.Reason())
	case messages.Connected:
		e.Text = "its connection was just replaced"
		e.Fix = "call again"
	}
	if !s.NextAt.IsZero() && s.Phase != messages.Connected {
		// The next attempt is due now, and 0 would mean that none is planned.
		e.RetryAfter = max(time.Until(s.NextAt), time.Millisecond)
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		e.Class = messages.ClassTimeout
	} else if errors.Is(cause, context.Canceled) {
		e.Class = messages.ClassCanceled
	}
	return e
}
