package sim

import (
	"github.com/mcpvisor/mcpvisor/test/chaos/agents"
)

// startAgents puts a gateway before the manager, if the plan has agents, and plans what they do. Each operation is that of a user: it runs
// in a goroutine of its own until it has its answer.
func (w *simulation) startAgents() error {
	if len(w.plan.Agents) == 0 {
		return nil
	}
	fleet, err := agents.Start(agents.Options{
		Plan: w.plan, Manager: w.manager, Record: w.rec.Add, Now: w.elapsedTime,
		Check: func(server, where, text string) { w.secrets.checkText(w, server, where, text) },
	})
	if err != nil {
		return err
	}
	w.fleet = fleet
	for _, op := range fleet.Ops() {
		w.timeline.planAction(op.At, "", func() { w.users.runAsUser(op.Do) })
	}
	return nil
}

// closeAgents ends the agents and their gateway, before the manager.
func (w *simulation) closeAgents() {
	if w.fleet != nil {
		w.fleet.Close()
	}
}
