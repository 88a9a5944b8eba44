package supervisor

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/core"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
)

// Permissions returns the rules that are in force.
func (m *Manager) Permissions() access.Rules { return m.rules.CurrentRules() }

// SetPermissions replaces the rules. It returns when every call that begins is decided by the new ones, and the catalog
// shows what they leave: tools that every call would be denied are withdrawn, others come back. The tools of a server whose
// connection was lost stay shown as lost until it is back or WithdrawAfter has passed. Calls that run are not ended. What a
// person has allowed until the manager ends stays allowed where the new rules ask. An error says that ctx ended while the
// catalog was still changing; the rules are in force all the same.
func (m *Manager) SetPermissions(ctx context.Context, r access.Rules) error {
	if ctx == nil {
		return refusal.NilContextError("configure", "", "")
	}
	if m.closing.Load() {
		return refusal.ClosedError("configure")
	}
	// The rules are in force for every call from here on; what follows only changes what is shown.
	m.rules.SetRules(r)
	m.audit.RecordChange(auditor.CallerFromContext(ctx), audit.Record{Kind: audit.KindApproval, Change: "permissions", Detail: auditor.RuleCount(r)}, nil)
	return m.refilterTools(ctx)
}

// refilterTools makes every server filter its tools again, and returns when the catalog shows the outcome. It waits for each
// server's actor by ticket: those that are removed or replaced meanwhile have nothing to show.
func (m *Manager) refilterTools(ctx context.Context) error {
	m.sendCommand(core.RefilterAll{})
	ticket, err := m.awaitHandled(ctx, "configure")
	if err != nil {
		return err
	}
	for _, name := range m.shared.NamesWithInstances() {
		if cell := m.shared.CellOf(name); cell != nil {
			if _, err := cell.Wait(ctx, func(v *actors.View) bool {
				return v.Seen >= ticket || v.State.Removing || m.shared.CellOf(name) != cell
			}); err != nil {
				return &messages.Error{Op: "configure", Class: messages.ClassOf(err), Server: name,
					Text: "the rules are in force, and its tools were not shown anew when the context ended", Err: err}
			}
		}
	}
	return m.awaitCatalog(ctx, "configure")
}

// Decide returns what would happen to a call, without making it: by the rules, and by the annotations of the tool if its server
// is trusted and offers it. What a person has allowed until the manager ends does not count.
func (m *Manager) Decide(server, tool string, args json.RawMessage) access.Decision {
	return m.rules.Decide(server, tool, args)
}

// pinsEvery is the period in which the manager checks whether another process has changed the store.
const pinsEvery = 250 * time.Millisecond

// followPins filters the tools again when another process has approved a definition. It is a goroutine of the manager and ends
// with it. A panic only ends the following: tools stay held back or offered as they are.
func (m *Manager) followPins() {
	defer func() { _ = recover() }()
	// Polling works on every file system; an unchanged file costs one stat.
	t := time.NewTicker(pinsEvery)
	defer t.Stop()
	for {
		select {
		case <-m.closingBegun:
			return
		case <-t.C:
			// Reread reports true also when definitions that Unsaved named are written.
			if m.cfg.Pins.Reread() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				// The manager ends, or the next list of the server shows it.
				_ = m.refilterTools(ctx)
				cancel()
			}
		}
	}
}

// setPin replaces the treatment of changed tools, and returns when the catalog shows the outcome.
func (m *Manager) setPin(ctx context.Context, own, least string) error {
	if !m.permissions.SetPinPolicy(own, least) {
		return nil
	}
	return m.refilterTools(ctx)
}

// PinChanges returns the changed definitions of a server's tools that wait for an approval, sorted by tool; nil without Config.Pins.
func (m *Manager) PinChanges(server string) []pins.Change {
	cell := m.shared.CellOf(server)
	if cell == nil || m.cfg.Pins == nil {
		return nil
	}
	return m.cfg.Pins.Changes(pins.Key(server, cell.View().Spec))
}

// ApprovePins accepts changes of a server's tools, as PinChanges returned them, and returns when the catalog shows the
// tools. unseen are the tools that have changed again meanwhile: the person has not seen those definitions, so they still wait.
func (m *Manager) ApprovePins(ctx context.Context, server string, changes []pins.Change) (unseen []string, err error) {
	if ctx == nil {
		return nil, refusal.NilContextError("approve", server, "")
	}
	cell := m.shared.CellOf(server)
	if cell == nil || m.cfg.Pins == nil {
		return nil, m.unknownServerError("approve", server)
	}
	// The changes are matched by their hashes, so a newer definition cannot slip through.
	approved, unseen, err := m.cfg.Pins.Approve(pins.Key(server, cell.View().Spec), changes)
	for _, tool := range approved {
		m.audit.RecordChange(auditor.CallerFromContext(ctx), audit.Record{Kind: audit.KindApproval, Change: "pin", Server: server, Tool: tool}, nil)
	}
	if err != nil {
		return unseen, err
	}
	return unseen, m.refilterTools(ctx)
}
