package actors

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

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
	if r.wait = c.Wait; r.Server == "" {
		r.Entry, ok = c.Catalog.Snapshot().Lookup(r.Name)
	} else {
		r.Entry, ok = c.Catalog.Snapshot().LookupTool(r.Server, r.Name)
	}
	if !ok {
		qualified, tool := "", r.Name
		if r.Server == "" {
			qualified, tool = r.Name, ""
		}
		if r.Entry, r.wait, err = c.awaitTool(ctx, qualified, r.Server, tool); err != nil {
			return err
		}
	}
	r.Server, r.Name, r.mayWake = r.Entry.Tool.Server, r.Entry.Tool.Name, r.Entry.State == catalog.Cached
	return nil
}

// PublishStart is the Before of the link that publishes calls to watchers, if there are any.
func (c *Calls) PublishStart(_ context.Context, r *Request) error {
	if r.Entry == nil || !c.Hub.Watched() {
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
