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

// Calls is the path of a tool call: name → snapshot → rule → slot → admission gate → session. It sends no message to any actor,
// unless a lazy server must be woken, so that callers do not queue behind one another. Safe for concurrent use; its fields are
// set before the first call.
type Calls struct {
	Catalog *Catalog
	Hub     *Hub
	// Cell returns a server's cell; nil if the server is not configured.
	Cell func(server string) *Cell
	// Wake sends a lazy server the command to connect; it does not wait.
	Wake func(server string)
	// Allow refuses a call before it is sent; nil allows everything. It is called before the call's own timeout begins, and may
	// take as long as a person does.
	Allow func(ctx context.Context, tool *messages.Tool, args json.RawMessage) error
	// Refuse returns why a tool that is not in the catalog may not be called in any state of its server: by its qualified
	// name, or by server and name if that is empty. A nil Refuse, or a nil error, knows of no reason.
	Refuse func(qualified, server, tool string) error
	// ResolveName returns the server to which a qualified name belongs that is not in the catalog, and the tool's own name if it
	// can be known; empty if it belongs to no configured server. A nil ResolveName finds none.
	ResolveName func(qualified string) (server, tool string)
	// Wait bounds the wait of a call that has not been sent for its server to connect again; 0 means not at all for a
	// lost server. RetryWait bounds the wait before the one repetition that is allowed.
	Wait, RetryWait time.Duration
	// Traced says that a context may hold a Trace; with false no call looks for one.
	Traced bool

	// ids numbers the calls for the events of watchers.
	ids atomic.Uint64
}

