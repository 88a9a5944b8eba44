package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Calls is the path of a tool call: name → snapshot → rule → admission gate → session. It asks no mailbox, unless the
// server rests and must be woken.
type Calls struct {
	Catalog *Catalog
	Hub     *Hub
	// Cell finds a server's cell; nil if it is not configured.
	Cell func(server string) *Cell
	// Wake asks a lazy server to connect.
	Wake func(server string)
	// Allow refuses a call before it is sent; nil allows everything. It is asked before the call's own time begins, and may
	// take as long as a person does.
	Allow func(ctx context.Context, tool *messages.Tool, args json.RawMessage) error
	// Refuse says why a tool that is not in the catalog may not be called whatever becomes of its server: by its qualified
	// name, or by server and name if that is empty. nil knows of no reason.
	Refuse func(qualified, server, tool string) error
	// ResolveName finds the server that a qualified name which is not in the catalog belongs to, and the tool's own name as far as it
	// can be known; empty if it belongs to none that is configured. nil knows of none.
	ResolveName func(qualified string) (server, tool string)
	// Wait is how long a call may wait for its server to come back, when it has not been sent; 0 means not at all for a
	// lost server. RetryWait bounds the wait before the one repetition that is allowed.
	Wait, RetryWait time.Duration
	// Traced says that a context may hold a Trace; calls do not look for one otherwise.
	Traced bool

	ids atomic.Uint64
}

// Call runs a tool by its qualified name. The error, if any, is a *messages.Error with the call's outcome.
// o may be nil.
func (c *Calls) Call(ctx context.Context, qualified string, args json.RawMessage, o *session.Options) (session.Result, error) {
	entry, ok := c.Catalog.Snapshot().Lookup(qualified)
	wait := c.Wait
	if !ok {
		var err error
		if entry, wait, err = c.awaitTool(ctx, qualified, "", ""); err != nil {
			return session.Result{}, err
		}
	}
	return c.runCall(ctx, entry, wait, args, o)
}

// CallServer runs a tool by its server's id and its own name there.
func (c *Calls) CallServer(
	ctx context.Context, server, tool string, args json.RawMessage, o *session.Options,
) (session.Result, error) {
	entry, ok := c.Catalog.Snapshot().LookupTool(server, tool)
	wait := c.Wait
	if !ok {
		var err error
		if entry, wait, err = c.awaitTool(ctx, "", server, tool); err != nil {
			return session.Result{}, err
		}
	}
	return c.runCall(ctx, entry, wait, args, o)
}

// runCall makes a call, which may wait for its server so long. What is rare on its way is in functions of its own, because the stack has room for every frame of it:
// with net/http's below, 8 KiB are enough without them, and it has to be 16 with them.
func (c *Calls) runCall(
	ctx context.Context, entry *catalog.Entry, wait time.Duration, args json.RawMessage, o *session.Options,
) (session.Result, error) {
	if c.Hub.Watched() {
		return c.runPublished(ctx, entry, wait, args, o)
	}
	return c.runTraced(ctx, entry, wait, args, o)
}

// runPublished tells of the beginning and the end of a call.
func (c *Calls) runPublished(
	ctx context.Context, entry *catalog.Entry, wait time.Duration, args json.RawMessage, o *session.Options,
) (res session.Result, err error) {
	server, tool := entry.Tool.Server, entry.Tool.Name
	id, start := c.ids.Add(1), time.Now()
	c.Hub.Publish(messages.Event{Kind: messages.EventCallStarted, Server: server, Tool: tool, CallID: id})
	defer func() {
		outcome := messages.OutcomeOf(err)
		if err == nil && res.IsError {
			outcome = messages.OutcomeToolError
		}
		c.Hub.Publish(messages.Event{Kind: messages.EventCallEnded, Server: server, Tool: tool, CallID: id,
			Outcome: outcome, Took: messages.Duration(time.Since(start))})
	}()
	return c.runTraced(ctx, entry, wait, args, o)
}

func (c *Calls) runTraced(
	ctx context.Context, entry *catalog.Entry, wait time.Duration, args json.RawMessage, o *session.Options,
) (session.Result, error) {
	var trace *Trace
	if c.Traced {
		trace = TraceOf(ctx)
		trace.Found(entry.Tool.Server, entry.Tool.Name)
	}
	res, err := c.sendCall(ctx, entry, wait, args, o, trace)
	if err != nil {
		err = c.completeError(err, entry.Tool.Server, entry.Tool.Name)
	}
	res.OutputSchema = entry.Tool.OutputSchema
	return res, err
}

