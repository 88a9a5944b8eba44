package project

import (
	"context"

	"github.com/mcpvisor/mcpvisor/actors/opening"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// awaitInstalls goes on waiting for the servers that are being installed. Installations end with this command, and one that is
// cut short begins anew the next time or leaves a broken cache (doctor looks for one). The person can bound the wait with --wait
// or press Ctrl-C; opening.MaxAttempt bounds it in any case.
func (p *Project) awaitInstalls(ctx context.Context, all []messages.Status, only []string) ([]messages.Status, error) {
	var names []string
	for _, st := range all {
		if st.Step == messages.Installing {
			names = append(names, st.Name)
			p.Options.PrintRemark("%s: %s; it ends with this command, which waits for it (Ctrl-C ends both, --wait bounds it)",
				messages.Line(st.Name, 80), messages.Line(st.Reason, 80))
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	if _, err := p.Status(ctx, control.StatusQuery{Servers: names, Wait: opening.MaxAttempt}); err != nil {
		return nil, err
	}
	// The second query answers for all servers, those that were not installed included.
	return p.Status(ctx, control.StatusQuery{Servers: only})
}
