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

// View is one published moment of a server. It is immutable.
type View struct {
	Name  string
	Spec  *messages.Spec
	State lifecycle.State
	// Since is when the phase began. Restarts counts connections after the first.
	Since    time.Time
	Restarts int
	// Attempts counts consecutive failures, as the supervisor last said.
	Attempts int
	// Seen is the ticket of the newest Look that the server's actor has handled: everything sent before it shows here.
	Seen uint64
	// Session is set while there is one to ask; Last is what was known of the one before.
	Session *session.Session
	Info    *session.Info // of the newest handshake; nil before the first
	Last    transports.Info
	Tools   *session.ToolList
	// Unlisted is why the tools of a connected server could not be listed when they were asked for last; empty if they could.
	Unlisted string
	// Link is the way to the gate that is open: set while the server is connected.
	Link *Link
}

// Cell is where one server's View is published: one writer, any number of readers, no lock on reading.
type Cell struct {
	view      atomic.Pointer[View]
	announced atomic.Pointer[View] // what Wait looks at
	History   History
	// Logs are the server's own log messages, Watched the resources that somebody wants to be told about.
	Logs          Logs
	Subscriptions Subscriptions

	// Share counts the bytes that are held for this server against Config.MemoryBudget; nil counts nothing. Whoever makes the
	// cell sets it before others see the cell.
	Share *budget.Share

	// GivenSecrets are what the server was given to let us in besides what its spec says; nil for nothing. It is set before the
	// cell is shared.
	GivenSecrets func() []string

	// callQueue are where calls wait, nil if none ever had to. Only the server's actor sets it.
	callQueue *callQueue

	// answers counts what the server was answered that may have been about any request.
	answers atomic.Uint64

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when the view changes; nil while nobody waits
}

// NewCell starts with a view.
func NewCell(v *View) *Cell {
	c := &Cell{}
	c.view.Store(v)
	c.announced.Store(v)
	return c
}

// RedactText replaces what is secret about the server in a text: a server that cannot log in tends to say with what it tried.
func (c *Cell) RedactText(text string) string { return c.redactFor(c.View().Spec, text) }

func (c *Cell) redactFor(spec *messages.Spec, text string) string {
	if c.GivenSecrets != nil {
		for _, secret := range c.GivenSecrets() {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return spec.RedactText(text)
}

// View is the newest view.
func (c *Cell) View() *View { return c.view.Load() }

// Publish replaces the view, tells of it, unless tell is nil, and then wakes whoever waits: who is told of a change
// reads it in View, and who has waited for one is not ahead of those who are told.
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

// Wait returns the first view for which ok is true, or ctx's error.
func (c *Cell) Wait(ctx context.Context, ok func(*View) bool) (*View, error) {
	if v := c.announced.Load(); ok(v) { // nearly always: then nobody waits, and nothing is made for it
		return v, nil
	}
	for {
		c.mu.Lock()
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		// Read after the channel was taken: a change in between closes it.
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
