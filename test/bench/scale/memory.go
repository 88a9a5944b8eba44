package scale

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// IdleCost is the memory and the goroutines that one connected server holds while it is not used.
type IdleCost struct {
	// Heap and Stack are bytes, Objects and Goroutines counts.
	Heap, Stack, Objects, Goroutines float64
}

// Bytes returns the sum of heap and stacks.
func (i IdleCost) Bytes() float64 { return i.Heap + i.Stack }

// MeasureIdle connects n servers of a kind and returns what each of them holds.
func MeasureIdle(ctx context.Context, kind string, n int, web *Web) (idle IdleCost, err error) {
	m, err := startManager(ctx, nil)
	if err != nil {
		return idle, err
	}
	defer closeWithin(m, &err)
	all := serverSpecs(kind, n, web)
	// The manager without servers is in before, so that its own cost is not shared out among the servers.
	before := measureMemory()
	if _, err := m.SetServers(ctx, all); err != nil {
		return idle, err
	}
	if err := awaitConnected(ctx, m); err != nil {
		return idle, err
	}
	after := measureMemory()
	// The specs belong to the caller and not to the manager; without this line the collector may free them before the second
	// measurement.
	runtime.KeepAlive(all)
	per := func(a, b uint64) float64 { return (float64(a) - float64(b)) / float64(n) }
	return IdleCost{
		Heap: per(after.HeapAlloc, before.HeapAlloc), Stack: per(after.StackInuse, before.StackInuse),
		Objects:    per(after.HeapObjects, before.HeapObjects),
		Goroutines: float64(after.goroutines-before.goroutines) / float64(n),
	}, nil
}

// memoryUse is the runtime's statistics with the number of goroutines.
type memoryUse struct {
	runtime.MemStats
	goroutines int
}

// measureMemory waits for rest, collects garbage and returns what is in use. A collection halves the stacks at most once, so it
// collects several times.
func measureMemory() (m memoryUse) {
	awaitRest()
	for range 4 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m.MemStats)
	m.goroutines = runtime.NumGoroutine()
	return m
}

// awaitRest waits until the number of goroutines has not changed for 1.5 s, which is longer than workers of the library wait
// for more work, at most 10 s.
func awaitRest() {
	last, since := runtime.NumGoroutine(), time.Now()
	for limit := since.Add(10 * time.Second); time.Since(since) < 1500*time.Millisecond && time.Now().Before(limit); {
		time.Sleep(20 * time.Millisecond)
		if n := runtime.NumGoroutine(); n != last {
			last, since = n, time.Now()
		}
	}
}

// memoryTargets are the targets by kind, in KB.
var memoryTargets = map[string]float64{"in process": 12, library: 25}

// Memory returns the section about idle servers.
func Memory() row.Section {
	return row.Section{
		Name: "memory",
		Does: "one connected server that nobody uses, what it holds in this process: KB of heap and of stacks",
		Run: func(ctx context.Context, o row.Options) (report row.Report, err error) {
			web, err := NewWeb()
			if err != nil {
				return report, err
			}
			defer web.Close()
			t := table.NewWriter()
			t.AppendHeader(table.Row{"server", "measured with", "KB", "heap", "stacks", "objects", "goroutines"})
			var samples strings.Builder
			for _, kind := range Kinds {
				// In process thousands are affordable, and make the part that one server holds exact.
				n := 200
				if kind == "in process" {
					n = 5000
				}
				o.Progress("memory: %s", kind)
				idle, err := MeasureIdle(ctx, kind, n, web)
				if err != nil {
					return report, fmt.Errorf("%s: %w", kind, err)
				}
				t.AppendRow(table.Row{kind, n, formatKB(idle.Bytes()), formatKB(idle.Heap), formatKB(idle.Stack),
					fmt.Sprintf("%.0f", idle.Objects), fmt.Sprintf("%.1f", idle.Goroutines)})
				report.Rows = append(report.Rows, row.Row{Case: "idle server, " + kind, Unit: "KB", Value: idle.Bytes() / 1024,
					Target: memoryTargets[kind]})
				fmt.Fprintf(&samples, "BenchmarkIdleServer/%s/servers=%d 1 %.0f B/server\n", benchmarkName(kind), n, idle.Bytes())
			}
			report.Text, report.Samples = t.Render(), samples.String()
			return report, nil
		},
	}
}

// formatKB writes bytes as KB.
func formatKB(bytes float64) string { return fmt.Sprintf("%.1f", bytes/1024) }

// benchmarkName returns a kind in the form of a benchmark's name.
func benchmarkName(kind string) string { return strings.NewReplacer(" ", "-", ",", "").Replace(kind) }
