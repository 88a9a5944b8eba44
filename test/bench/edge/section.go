package edge

import (
	"context"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// The bounds of what a session holds, in bytes.
const (
	maxSession = 8 << 10
	maxStream  = 45 << 10
)

// Sections returns the sections about the gateway and about the agents of a machine.
func Sections() []row.Section {
	return []row.Section{
		{Name: "gateway", Does: "calls of 100 B through the gateway, in shares of a bare edge and of a direct call; lists, sessions, and a killed server", Run: runGateway},
		{Name: "agents", Does: "fifty agents that use mcpvisor connect, with one server", Run: runAgents},
	}
}

// pairs is how many turns of each contender a round has.
const pairs = 6

func runGateway(ctx context.Context, o row.Options) (report row.Report, err error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"server", "callers", "edge", "gateway", "p50 ÷ edge", "rate ÷ edge", "p50 ÷ direct"})
	for _, upstream := range []string{"stdio", "http"} {
		for _, callers := range []int{1, 64} {
			o.Progress("gateway: calls, %s, %d callers", upstream, callers)
			r, err := measureCalls(ctx, upstream, callers, pairs*o.Rounds, o.For/2)
			if err != nil {
				return report, err
			}
			direct := "–"
			if r.direct > 0 {
				direct = fmt.Sprintf("%.2f", r.direct)
			}
			t.AppendRow(table.Row{upstream, callers, fmt.Sprintf("%.0f µs", r.edge.median), fmt.Sprintf("%.0f µs", r.gateway.median),
				fmt.Sprintf("%.2f", r.median), fmt.Sprintf("%.2f", r.rate), direct})
			name := fmt.Sprintf("gateway: call, %s, %d callers", upstream, callers)
			if callers == 1 {
				report.Rows = append(report.Rows, row.Row{Case: name + ", p50", Unit: "× edge", Value: r.median, Target: 1.1})
			} else {
				report.Rows = append(report.Rows, row.Row{Case: name + ", time of all", Unit: "× edge", Value: 1 / r.rate, Target: 1 / 0.9})
			}
		}
	}
	more, err := runSessions(ctx, o)
	report.Rows = append(report.Rows, more...)
	report.Text = t.Render()
	for _, r := range more {
		report.Text += fmt.Sprintf("\n%s: %.3g %s", r.Case, r.Value, r.Unit)
	}
	return report, err
}

// startService starts a manager with a server in this process that has three tools, and a gateway before it.
func startService(ctx context.Context) (_ serve.Service, end func(), err error) {
	return startGateway(ctx, supervisortest.AddTo(supervisor.Config{}, supervisortest.NewServer("one", supervisortest.Echo("echo"),
		supervisortest.Echo("tool_0"), supervisortest.Echo("tool_1"))))
}

// startGateway starts a manager with a server "one", and a gateway before it.
func startGateway(ctx context.Context, cfg supervisor.Config) (_ serve.Service, end func(), err error) {
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	if err := m.Ready(ctx, "one"); err != nil {
		return nil, nil, err
	}
	g := gateway.New(gateway.Config{Manager: m})
	return g, func() {
		g.Close()
		_ = m.Close(context.WithoutCancel(ctx))
	}, nil
}

func runSessions(ctx context.Context, o row.Options) (rows []row.Row, err error) {
	big, end, err := startLists(ctx, 5000)
	if err != nil {
		return nil, err
	}
	o.Progress("gateway: lists")
	h := serve.NewHandler(serve.Options{Service: big})
	for _, l := range listed {
		warm, err := measureList(ctx, h, l.method, 5000, 100)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row.Row{Case: "gateway: list of 5,000 " + l.name + ", warm", Unit: "ms", Value: warm, Target: 1})
	}
	end()
	service, end, err := startService(ctx)
	if err != nil {
		return rows, err
	}
	defer end()
	o.Progress("gateway: sessions")
	idle, err := sessionBytes(ctx, service, 10_000)
	if err != nil {
		return rows, err
	}
	stream, err := streamBytes(ctx, service, 5_000)
	if err != nil {
		return rows, err
	}
	rows = append(rows, row.Row{Case: "gateway: an idle session, of 10,000", Unit: "KB", Value: float64(idle) / 1024, Target: maxSession >> 10},
		row.Row{Case: "gateway: a session with a stream, of 5,000", Unit: "KB", Value: float64(stream) / 1024, Target: maxStream >> 10})
	o.Progress("gateway: a killed server")
	k, err := measureKill(ctx, 1000)
	if err != nil {
		return rows, err
	}
	if k.notified != 1000 {
		return rows, fmt.Errorf("of 1,000 sessions %d were told of the killed server", k.notified)
	}
	return append(rows, row.Row{Case: "gateway: tools of a killed server gone, p99 of 1,000 sessions", Unit: "ms", Value: float64(k.gone) / float64(time.Millisecond), Target: 100},
		row.Row{Case: "gateway: and back, after its return", Unit: "ms", Value: float64(k.back) / float64(time.Millisecond), Target: 1000}), nil
}