// sendCall sends the call once, and a second time if the first provably did not run it, or if running it twice is what
// its trusted server allows.
func (c *Calls) sendCall(
	ctx context.Context, entry *catalog.Entry, wait time.Duration, args json.RawMessage, o *session.Options, trace *Trace,
) (session.Result, error) {
	if c.Allow != nil {
		if err := c.Allow(ctx, entry.Tool, args); err != nil {
			return session.Result{}, err
		}
	}
	link, err := c.linkForEntry(ctx, entry, 0, wait)
	if err != nil {
		return session.Result{}, err
	}
	if p := withCallTimeout(ctx, link.Spec); p != nil {
		defer p.Stop()
		ctx = p
	}
	trace.noteConnection(link)
	res, err := link.callTool(ctx, entry.Tool.Name, args, o)
	if err == nil || ctx.Err() != nil || !mayRepeatCall(err, link, entry.Tool) {
		return res, err
	}
	return c.repeatCall(ctx, entry, args, o, trace, link, err)
}

// repeatCall sends a call a second time. link is where the first one failed, with err.
func (c *Calls) repeatCall(ctx context.Context, entry *catalog.Entry, args json.RawMessage, o *session.Options, trace *Trace,
	link *Link, err error,
) (res session.Result, _ error) {
	wait := max(c.Wait, c.RetryWait)
	if messages.OutcomeOf(err) == messages.OutcomeNotSent && messages.ClassOf(err) != messages.ClassSession {
		wait = c.Wait // the gate was closed under our feet: waiting is the caller's choice
	}
	var repeatErr error
	if until := time.Now().Add(wait); !link.stillServes(ctx, err, wait) {
		link, repeatErr = c.linkForEntry(ctx, entry, link.Epoch, time.Until(until))
	}
	if repeatErr != nil {
		if messages.OutcomeOf(err) == messages.OutcomeNotSent && messages.ClassOf(err) == messages.ClassCanceled {
			return res, repeatErr // a closed gate knows nothing; the status knows why
		}
		return res, err // the first error says more than "it did not come back"
	}
	trace.noteConnection(link)
	res, repeatErr = link.callTool(ctx, entry.Tool.Name, args, o)
	if messages.OutcomeOf(err) == messages.OutcomeUnknown {
		repeatErr = stillUnknown(repeatErr)
	}
	return res, repeatErr
}

// stillUnknown is the error of a repetition when the first call may have run: that the second one was not sent, or was
// rejected, does not undo the first.
func stillUnknown(err error) error {
	switch messages.OutcomeOf(err) {
	case messages.OutcomeNotSent, messages.OutcomeRejected:
	default:
		return err
	}
	var e *messages.Error
	if !errors.As(err, &e) {
		return err // it has an outcome, so it is one
	}
	unknown := *e
	unknown.Outcome = messages.OutcomeUnknown
	unknown.Text = "it was sent twice, the first one may have run, and of the second: " + e.Text
	return &unknown
}

// mayRepeatCall is the rule of the promise "nothing that may already have run is replayed".
func mayRepeatCall(err error, link *Link, tool *messages.Tool) bool {
	if errors.Is(err, messages.ErrQueueFull) {
		return false // another connection has no more room
	}
	switch messages.ClassOf(err) {
	case messages.ClassInvalid, messages.ClassDenied, messages.ClassUnauthorized:
		return false
	}
	switch messages.OutcomeOf(err) {
	case messages.OutcomeNotSent:
		return true
	case messages.OutcomeUnknown:
		if messages.ClassOf(err) == messages.ClassProtocol && link.gate.Open() {
			return false // it was answered with what cannot be used, and there is no other connection to come
		}
		a := tool.Annotations
		return link.Spec.Trusted && a != nil && (a.ReadOnly != nil && *a.ReadOnly || a.Idempotent != nil && *a.Idempotent)
	}
	return false
}

// linkForEntry finds the connection that serves the entry now: its own if it is live and newer than after, else the one that
// appears within wait. A cached entry's server is woken and may take its connect timeout.
func (c *Calls) linkForEntry(ctx context.Context, entry *catalog.Entry, after uint64, wait time.Duration) (*Link, error) {
	if link, ok := entry.Route.(*Link); ok && entry.State == catalog.Live && entry.Epoch > after {
		return link, nil
	}
	server, tool := entry.Tool.Server, entry.Tool.Name
	if entry.State == catalog.Cached && after == 0 {
		if err := c.wakeServer(ctx, server, tool); err != nil {
			return nil, err
		}
	} else if wait <= 0 {
		return nil, c.notConnectedError(server, tool, nil)
	}
	cell := c.Cell(server)
	if cell == nil {
		return nil, c.notConnectedError(server, tool, nil)
	}
	if entry.State != catalog.Live {
		after = max(after, entry.Epoch) // the connection that it was lost with may still be seen as connected for a moment
	}
	if wait <= 0 { // it was woken, and is seen as connected in a moment
		wait = time.Second
	}
	v, err := c.awaitConnected(ctx, cell, server, tool, after, wait)
	if err != nil {
		return nil, err
	}
	if !connectedSince(v, after) {
		return nil, c.notConnectedError(server, tool, ctx.Err())
	}
	e, ok := c.Catalog.Snapshot().LookupTool(server, tool) // connected means registered
	if !ok {
		return nil, c.unknownToolError(server, tool, v)
	}
	if link, ok := e.Route.(*Link); ok && e.State == catalog.Live {
		return link, nil
	}
	return nil, c.notConnectedError(server, tool, nil) // gone again already
}

