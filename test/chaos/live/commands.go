package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// commandTimeout bounds the wait for the manager's answer to a command.
const commandTimeout = 2 * time.Minute

// runCommand gives a command in a goroutine of its own, so that a slow answer does not delay the plan. It notes what the owner
// wants before, because wantedSpecs reads it.
func (r *run) runCommand(c scenario.PlannedCommand) {
	commands := r.perServerCommands(c)
	for _, m := range commands {
		r.recordEvent(history.Event{Side: history.Owner, Kind: history.Command, Server: m.Server, Command: c.ID, Method: m.Do})
		r.driver.noteCommand(m)
	}
	r.driver.goroutines.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
		defer cancel()
		all := r.executeCommand(ctx, c)
		for _, m := range commands {
			err := all
			if c.Do == scenario.ConnectAll || c.Do == scenario.DisconnectAll {
				err = scenario.ErrorOf(all, m.Server)
			}
			e := history.Event{Side: history.Owner, Kind: history.Done, Server: m.Server, Command: c.ID, Method: m.Do}
			if err != nil {
				_, e.Class, e.Text = outcomeOf(err)
				r.secrets.checkText(c.Server, "the error of a command", e.Text)
			}
			r.recordEvent(e)
		}
	})
}

// perServerCommands splits a configure command with a set of servers into the removals and additions that it amounts to, and a
// command to all servers into what it does to each, because the invariants judge each server by its own commands. Any other
// command stays as it is. A server that is connected when all are to be may be lost until the manager looks: that is an enable.
func (r *run) perServerCommands(c scenario.PlannedCommand) []scenario.PlannedCommand {
	var all []scenario.PlannedCommand
	if c.Do == scenario.ConnectAll || c.Do == scenario.DisconnectAll {
		for _, st := range r.manager.Status() {
			do := cmp.Or(scenario.ActionOf(c.Do, st.Status, st.Step), "enable")
			all = append(all, scenario.PlannedCommand{ID: c.ID, Do: do, Server: st.Name, At: c.At})
		}
		return all
	}
	if c.Only == nil {
		return []scenario.PlannedCommand{c}
	}
	for _, s := range r.plan.Servers {
		isRemoved, isKept := r.driver.wantedStateOf(s.Name) == wantRemoved, slices.Contains(c.Only, s.Name)
		switch {
		case isKept && isRemoved:
			all = append(all, scenario.PlannedCommand{ID: c.ID, Do: "add", Server: s.Name, At: c.At})
		case !isKept && !isRemoved:
			all = append(all, scenario.PlannedCommand{ID: c.ID, Do: "remove", Server: s.Name, At: c.At})
		}
	}
	return all
}

// executeCommand gives a command to the manager and returns its answer.
func (r *run) executeCommand(ctx context.Context, c scenario.PlannedCommand) error {
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
		return m.Connect(ctx, c.Server, r.serverSpec(c.Server))
	case "respec":
		return m.Connect(ctx, c.Server, r.serverSpec(c.Server))
	case "adjust":
		if c.BySet() {
			_, err := m.SetServers(ctx, r.wantedSpecs())
			return err
		}
		return m.Connect(ctx, c.Server, r.serverSpec(c.Server))
	case "approve":
		_, err := m.ApprovePins(ctx, c.Server, m.PinChanges(c.Server))
		return err
	case "permit":
		return m.SetPermissions(ctx, r.permissionRules())
	case "configure":
		_, err := m.SetServers(ctx, r.wantedSpecs())
		return err
	case scenario.ConnectAll:
		return m.ConnectAll(ctx)
	case scenario.DisconnectAll:
		return m.DisconnectAll(ctx)
	case "wake":
		m.Woken()
		return nil
	}
	// scenario's checks refuse such a plan, so only a plan made by hand gets here.
	return &Error{Text: "the plan has a command that nobody knows: " + messages.Line(c.Do, 40)}
}

// noteCommand notes the state that a command wants of its server. Disabling and enabling do not bring back a removed server.
func (d *driver) noteCommand(c scenario.PlannedCommand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch c.Do {
	case "disable", "disconnect":
		if d.wantedStates[c.Server] != wantRemoved {
			d.wantedStates[c.Server] = wantDisabled
		}
	case "remove":
		d.wantedStates[c.Server] = wantRemoved
	case "enable":
		if d.wantedStates[c.Server] != wantRemoved {
			d.wantedStates[c.Server] = wantConnected
		}
	case "permit":
		d.adjustments[c.Server] = append(d.adjustments[c.Server], c.With)
	case "add", "respec", "adjust":
		d.wantedStates[c.Server] = wantConnected
		if c.Do == "respec" {
			d.respecCommands[c.Server] = c.ID
		}
		if c.Do == "adjust" {
			d.adjustments[c.Server] = append(d.adjustments[c.Server], c.With)
		}
	}
}

// wantedStateOf returns the state that the owner last asked of a server; a server without commands is to be connected.
func (d *driver) wantedStateOf(server string) wantedState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wantedStates[server]
}

// toFacadeError returns the *messages.Error in err, or one with an unknown outcome if there is none.
func toFacadeError(err error) *messages.Error {
	var e *messages.Error
	if errors.As(err, &e) {
		return e
	}
	return &messages.Error{Class: messages.ClassOf(err), Outcome: messages.OutcomeUnknown, Text: err.Error()}
}

// resultOf reads from a tool's result the connection over which the tool ran and the count of its runs.
func resultOf(text string) (conn, value int) {
	var result struct{ Conn, Value int }
	// Some faults make tools answer with other text; both numbers are then 0.
	_ = json.Unmarshal([]byte(text), &result)
	return result.Conn, result.Value
}
