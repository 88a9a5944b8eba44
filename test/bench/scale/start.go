package scale

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// MeasureStart returns the time from nothing to n connected stdio servers, through the gate with its default limits.
func MeasureStart(ctx context.Context, n int) (took time.Duration, err error) {
	all := serverSpecs("stdio", n, nil)
	runtime.GC()
	began := time.Now()
	m, err := startManager(ctx, all)
	if err != nil {
		return 0, err
	}
	defer closeWithin(m, &err)
	if err := m.Settled(ctx); err != nil {
		return 0, err
	}
	took = time.Since(began)
	return took, awaitConnected(ctx, m)
}

// startTarget is the largest ratio of the start of 500 servers to the floor client's time.
const startTarget = 1.25

// Start returns the section about the start of many servers.
func Start() row.Section {
	return row.Section{
		Name: "start",
		Does: "from nothing to N connected stdio servers; beside it the floor: a client that starts the same servers with as " +
			"many starts at once, writes the lines of the handshake and of a list, and reads the answers without decoding them",
		Run: func(ctx context.Context, o row.Options) (report row.Report, err error) {
			slots := restart.DefaultLimits(runtime.GOMAXPROCS(0)).Processes
			t := table.NewWriter()
			t.AppendHeader(table.Row{"servers", "at once", "mcpvisor", "floor", "ratio"})
			var samples strings.Builder
			for _, n := range []int{1, 100, 500} {
				var ours, floor []time.Duration
				for round := range max(o.Rounds*3/5, 1) {
					o.Progress("start: %d servers, round %d", n, round+1)
					// The two take turns, and the first changes with the round, so that neither always meets the warmer
					// machine.
					for turn := range 2 {
						if (turn+round)%2 == 0 {
							took, err := MeasureStart(ctx, n)
							if err != nil {
								return report, err
							}
							ours = append(ours, took)
						} else {
							took, err := MeasureFloor(ctx, n, slots)
							if err != nil {
								return report, err
							}
							floor = append(floor, took)
						}
					}
				}
				a, b := median(ours), median(floor)
				ratio := float64(a) / float64(b)
				t.AppendRow(table.Row{n, slots, a.Round(time.Millisecond), b.Round(time.Millisecond), fmt.Sprintf("%.2f", ratio)})
				r := row.Row{Case: fmt.Sprintf("%d stdio servers to connected", n), Unit: "× floor client", Value: ratio}
				if n == 500 {
					r.Target = startTarget
				}
				report.Rows = append(report.Rows, r)
				if n == 1 {
					report.Rows = append(report.Rows, row.Row{Case: "connect and list one stdio server", Unit: "s", Value: a.Seconds(),
						Floor: b.Seconds(), Target: 1})
				}
				writeSamples(&samples, fmt.Sprintf("Start/stdio/servers=%d/mcpvisor", n), ours)
				writeSamples(&samples, fmt.Sprintf("Start/stdio/servers=%d/floor", n), floor)
			}
			report.Text, report.Samples = t.Render(), samples.String()
			return report, nil
		},
	}
}
