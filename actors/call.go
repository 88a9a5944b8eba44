package actors

import (
	"context"
	"encoding/json"
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
	r := Request{Args: args, Options: o, wait: c.Wait}
	// Nearly every call finds its tool here, without a lock.
	var ok bool
	if r.entry, ok = c.Catalog.Snapshot().Lookup(qualified); !ok {
		var err error
		if r.entry, r.wait, err = c.awaitTool(ctx, qualified, "", ""); err != nil {
			return session.Result{}, err
		}
	}
	err := c.runCall(ctx, &r)
	return r.Result, err
}

// CallServer runs a tool by its server's id and its own name there. The error is as that of Call.
func (c *Calls) CallServer(
	ctx context.Context, server, tool string, args json.RawMessage, o *session.Options,
) (session.Result, error) {
	r := Request{Args: args, Options: o, wait: c.Wait}
	var ok bool
	if r.entry, ok = c.Catalog.Snapshot().LookupTool(server, tool); !ok {
		var err error
		if r.entry, r.wait, err = c.awaitTool(ctx, "", server, tool); err != nil {
			return session.Result{}, err
		}
	}
	err := c.runCall(ctx, &r)
	return r.Result, err
}

// runCall makes the call of a tool that was found. A request is passed by its address on all of its way, because a goroutine's
// stack must hold every frame: with those of net/http below, a call fits into 8 KiB so, and would need 16 if each frame held a
// copy of the arguments and of the result.
func (c *Calls) runCall(ctx context.Context, r *Request) error {
	r.Server, r.mayWake = r.entry.Tool.Server, r.entry.State == catalog.Cached
	if c.Hub.Watched() {
		return c.runPublished(ctx, r)
	}
	return c.runTraced(ctx, r)
}

// runPublished publishes the beginning and the end of a call to the watchers, also if the call panics.
func (c *Calls) runPublished(ctx context.Context, r *Request) (err error) {
	server, tool := r.Server, r.toolName()
	// The id joins the two events of one call.
	id, start := c.ids.Add(1), time.Now()
	c.Hub.Publish(messages.Event{Kind: messages.EventCallStarted, Server: server, Tool: tool, CallID: id})
	defer func() {
		outcome := messages.OutcomeOf(err)
		if err == nil && r.Result.IsError {
			outcome = messages.OutcomeToolError
		}
		c.Hub.Publish(messages.Event{Kind: messages.EventCallEnded, Server: server, Tool: tool, CallID: id,
			Outcome: outcome, Took: messages.Duration(time.Since(start))})
	}()
	return c.runTraced(ctx, r)
}

// runTraced notes in the caller's trace, if there is one, which tool was found, and completes the error of the call.
func (c *Calls) runTraced(ctx context.Context, r *Request) error {
	if c.Traced {
		// The trace names the tool even if the rules then refuse the call.
		r.Trace = TraceOf(ctx)
		r.Trace.Found(r.Server, r.toolName())
	}
	if err := c.sendAllowed(ctx, r); err != nil {
		return c.completeError(err, r)
	}
	r.Result.OutputSchema = r.entry.Tool.OutputSchema
	return nil
}

// sendAllowed sends a call if it may be sent.
func (c *Calls) sendAllowed(ctx context.Context, r *Request) error {
	if c.Allow != nil {
		if err := c.Allow(ctx, r.entry.Tool, r.Args); err != nil {
			return err
		}
	}
	return c.sendRepeating(ctx, r)
}
