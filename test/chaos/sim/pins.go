package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
)

// pinWatch knows which definitions of tools were shown first, or approved since. The manager has to say of every other one that
// it has changed.
type pinWatch struct {
	mu sync.Mutex
	// approved are the hashes of definitions, by server and tool.
	approved map[string]map[string][]string
	// hashes are those of the definitions that were looked at, by tool: a tool never changes once it was published, and its hash
	// is dear.
	hashes map[*supervisor.Tool]string
}

// configurePins gives the manager a memory of definitions, if the scenario says so.
func (w *simulation) configurePins(cfg *supervisor.Config) error {
	if !w.plan.Scenario.Manager.Pins {
		return nil
	}
	w.pins.approved, w.pins.hashes = map[string]map[string][]string{}, map[*supervisor.Tool]string{}
	store, err := pins.Open("")
	cfg.Pins = store
	return err
}

// learnDefinitions notes the definitions of tools that are shown for the first time, and returns the names of those that are shown with
// another one which nobody has approved.
func (p *pinWatch) learnDefinitions(server string, entries []*supervisor.Entry) (unapproved []string) {
	if p.approved == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.approved[server] == nil {
		p.approved[server] = map[string][]string{}
	}
	for _, e := range entries {
		known, hash := p.approved[server], p.hashOf(e.Tool)
		switch {
		case known[e.Tool.Name] == nil:
			known[e.Tool.Name] = []string{hash}
		case !slices.Contains(known[e.Tool.Name], hash):
			unapproved = append(unapproved, e.Tool.Name)
		}
	}
	return unapproved
}

// learnShown learns the tools that the catalog shows of a server. Where changed tools are held back, none of them may be shown with a
// definition that nobody has approved, at no moment. Another description of the server, or a server that is added again, begins anew.
func (w *simulation) learnShown(server string, entries []*supervisor.Entry) {
	unapproved := w.pins.learnDefinitions(server, entries)
	if h := w.servers[server]; len(unapproved) > 0 && w.plan.HoldsBack(server) && h.revision == 0 && !h.removed {
		w.reportBrokenPromise(server, "the tool "+unapproved[0]+" is offered with a definition that nobody has approved, and changed tools of this server are held back")
	}
}

// approve notes what was approved.
func (p *pinWatch) approve(server string, changes []pins.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range changes {
		if known := p.approved[server]; known != nil {
			known[c.Tool] = append(known[c.Tool], c.Hash)
		}
	}
}

// isApproved reports whether a definition is one that was shown first or approved.
func (p *pinWatch) isApproved(server string, tool *supervisor.Tool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.approved[server][tool.Name], p.hashOf(tool))
}

// hashOf returns the hash of a tool's definition. The caller holds mu.
func (p *pinWatch) hashOf(tool *supervisor.Tool) string {
	hash, known := p.hashes[tool]
	if !known {
		hash = pins.DefinitionOf(tool).Hash()
		p.hashes[tool] = hash
	}
	return hash
}

// checkPins judges what is said of the changed tools of a server that is connected, when nothing moves: the status names those
// that wait for an approval, and every tool waits whose definition is none that was shown first or approved. What another
// description of the server, or a rule, hides and shows again is not known here.
func (w *simulation) checkPins(status *messages.Status) {
	name, h := status.Name, w.servers[status.Name]
	if w.pins.approved == nil || h == nil || status.Status != messages.Connected || h.revision > 0 || h.removed || w.plan.Denies(name) {
		return
	}
	var waiting, said []string
	for _, c := range w.manager.PinChanges(name) {
		waiting = append(waiting, c.Tool)
	}
	for _, c := range status.ChangedTools {
		said = append(said, c.Name)
	}
	for _, held := range status.Quarantined {
		if held.By == messages.QuarantinedByPin && !slices.Contains(waiting, held.Name) {
			w.reportBrokenPromise(name, "the tool "+held.Name+" is held back, and does not wait for an approval")
		}
	}
	if w.plan.HoldsBack(name) {
		for _, tool := range said {
			if !slices.ContainsFunc(status.Quarantined, func(q messages.QuarantinedTool) bool { return q.Name == tool && q.By == messages.QuarantinedByPin }) {
				w.reportBrokenPromise(name, "the tool "+tool+" has changed, and is not held back")
			}
		}
		return
	}
	for _, e := range w.manager.Tools().Server(name) {
		tool := e.Tool.Name
		isWaiting, isSaid := slices.Contains(waiting, tool), slices.Contains(said, tool)
		switch {
		case isWaiting != isSaid:
			w.reportBrokenPromise(name, fmt.Sprintf("of the tool %s the status says that it has changed: %t, and that it waits for an approval: %t", tool, isSaid,
				isWaiting))
		case !isWaiting && !w.pins.isApproved(name, e.Tool):
			w.reportBrokenPromise(name, "the definition of the tool "+tool+" is not the one that was shown first, nobody has approved it, and it does not wait for that")
		}
	}
}

// approveFunc is the command that approves what has changed of a server. What was approved waits no more.
func (w *simulation) approveFunc(ctx context.Context, server string) func() error {
	return func() error {
		if w.pins.approved == nil {
			return nil
		}
		changes := w.manager.PinChanges(server)
		w.pins.approve(server, changes)
		unseen, err := w.manager.ApprovePins(ctx, server, changes)
		if err != nil {
			return err
		}
		for _, c := range w.manager.PinChanges(server) {
			if !slices.Contains(unseen, c.Tool) && slices.ContainsFunc(changes, func(o pins.Change) bool { return o.Tool == c.Tool && o.Hash == c.Hash }) {
				w.reportBrokenPromise(server, "the change of the tool "+c.Tool+" was approved, and waits for an approval still")
			}
		}
		return nil
	}
}
