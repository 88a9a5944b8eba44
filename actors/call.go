package actors

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Handler sees a request through to its end. The error, if any, is a *messages.Error with the request's outcome.
type Handler func(ctx context.Context, r *Request) error

// Calls has the links of a request's chain that need the catalog, the servers and their connections; the facade puts them into a
// list with its own. They send no message to any actor, unless a lazy server must be woken, so that callers do not queue behind
// one another. Safe for concurrent use; its fields are set before the first call.
type Calls struct {
	Catalog *Catalog
	Hub     *Hub
	// Cell returns a server's cell; nil if the server is not configured.
	Cell func(server string) *Cell
	// Wake sends a lazy server the command to connect; it does not wait.
	Wake func(server string)
	// StartInstance makes the caller's instance of a server whose spec has share "principal", and returns when it is there, not yet
	// connected; nil also if the server has another spec by now.
	StartInstance func(ctx context.Context, server, principal string) error
	// AllowTool returns an error if the caller may not call a tool, whatever its arguments; nil allows all tools. Calls asks it before it
	// makes an instance for the caller: a caller who may call no tool of the server gets none, and uses up none of its MaxInstances.
	AllowTool func(ctx context.Context, tool *messages.Tool) error
	// Handle is the whole chain, for the requests that Calls makes itself.
	Handle Handler
	// Refuse returns why a tool that is not in the catalog may not be called in any state of its server: by its qualified
	// name, or by server and name if that is empty. A nil Refuse, or a nil error, knows of no reason.
	Refuse func(qualified, server, tool string) error
	// ResolveName returns the server to which a qualified name belongs that is not in the catalog, and the tool's own name if it
	// can be known; empty if it belongs to no configured server. A nil ResolveName finds none.
	ResolveName func(qualified string) (server, tool string)
	// Wait bounds the wait of a call that has not been sent for its server to connect again; 0 means not at all for a
	// lost server. RetryWait bounds the wait before the one repetition that is allowed.
	Wait, RetryWait time.Duration
	// ids numbers the calls for the events of watchers.
	ids atomic.Uint64
}

// FindTool is the Before of the link that finds tools: by server and name, or by the qualified name of a request without a server.
func (c *Calls) FindTool(ctx context.Context, r *Request) (err error) {
	// Nearly every call finds its tool here, without a lock.
	var ok bool
	named := r.Server
	if r.wait = c.Wait; named == "" {
		r.Entry, ok = c.Catalog.Snapshot().Lookup(r.Name)
	} else {
		r.Entry, ok = c.Catalog.Snapshot().LookupTool(r.Server, r.Name)
	}
	if c.mayHaveInstance(ctx, r) {
		if r.Entry, err = c.enterForTool(ctx, r, r.Entry); err != nil {
			return err
		}
		ok = r.Entry != nil
	}
	if !ok {
		qualified, tool := "", r.Name
		if named == "" {
			qualified, tool = r.Name, ""
		}
		if r.Entry, r.wait, err = c.awaitTool(ctx, r, qualified, tool); err != nil {
			return err
		}
	}
	r.Server, r.Name, r.mayWake = r.Entry.Tool.Server, r.Entry.Tool.Name, r.Entry.State == catalog.Cached
	return nil
}

// PublishStart is the Before of the link that publishes calls to watchers, if any of them wants that.
func (c *Calls) PublishStart(_ context.Context, r *Request) error {
	if r.Entry == nil || !c.Hub.CallsWatched() {
		return nil
	}
	// The id joins the two events of one call.
	r.callID, r.published = c.ids.Add(1), time.Now()
	c.Hub.Publish(messages.Event{Kind: messages.EventCallStarted, Server: r.Server, Tool: r.Name, CallID: r.callID})
	return nil
}

