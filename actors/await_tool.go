package actors

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// awaitTool finds the entry of a tool that is not in the catalog, by its qualified name or by its own name at the request's server or
// instance.
// The catalog withdraws the tools of a server that is down, and lacks those of one that was never connected. In both cases the
// server is configured, so the call waits for it to connect, for Wait at most, and fails with the server's state if it
// does not. remaining is the part of Wait that this wait has not used.
func (c *Calls) awaitTool(ctx context.Context, r *Request, qualified, tool string) (_ *catalog.Entry, remaining time.Duration, _ error) {
	server := r.Server
	if qualified == "" && tool == "" {
		return nil, 0, &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Server: server,
			Text: "the name of the tool is empty", Fix: "list the tools to see their names", Err: messages.ErrUnknownTool}
	}
	// A refusal is final, so it comes before any wait. For an instance it was asked before that was made.
	if c.Refuse != nil && r.Instance == "" {
		if err := c.Refuse(qualified, server, tool); err != nil {
			return nil, 0, err
		}
	}
	if qualified != "" {
		if c.ResolveName != nil {
			server, tool = c.ResolveName(qualified)
		}
		if server == "" {
			return nil, 0, c.unknownNameError(qualified)
		}
		if cell := c.Cell(server); r.Instance == "" && cell != nil && isResting(cell.View()) && cell.View().Tools != nil {
			// The tools of a resting server are in the catalog, so this name is wrong: the server is not connected for it.
			return nil, 0, c.unknownNameError(qualified)
		}
	}
	if r.Instance != "" {
		server = r.Instance
	}
	// A lazy server whose tools are unknown, and an instance that was just made, must connect to show them.
	if err := c.wakeServer(ctx, server, tool); err != nil {
		return nil, 0, err
	}
	cell := c.Cell(server)
	if cell == nil {
		return nil, 0, c.notConnectedError(server, tool, nil)
	}
	// A server is published as connected only after its tools are in the catalog. It may have become connected since the first
	// lookup, so only a lookup after the view was read can say that there is no such tool.
	seen := cell.View()
	remaining = c.Wait
	if !connectedSince(seen, 0) && c.Wait > 0 {
		var err error
		began := time.Now()
		if seen, err = c.awaitConnected(ctx, cell, server, tool, 0, c.Wait); err != nil {
			return nil, 0, err
		}
		remaining -= time.Since(began)
	}
	// Now the catalog has the tools of every server that was seen as connected.
	entry, ok := c.Catalog.Snapshot().LookupTool(server, tool)
	switch {
	case r.Instance != "":
		entry = c.entryOfInstance(r.Instance, tool, qualified)
		ok = entry != nil
	case tool == "":
		entry, ok = c.Catalog.Snapshot().Lookup(qualified)
	}
	switch {
	case ok:
		return entry, remaining, nil
	case !connectedSince(seen, 0):
		return nil, 0, c.notConnectedError(server, tool, ctx.Err())
	case tool == "":
		return nil, 0, c.unknownNameError(qualified)
	}
	return nil, 0, c.unknownToolError(server, tool, seen)
}

// unknownNameError is the error of a qualified name that belongs to no known tool.
func (c *Calls) unknownNameError(qualified string) error {
	return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Tool: qualified,
		Text: fmt.Sprintf("no tool is registered as %q", messages.Line(qualified, 200)),
		Fix:  "list the tools to see the names, or see whether its server is connected", Err: messages.ErrUnknownTool}
}

// unknownToolError returns the error of a call whose tool is not in the catalog. v is the server's view from before the catalog was
// read, nil if no server has that name. A server that was not connected then is reported as down; for a connected one the error
// says what keeps the tool out: a rule, a quarantine, or nothing known.
func (c *Calls) unknownToolError(server, tool string, v *View) error {
	if v == nil || v.State.Phase != messages.Connected {
		return c.notConnectedError(server, tool, nil)
	}
	e := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Server: server, Tool: tool,
		Text: "the server offers no such tool", Fix: "list its tools to see the names", Err: messages.ErrUnknownTool}
	// A tool that the spec itself keeps out is named with the key to change.
	if rule := ToolRule(v.Spec, tool); rule != "" {
		e.Class, e.Text, e.Fix = messages.ClassDenied, rule+" of its configuration keeps this tool from being offered", "change "+rule
		e.Err = messages.ErrDenied
	}
	if v.Tools != nil {
		// A quarantined tool has its own reason: a rule, a pin, or a faulty definition.
		for _, q := range v.Tools.Quarantined {
			switch {
			case q.Name != tool:
			case q.By != "":
				e.Class, e.Err, e.Text, e.Fix = messages.ClassDenied, messages.ErrDenied, q.Reason, ""
			default:
				e.Text, e.Fix = "the tool is quarantined: "+q.Reason, "the server must mend its definition"
			}
		}
	}
	return e
}
