package scale

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// StatusCost is the cost of reading the status of every server once.
type StatusCost struct {
	Time          time.Duration
	Allocs, Bytes float64
}

// MeasureStatus reads the status of every server of m times times.
func MeasureStatus(m *supervisor.Manager, times int) StatusCost {
	var before, after runtime.MemStats
	took := make([]time.Duration, times)
	runtime.ReadMemStats(&before)
	for i := range took {
		began := time.Now()
		m.Status()
		took[i] = time.Since(began)
	}
	runtime.ReadMemStats(&after)
	return StatusCost{Time: median(took), Allocs: float64(after.Mallocs-before.Mallocs) / float64(times),
		Bytes: float64(after.TotalAlloc-before.TotalAlloc) / float64(times)}
}

// Status returns the section about reading the status of many servers. The manager answers from memory, without asking any
// actor.
func Status() row.Section {
	return row.Section{
		Name: "status",
		Does: "the status of every server, of so many in process with one tool each",
		Run: func(ctx context.Context, o row.Options) (report row.Report, err error) {
			t := table.NewWriter()
			t.AppendHeader(table.Row{"servers", "time", "allocations a server", "bytes a server"})
			var samples strings.Builder
			for _, n := range []int{1000, 10_000} {
				o.Progress("status: %d servers", n)
				got, err := statusOf(ctx, n, 4*o.Rounds)
				if err != nil {
					return report, err
				}
				t.AppendRow(table.Row{n, got.Time.Round(10 * time.Microsecond), fmt.Sprintf("%.1f", got.Allocs/float64(n)),
					fmt.Sprintf("%.0f", got.Bytes/float64(n))})
				report.Rows = append(report.Rows, row.Row{Case: fmt.Sprintf("status of %d servers", n), Unit: "ms",
					Value: float64(got.Time.Microseconds()) / 1000})
				fmt.Fprintf(&samples, "BenchmarkStatus/servers=%d 1 %d ns/op %.0f B/op %.0f allocs/op\n", n, got.Time.Nanoseconds(),
					got.Bytes, got.Allocs)
			}
			report.Text, report.Samples = t.Render(), samples.String()
			return report, nil
		},
	}
}

// statusOf measures the status of n in-process servers.
func statusOf(ctx context.Context, n, times int) (a StatusCost, err error) {
	m, err := startManager(ctx, serverSpecs("in process", n, nil))
	if err != nil {
		return a, err
	}
	defer closeWithin(m, &err)
	if err := awaitConnected(ctx, m); err != nil {
		return a, err
	}
	return MeasureStatus(m, times), nil
}
