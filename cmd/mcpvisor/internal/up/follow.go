package up

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// followFiles makes the manager follow the files that it was started from, unless --no-watch is given. If they cannot be
// followed, that is reported and the run goes on. The caller calls end, which waits for a reload that is running.
func (r *upRun) followFiles(ctx context.Context, m *supervisor.Manager, d display) (end func()) {
	if r.reading == nil {
		return func() {}
	}
	f, err := supervisor.Follow(ctx, m, supervisor.FollowOptions{Reading: r.reading, OnReload: func(res supervisor.ReloadResult) {
		defer r.catchPanic()
		d.showReload(res)
	}})
	if err != nil {
		if ctx.Err() == nil {
			r.options.WarnFailure(fmt.Errorf("changed configuration files are not followed: %w", err))
		}
		return func() {}
	}
	return f.Close
}
