package fault

import (
	"bytes"
	"context"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// This file cuts messages where there are no bytes between client and server: a sink gets whole messages only, so that the part of
// one that has arrived waits here for what a reader of lines would find behind it. That is the next message, in the same line, or
// the end, which makes of it a line that is no message.

// tearMessage lets the first part of a message arrive, and with Stall keeps back what follows it.
func (c *conn) tearMessage(f Disposition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.torn = append(c.torn, f.Body[:min(f.Cut, len(f.Body))]...)
	c.tornBy = f.Stall
	c.isTorn.Store(true)
}

// standsStill returns the rule for whose end everything waits behind a part of a message; empty if there is none in force.
func (c *conn) standsStill() string {
	if !c.isTorn.Load() {
		return ""
	}
	c.mu.Lock()
	rule := c.tornBy
	c.mu.Unlock()
	if rule == "" || !c.flow.Active(rule) {
		return ""
	}
	return rule
}

// joinTorn returns a message behind the part of one that stands before it in the stream: both are one line, which is no message.
func (c *conn) joinTorn(body []byte) []byte {
	if !c.isTorn.Load() {
		return body
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	line := slices.Concat(c.torn, body)
	c.torn, c.tornBy = nil, ""
	c.isTorn.Store(false)
	return line
}

// reportTorn reports the part of a message behind which nothing comes, as a transport does at the end of a stream.
func (c *conn) reportTorn() {
	const most = 256 // of a line that is no message, as the transports keep
	line := c.joinTorn(nil)
	if len(line) == 0 {
		return
	}
	c.noise.Add(1)
	c.callSink(func() { c.sink.Noise(bytes.Clone(line[:min(len(line), most)])) })
}

// loseMessage is a Send whose message is lost on its way: the sender cannot know that. Where Send of a request returns with its
// answer, it waits for one that does not come.
func (c *conn) loseMessage(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if m.ID == 0 || !c.waitsForAnswer {
		return transports.Written, nil
	}
	select {
	case <-ctx.Done():
		return transports.MaybeWritten, contextError(ctx, "waiting for the answer")
	case <-c.ended:
	}
	if cause := c.endCause.Load(); cause != nil {
		return transports.MaybeWritten, cause
	}
	return transports.MaybeWritten, &transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"}
}
