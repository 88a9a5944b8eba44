package main

import (
	"context"

	"github.com/mcpvisor/mcpvisor/actors/opening"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// awaitInstalls waits on for those of the servers that are being installed. They end with this command, and an installation that
// is cut short begins anew the next time, or leaves a cache that is broken for good. Whoever does not want to wait says so
// with --wait, or presses Ctrl-C. An installation that goes on for too long fails.
func (p *project) awaitInstalls(ctx context.Context, all []messages.Status, only []string) ([]messages.Status, error) {
	var names []string
	for _, st := range all {
		if st.Step == messages.Installing {
			names = append(names, st.Name)
			p.printRemark("%s: %s; it ends with this command, which waits for it (Ctrl-C ends both, --wait bounds it)",
				messages.Line(st.Name, 80), messages.Line(st.Reason, 80))
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	if _, err := p.Status(ctx, control.StatusQuery{Servers: names, Wait: opening.MaxAttempt}); err != nil {
		return nil, err
	}
	return p.Status(ctx, control.StatusQuery{Servers: only})
}
