package live

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// commandTime bounds how long a command of the owner is waited for.
const commandTime = 2 * time.Minute

// command does what the owner does, in a goroutine of its own: no answer postpones what is planned next.
func (r *run) command(c scenario.Order) {
	e := history.Event{Side: history.Owner, Server: c.Server, Command: c.ID, Method: c.Do}
	begun := e
	begun.Kind = history.Command
	r.record(begun)
	r.driver.wish(c)
	r.driver.living.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), commandTime)
		defer cancel()
		err := r.obey(ctx, c)
		e.Kind = history.Done
		if err != nil {
			_, e.Class, e.Text = outcomeOf(err)
			r.secrets.text(c.Server, "the error of a command", e.Text)
		}
		r.record(e)
	})
}

// obey gives a command to the manager.
func (r *run) obey(ctx context.Context, c scenario.Order) error {
	m := r.manager
	switch c.Do {
	case "disable":
		return m.Toggle(ctx, c.Server, false)
	case "disconnect":
		return m.Disconnect(ctx, c.Server)
	case "enable":
		return m.Toggle(ctx, c.Server, true)
	case "reconnect":
		return m.Reconnect(ctx, c.Server)
	case "refresh":
		return m.Refresh(ctx, c.Server)
	case "remove":
		return m.Remove(ctx, c.Server)
	case "add":
		return m.Connect(ctx, c.Server, r.spec(c.Server))
	case "respec":
		return m.Connect(ctx, c.Server, r.spec(c.Server))
	case "configure":
		_, err := m.SetServers(ctx, r.specs())
		return err
	case "wake":
		m.Woken()
		return nil
	}
	return &Error{Text: "the plan has a command that nobody knows: " + messages.Line(c.Do, 40)}
}

// wish notes what a command wants of its server.
func (d *driver) wish(c scenario.Order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch c.Do {
	case "disable", "disconnect":
		if d.wishes[c.Server] != removed {
			d.wishes[c.Server] = unwanted
		}
	case "remove":
		d.wishes[c.Server] = removed
	case "enable":
		if d.wishes[c.Server] != removed {
			d.wishes[c.Server] = wanted
		}
	case "add", "respec":
		d.wishes[c.Server] = wanted
		if c.Do == "respec" {
			d.respecs[c.Server] = c.ID
		}
	}
}

func (d *driver) wishOf(server string) wish {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wishes[server]
}

// asError is an error of the facade.
func asError(err error) *messages.Error {
	var e *messages.Error
	if errors.As(err, &e) {
		return e
	}
	return &messages.Error{Class: messages.ClassOf(err), Outcome: messages.OutcomeUnknown, Text: err.Error()}
}

// resultOf is what a tool of ours says of its execution: over which connection, and how often it has run.
func resultOf(text string) (conn, value int) {
	var of struct{ Conn, Value int }
	_ = json.Unmarshal([]byte(text), &of) // some tools answer otherwise on purpose
	return of.Conn, of.Value
}