// PublishEnd is its After. A call that began unwatched has no end either.
func (c *Calls) PublishEnd(_ context.Context, r *Request, err error) error {
	if r.callID == 0 {
		return err
	}
	outcome := messages.OutcomeOf(err)
	if err == nil && r.Answer.IsError {
		outcome = messages.OutcomeToolError
	}
	c.Hub.Publish(messages.Event{Kind: messages.EventCallEnded, Server: r.Server, Tool: r.Name, CallID: r.callID,
		Outcome: outcome, Took: messages.Duration(time.Since(r.published))})
	return err
}

// Explain is the After of the link that completes errors: it adds the server and the tool to one of the session, and removes the
// server's secrets from its text.
func (c *Calls) Explain(_ context.Context, r *Request, err error) error {
	if err == nil {
		return nil
	}
	return c.completeError(err, r)
}

// completeError adds the server and the tool to an error of the session, and removes the server's secrets from its text.
func (c *Calls) completeError(err error, r *Request) error {
	op, server, tool := r.Operation(), r.target(), r.toolName()
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
		full.Data, full.Reply = hideInJSON(e.Data, hide), hideInJSON(e.Reply, hide)
	}
	return &full
}

// hideInJSON removes secrets from JSON that a server wrote. What holds none keeps its bytes; what is no JSON without them is left out.
func hideInJSON(raw json.RawMessage, hide func(string) string) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	text := hide(string(raw))
	switch {
	case text == string(raw):
		return raw
	case rawjson.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return nil
}

// Repeat is the Around of the link that finds a connection, and a second one if the first attempt provably did not run, or if its
// connection was lost and the request may run twice. The timeout of the server's spec begins when there is a connection, after the
// person and the waiting: it bounds the server's work alone, and both attempts together.
func (c *Calls) Repeat(next Handler) Handler {
	return func(ctx context.Context, r *Request) error {
		if r.Recall != nil {
			return r.Recall()
		}
		if r.Entry == nil && !r.AwakeOnly {
			r.wait, r.mayWake = c.Wait, true
		}
		link, err := c.connectionFor(ctx, r, 0, r.wait)
		if err != nil {
			return err
		}
		bounded := newCallTimeout(ctx, link.Spec)
		defer bounded.Stop()
		// In the legacy era an answer may belong to any request that the server has; the count shows whether one was given meanwhile.
		before := link.answers.Load()
		r.link = link
		r.Trace.noteConnection(link)
		err = next(bounded, r)
		// A caller that has gone wants no second attempt.
		if err == nil || bounded.Err() != nil {
			return err
		}
		// The person who has answered a question about the first attempt would be asked it again.
		harmless := r.isRepeatable(link.Spec) && !bounded.Answered() && link.answers.Load() == before
		if !mayRepeat(err, harmless, link.gate.Open()) {
			return err
		}
		return c.repeat(bounded, r, err, next)
	}
}

// TakeSlot is the Before of the link of fairness: an attempt waits for a slot at a server that has a bound.
func (c *Calls) TakeSlot(ctx context.Context, r *Request) (err error) {
	if r.link.callQueue == nil || r.SkipsQueue {
		return nil
	}
	r.hasSlot, err = r.link.enterQueue(ctx)
	return err
}

// LeaveSlot is its After.
func (c *Calls) LeaveSlot(_ context.Context, r *Request, err error) error {
	if r.hasSlot {
		r.hasSlot = false
		r.link.callQueue.releaseSlot()
	}
	return err
}

// Send is the end of the chain: it sends the request through the admission gate of its connection, and reports what its end says
// about the connection.
func (c *Calls) Send(ctx context.Context, r *Request) (err error) {
	l := r.link
	// The gate may be closed by now; its error then says that nothing was sent.
	before := l.lastHeard()
	if !r.AwakeOnly {
		l.noteUse()
	}
	if r.Entry != nil {
		r.Answer, err = l.gate.CallWith(ctx, r.Name, r.Args, r.Options)
	} else {
		err = l.gate.Do(func(s *session.Session) error { return r.Send(ctx, s, r) })
	}
	r.Result = r.Answer.Raw
	l.noteResult(err, before)
	return err
}
