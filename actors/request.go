package actors

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Request is one request to a server: a tool call, or a request of another kind, which has a Send. All of them go the same way, by
// the same rule for what is sent a second time.
type Request struct {
	Server string
	// Args and Options are those of a tool call; Options may be nil.
	Args    json.RawMessage
	Options *session.Options
	// Repeatable lets a request that is no tool call be sent a second time when the first one was lost with its connection: it
	// changes nothing at the server. A tool says so itself. Neither is sent again after the program has answered a question of the
	// server about it (NoteAnswer), because the same person would be asked twice.
	Repeatable bool
	// SkipsQueue is for requests about other requests, or about the connection itself: they take no slot and wait for none, where
	// the server has a bound.
	SkipsQueue bool
	// Trace notes the connections that get the request; nil notes nothing.
	Trace *Trace
	// Send sends a request that is no tool call. ctx is bounded as the server's spec says. It may be called twice.
	Send func(ctx context.Context, s *session.Session) error
	// Result is the answer to a tool call.
	Result session.Result

	// entry is the tool to be called, nil for other requests. wait is how long the request may wait for its server, and mayWake says
	// that it may connect a server that rests.
	entry   *catalog.Entry
	wait    time.Duration
	mayWake bool
}

// toolName returns the tool's own name; empty for a request that is no tool call.
func (r *Request) toolName() string {
	if r.entry == nil {
		return ""
	}
	return r.entry.Tool.Name
}

// isRepeatable reports whether the request may run twice. The annotations of a tool are the server's claims: they count only for
// servers that the user trusts.
func (r *Request) isRepeatable(spec *messages.Spec) bool {
	if r.entry == nil {
		return r.Repeatable
	}
	a := r.entry.Tool.Annotations
	return spec.Trusted && a != nil && (a.ReadOnly != nil && *a.ReadOnly || a.Idempotent != nil && *a.Idempotent)
}

// operation is the Op of the request's errors.
func (r *Request) operation() string {
	if r.entry == nil {
		return "read"
	}
	return "call"
}

// SendRequest is the way of every request that is no tool call: server → its link → slot → admission gate → session. Like a call
// it wakes a lazy server, waits for one that is restarting (Wait), and is bounded by the server's call timeouts. The
// error, if any, is a *messages.Error with Op "read".
func (c *Calls) SendRequest(ctx context.Context, r *Request) error {
	r.wait, r.mayWake = c.Wait, true
	if err := c.sendRepeating(ctx, r); err != nil {
		return c.completeError(err, r)
	}
	return nil
}

// completeError adds the server and the tool to an error of the session, and removes the server's secrets from its text.
func (c *Calls) completeError(err error, r *Request) error {
	op, server, tool := r.operation(), r.Server, r.toolName()
	hide := func(text string) string { return text }
	if cell := c.Cell(server); cell != nil {
		hide = cell.RedactText
	}
	var e *messages.Error
	if !errors.As(err, &e) {
		return &messages.Error{Op: op, Outcome: messages.OutcomeUnknown, Class: messages.ClassOf(err), Server: server,
			Tool: tool, Text: messages.Line(hide(err.Error()), 400), Err: err}
	}
	// An error that names its server is complete already, but for the operation of one that does not know what was asked for.
	if e.Server != "" && e.Op == op {
		return e
	}
	// The error is copied, because the original may be shared.
	full := *e
	full.Op = op
	if e.Server == "" {
		full.Server, full.Tool, full.Text = server, tool, hide(e.Text)
	}
	return &full
}