// awaitConnected waits at most so long until a server is connected by an epoch newer than after, or cannot be in that time.
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

// connectedSince reports whether a server is connected by a newer epoch.
func connectedSince(v *View, after uint64) bool {
	return v.State.Phase == messages.Connected && v.State.Epoch > after
}

// isResting reports whether a lazy server waits for somebody to use it.
func isResting(v *View) bool { return v.State.Step == messages.Idle }

// mayConnectBy reports whether a server may be connected soon without anybody's help. One that is parked may if it is to be tried
// until then.
func mayConnectBy(v *View, until time.Time) bool {
	switch v.State.Phase {
	case messages.Pending, messages.Connected:
		return true
	case messages.Failed:
		return v.State.Retry == "" || v.State.Retry == messages.RetryAt ||
			v.State.Retry == messages.RetryParked && v.State.NextAt.Before(until)
	case messages.NeedsAuth, messages.Disabled:
	}
	return false
}

// wakeServer connects a server that rests, and waits for the end of its attempt. It does nothing about any other server. tool is
// what it is woken for, empty for anything else than a call.
func (c *Calls) wakeServer(ctx context.Context, server, tool string) error {
	cell := c.Cell(server)
	if cell == nil {
		return nil
	}
	v := cell.View()
	if v.State.Phase != messages.Pending || v.Spec.Connect != messages.Lazy {
		return nil
	}
	if v.State.Step == messages.Idle {
		c.Wake(server)
	}
	// The wish is a message: rest may still be seen for a moment, so it is not an end here.
	v, err := cell.Wait(ctx, func(v *View) bool { return v.State.Phase != messages.Pending })
	if err != nil || v.State.Phase != messages.Connected {
		return c.notConnectedError(server, tool, err)
	}
	return nil
}

// withCallTimeout gives a call the time that its server's spec allows. It is to be stopped; nil if the spec bounds nothing.
func withCallTimeout(ctx context.Context, spec *messages.Spec) *session.CallTimeout {
	timeout := max(orDefault(spec.CallTimeout, DefaultCallTimeout), 0)
	most := time.Duration(spec.MaxCallTimeout)
	if most == 0 && timeout > 0 {
		most = max(DefaultMaxCallTimeout, timeout)
	}
	if timeout == 0 && most <= 0 {
		return nil
	}
	return session.NewCallTimeout(ctx, timeout, most)
}

// completeError completes an error of the session with the server and the tool, and hides the server's secrets in its text.
func (c *Calls) completeError(err error, server, tool string) error {
	hide := func(text string) string { return text }
	if cell := c.Cell(server); cell != nil {
		hide = cell.RedactText
	}
	var e *messages.Error
	if !errors.As(err, &e) {
		return &messages.Error{Op: "call", Outcome: messages.OutcomeUnknown, Class: messages.ClassOf(err), Server: server,
			Tool: tool, Text: messages.Line(hide(err.Error()), 400), Err: err}
	}
	if e.Server != "" {
		return e
	}
	full := *e
	full.Op, full.Server, full.Tool, full.Text = "call", server, tool, hide(e.Text)
	return &full
}

// notConnectedError explains why a call cannot be sent, from what the server's status says, and when the server is tried again.
func (c *Calls) notConnectedError(server, tool string, cause error) error {
	e := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassNetwork, Server: server, Tool: tool,
		Text: "it is not connected", Err: cause}
	cell := c.Cell(server)
	if cell == nil {
		e.Class, e.Text, e.Err = messages.ClassInvalid, "no such server is configured", messages.ErrUnknownServer
		return e
	}
	v := cell.View()
	s := v.State
	switch s.Phase {
	case messages.Disabled:
		e.Class, e.Text, e.Fix, e.Err = messages.ClassInvalid, "it is disabled", "enable it first", messages.ErrDisabled
	case messages.NeedsAuth:
		e.Class, e.Text, e.Fix = messages.ClassUnauthorized, "it needs credentials",
			"sign in to it, or correct its headers or auth and reconnect it"
		if s.Cause != nil {
			e.Challenge = s.Cause.Challenge
		}
	case messages.Failed:
		e.Text = "it is not connected (" + v.Reason() + ")"
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
		e.RetryAfter = max(time.Until(s.NextAt), time.Millisecond) // a time that has come is now, and 0 would be no time
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		e.Class = messages.ClassTimeout
	} else if errors.Is(cause, context.Canceled) {
		e.Class = messages.ClassCanceled
	}
	return e
}
