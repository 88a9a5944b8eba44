package live

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// commandTime bounds how long a command of the owner is waited for.
const commandTime = 2 * time.Minute

// command does what the owner does, in a goroutine of its own: no answer postpones what is planned next.
func (r *run) command(c scenario.Order) {
	meant := r.meant(c)
	for _, m := range meant {
		r.record(history.Event{Side: history.Owner, Kind: history.Command, Server: m.Server, Command: c.ID, Method: m.Do})
		r.driver.wish(m)
	}
	r.driver.living.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), commandTime)
		defer cancel()
		err := r.obey(ctx, c)
		for _, m := range meant {
			e := history.Event{Side: history.Owner, Kind: history.Done, Server: m.Server, Command: c.ID, Method: m.Do}
			if err != nil {
				_, e.Class, e.Text = outcomeOf(err)
				r.secrets.text(c.Server, "the error of a command", e.Text)
			}
			r.record(e)
		}
	})
}

// meant is how a command stands in the record. A set of servers that is not the whole one is a removal of some and an addition of
// others, each of which is one server's matter.
func (r *run) meant(c scenario.Order) []scenario.Order {
	if c.Only == nil {
		return []scenario.Order{c}
	}
	var all []scenario.Order
	for _, s := range r.plan.Servers {
		gone, kept := r.driver.wishOf(s.Name) == removed, slices.Contains(c.Only, s.Name)
		switch {
		case kept && gone:
			all = append(all, scenario.Order{ID: c.ID, Do: "add", Server: s.Name, At: c.At})
		case !kept && !gone:
			all = append(all, scenario.Order{ID: c.ID, Do: "remove", Server: s.Name, At: c.At})
		}
	}
	return all
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
	case "adjust":
		if c.BySet() {
			_, err := m.SetServers(ctx, r.specs())
			return err
		}
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
	case "add", "respec", "adjust":
		d.wishes[c.Server] = wanted
		if c.Do == "respec" {
			d.respecs[c.Server] = c.ID
		}
		if c.Do == "adjust" {
			d.adjusted[c.Server] = append(d.adjusted[c.Server], c.With)
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
