package actors

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// View is the published state of a server at one moment. It is immutable, so readers may keep it.
type View struct {
	Name  string
	Spec  *messages.Spec
	State lifecycle.State
	// Since is the beginning of the phase. Restarts counts the connections after the first.
	Since    time.Time
	Restarts int
	// Attempts counts consecutive failures, as the supervisor last reported them.
	Attempts int
	// Seen is the ticket of the newest Barrier that the server's actor has handled: everything sent before it shows here.
	Seen uint64
	// Session is the open connection's session, nil without one; Last describes the connection before.
	Session *session.Session
	Info    *session.Info // of the newest handshake; nil before the first
	// Tools is the list as it is offered, after all filters; nil before the first list.
	Last  transports.Info
	Tools *session.ToolList
	// Unlisted is why the newest attempt to list the tools of a connected server failed; empty if it succeeded.
	Unlisted string
	// Overdue names the call of the transport that has not returned, when the time of the present attempt has passed; it is empty before.
	Overdue string
	// Link leads to the open admission gate: set while the server is connected, nil otherwise.
	Link *Link
}

// Cell publishes one server's View: one writer, any number of readers, no lock on reading. It outlives the server's actor.
type Cell struct {
	view      atomic.Pointer[View]
	announced atomic.Pointer[View] // what Wait compares; it follows view after the change has been reported
	History   History
	// Logs are the server's own log messages, Subscriptions the resources of which callers want updates.
	Logs          Logs
	Subscriptions Subscriptions

	// Share counts the bytes that are held for this server against Config.MemoryBudget; nil counts nothing. The supervisor sets it
	// before it publishes the cell.
	Share *budget.Share

	// GivenSecrets returns the credentials that requests to the server carried, beyond those in its spec; nil for none. It is set
	// before the cell is published.
	GivenSecrets func() []string

	// Instances are those of a server whose spec has share "principal". Use counts the requests of an instance, and is nil for a
	// server itself; it is set before the cell is published.
	Instances Instances
	Use       *Use

	// callQueue lets calls wait for a slot; nil if the server never had a bound. Only the server's actor sets it.
	callQueue *callQueue

	// answers counts the answers to questions of the server that may have belonged to any of its requests: see NoteAnswer.
	answers atomic.Uint64

	// mu guards changed.
	mu      sync.Mutex
	changed chan struct{} // closed and replaced when the view changes; nil while no caller waits
}

// NewCell makes a cell with its first view.
func NewCell(v *View) *Cell {
	c := &Cell{}
	c.view.Store(v)
	c.announced.Store(v)
	return c
}

// RedactText removes the server's secrets from a text: a server that refuses credentials tends to quote them in its error.
func (c *Cell) RedactText(text string) string { return c.redactFor(c.View().Spec, text) }

// redactFor uses the given spec's secrets: the actor's spec may be newer than the published one.
func (c *Cell) redactFor(spec *messages.Spec, text string) string {
	// Tokens from a store or a helper stand in no spec.
	if c.GivenSecrets != nil {
		for _, secret := range c.GivenSecrets() {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return spec.RedactText(text)
}

// View returns the newest view. It takes no lock.
func (c *Cell) View() *View { return c.view.Load() }

// Publish replaces the view, calls tell, unless it is nil, and then wakes the callers in Wait. In this order, a watcher that gets
// the event finds the new state in View, and a caller that has waited for the state does not run before the event is published.
func (c *Cell) Publish(v *View, tell func()) {
	c.view.Store(v)
	if tell != nil {
		tell()
	}
	c.announced.Store(v)
	c.mu.Lock()
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
	c.mu.Unlock()
}

// Wait returns the first view for which ok is true. If ctx ends first, it returns the newest view and ctx's error. ok may be called
// many times, also for the same view.
func (c *Cell) Wait(ctx context.Context, ok func(*View) bool) (*View, error) {
	// Nearly always the first look suffices, and no channel is made.
	if v := c.announced.Load(); ok(v) {
		return v, nil
	}
	for {
		// The channel is made under the lock and taken before the view is read.
		c.mu.Lock()
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		// The view is read after the channel was taken: a change in between closes that channel.
		// The view that is compared is the announced one, so a caller never runs ahead of the watchers.
		if v := c.announced.Load(); ok(v) {
			return v, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c.View(), ctx.Err()
		}
	}
}