// Call runs a tool by its qualified name. The error, if any, is a *messages.Error with the call's outcome.
// o may be nil.
func (c *Calls) Call(ctx context.Context, qualified string, args json.RawMessage, o *session.Options) (session.Result, error) {
	// Nearly every call finds its tool here, without a lock.
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

// CallServer runs a tool by its server's id and its own name there. The error is as that of Call.
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

// runCall makes a call; wait is how long it may wait for its server. The rare parts of the path are functions of their own, because
// a goroutine's stack must hold every frame on the way: with those of net/http below, a call fits into 8 KiB so, and would
// need 16 otherwise.
func (c *Calls) runCall(
	ctx context.Context, entry *catalog.Entry, wait time.Duration, args json.RawMessage, o *session.Options,
) (session.Result, error) {
	if c.Hub.Watched() {
		return c.runPublished(ctx, entry, wait, args, o)
	}
	return c.runTraced(ctx, entry, wait, args, o)
}

// runPublished publishes the beginning and the end of a call to the watchers, also if the call panics.
func (c *Calls) runPublished(
	ctx context.Context, entry *catalog.Entry, wait time.Duration, args json.RawMessage, o *session.Options,
) (res session.Result, err error) {
	server, tool := entry.Tool.Server, entry.Tool.Name
	// The id joins the two events of one call.
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

// runTraced notes in the caller's trace, if there is one, which tool was found, and completes the error of the call.
func (c *Calls) runTraced(
	ctx context.Context, entry *catalog.Entry, wait time.Duration, args json.RawMessage, o *session.Options,
) (session.Result, error) {
	var trace *Trace
	if c.Traced {
		// The trace names the tool even if the rules then refuse the call.
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

// sendCall sends the call once, and a second time if the first provably did not run, or if its trusted server allows the tool to run
// twice.
func (c *Calls) sendCall(
	ctx context.Context, entry *catalog.Entry, wait time.Duration, args json.RawMessage, o *session.Options, trace *Trace,
) (session.Result, error) {
	if c.Allow != nil {
		if err := c.Allow(ctx, entry.Tool, args); err != nil {
			return session.Result{}, err
		}
	}
	// A lost server may return within wait; a cached one is woken.
	link, err := c.linkForEntry(ctx, entry, 0, wait)
	if err != nil {
		return session.Result{}, err
	}
	// The timeout begins here, after the person and the waiting: it bounds the server's work alone. It covers the repetition too.
	if p := withCallTimeout(ctx, link.Spec); p != nil {
		defer p.Stop()
		ctx = p
	}
	trace.noteConnection(link)
	res, err := link.callTool(ctx, entry.Tool.Name, args, o)
	// A caller that has gone wants no second attempt.
	if err == nil || ctx.Err() != nil || !mayRepeatCall(err, link, entry.Tool) {
		return res, err
	}
	return c.repeatCall(ctx, entry, args, o, trace, link, err)
}

// repeatCall sends a call a second time, on the same connection if that still serves, else on the next one. link is where the first
// one failed, with err. There is never a third time.
func (c *Calls) repeatCall(ctx context.Context, entry *catalog.Entry, args json.RawMessage, o *session.Options, trace *Trace,
	link *Link, err error,
) (res session.Result, _ error) {
	// A repetition is worth a short wait even if the caller allows none for lost servers.
	wait := max(c.Wait, c.RetryWait)
	if messages.OutcomeOf(err) == messages.OutcomeNotSent && messages.ClassOf(err) != messages.ClassSession {
		// The gate was closed before the call was sent: waiting for another connection is the caller's choice.
		wait = c.Wait
	}
	var repeatErr error
	if until := time.Now().Add(wait); !link.stillServes(ctx, err, wait) {
		link, repeatErr = c.linkForEntry(ctx, entry, link.Epoch, time.Until(until))
	}
	// There is no connection for a second attempt.
	if repeatErr != nil {
		if messages.OutcomeOf(err) == messages.OutcomeNotSent && messages.ClassOf(err) == messages.ClassCanceled {
			// A closed gate has no reason to give; the server's status has.
			return res, repeatErr
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

// stillUnknown returns the error of a repetition whose first call may have run. If the second one was not sent, or was rejected,
// that does not undo the first: the outcome stays unknown.
func stillUnknown(err error) error {
	switch messages.OutcomeOf(err) {
	case messages.OutcomeNotSent, messages.OutcomeRejected:
	default:
		return err
	}
	var e *messages.Error
	if !errors.As(err, &e) {
		// This cannot occur: every error with such an outcome is a *messages.Error.
		return err
	}
	// The error is copied, because the original may be shared.
	unknown := *e
	unknown.Outcome = messages.OutcomeUnknown
	unknown.Text = "it was sent twice, the first one may have run, and of the second: " + e.Text
	return &unknown
}

// mayRepeatCall implements the promise that nothing is sent again that may already have run. A call that was not sent may be
// repeated unless the error would be the same; one whose outcome is unknown only if the tool is read-only or idempotent and its
// server is trusted, because the annotations are the server's own claims.
func mayRepeatCall(err error, link *Link, tool *messages.Tool) bool {
	if errors.Is(err, messages.ErrQueueFull) {
		return false // the next connection uses the same queue
	}
	switch messages.ClassOf(err) {
	// Another attempt would be refused for the same reason.
	case messages.ClassInvalid, messages.ClassDenied, messages.ClassUnauthorized:
		return false
	}
	switch messages.OutcomeOf(err) {
	case messages.OutcomeNotSent:
		return true
	case messages.OutcomeUnknown:
		// The server answered with something unusable, and the connection lives: it would answer the same again.
		if messages.ClassOf(err) == messages.ClassProtocol && link.gate.Open() {
			return false
		}
		// The annotations are the server's claims: they count only for servers that the user trusts.
		a := tool.Annotations
		return link.Spec.Trusted && a != nil && (a.ReadOnly != nil && *a.ReadOnly || a.Idempotent != nil && *a.Idempotent)
	}
	return false
}

// linkForEntry returns the connection that serves the entry: its own if it is live and newer than after, else the one that
// appears within wait. A cached entry's server is woken and may take its whole connect timeout.
func (c *Calls) linkForEntry(ctx context.Context, entry *catalog.Entry, after uint64, wait time.Duration) (*Link, error) {
	if link, ok := entry.Route.(*Link); ok && entry.State == catalog.Live && entry.Epoch > after {
		return link, nil
	}
	// The entry is from a snapshot; the server may have connected again since.
	server, tool := entry.Tool.Server, entry.Tool.Name
	if entry.State == catalog.Cached && after == 0 {
		if err := c.wakeServer(ctx, server, tool); err != nil {
			return nil, err
		}
	} else if wait <= 0 {
		return nil, c.notConnectedError(server, tool, nil)
	}
	cell := c.Cell(server)
	// The server was removed between the lookup and now.
	if cell == nil {
		return nil, c.notConnectedError(server, tool, nil)
	}
	// The connection with which the entry was lost may still be published as connected for a moment; an older one is no use.
	if entry.State != catalog.Live {
		after = max(after, entry.Epoch)
	}
	// The server was woken and has connected; its state is published in a moment.
	if wait <= 0 {
		wait = time.Second
	}
	v, err := c.awaitConnected(ctx, cell, server, tool, after, wait)
	if err != nil {
		return nil, err
	}
	if !connectedSince(v, after) {
		return nil, c.notConnectedError(server, tool, ctx.Err())
	}
	// A connected server is registered in the catalog.
	// The entry of the new connection has the route; the old entry's is closed.
	e, ok := c.Catalog.Snapshot().LookupTool(server, tool)
	if !ok {
		return nil, c.unknownToolError(server, tool, v)
	}
	if link, ok := e.Route.(*Link); ok && e.State == catalog.Live {
		return link, nil
	}
	return nil, c.notConnectedError(server, tool, nil) // lost again already
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
// and a parked one only if its next probe comes before.
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

// wakeServer connects a server that rests, and waits for the end of its attempt. It does nothing about other servers. tool is
// the one to be called, empty for other requests; it only appears in the error.
func (c *Calls) wakeServer(ctx context.Context, server, tool string) error {
	cell := c.Cell(server)
	if cell == nil {
		return nil
	}
	v := cell.View()
	// Only a lazy server that is not connected needs a call to connect.
	if v.State.Phase != messages.Pending || v.Spec.Connect != messages.Lazy {
		return nil
	}
	if v.State.Step == messages.Idle {
		c.Wake(server)
	}
	// Wake is a message, so the resting state may still be visible: it is no end of the wait.
	v, err := cell.Wait(ctx, func(v *View) bool { return v.State.Phase != messages.Pending })
	if err != nil || v.State.Phase != messages.Connected {
		return c.notConnectedError(server, tool, err)
	}
	return nil
}

// withCallTimeout returns a context with the timeouts of the server's spec. The caller stops it; nil if the spec has no bound.
func withCallTimeout(ctx context.Context, spec *messages.Spec) *session.CallTimeout {
	// A negative value in a spec means no bound.
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

// completeError adds the server and the tool to an error of the session, and removes the server's secrets from its text.
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
	// An error that names its server is complete already.
	if e.Server != "" {
		return e
	}
	full := *e
	full.Op, full.Server, full.Tool, full.Text = "call", server, tool, hide(e.Text)
	return &full
}

// notConnectedError explains why a call cannot be sent, from the server's published state, with the time of the next attempt.
func (c *Calls) notConnectedError(server, tool string, cause error) error {
	e := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassNetwork, Server: server, Tool: tool,
		Text: "it is not connected", Err: cause}
	cell := c.Cell(server)
	if cell == nil {
		e.Class, e.Text, e.Err = messages.ClassInvalid, "no such server is configured", messages.ErrUnknownServer
		return e
	}
	v := cell.View()
	// Each phase has its own reason and its own advice.
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
