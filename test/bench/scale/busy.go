package scale

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Busy starts a manager with each connected servers of each kind, for a program that calls them. The caller calls end, which
// closes the manager and the servers.
func Busy(ctx context.Context, each int) (m *supervisor.Manager, end func(), err error) {
	web, err := NewWeb()
	if err != nil {
		return nil, nil, err
	}
	all := map[string]supervisor.Spec{}
	for _, kind := range []string{"in process", "http", "stdio"} {
		i := 0
		for _, spec := range serverSpecs(kind, each, web) {
			all[fmt.Sprintf("%s-%d", benchmarkName(kind), i)] = spec
			i++
		}
	}
	if m, err = startManager(ctx, all); err != nil {
		web.Close()
		return nil, nil, err
	}
	end = func() {
		// The measurements are over, so an error of closing changes nothing.
		var err error
		closeWithin(m, &err)
		web.Close()
	}
	if err := awaitConnected(ctx, m); err != nil {
		end()
		return nil, nil, err
	}
	return m, end, nil
}

// BusyTool returns the name of the tool of a server of Busy.
func BusyTool(server string) string {
	if strings.HasPrefix(server, "stdio") {
		return "echo"
	}
	return "x"
}
