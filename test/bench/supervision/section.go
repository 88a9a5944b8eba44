package supervision

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// watchers is the number of watchers in the case with watchers.
const watchers = 10

// contender is one way of making a call.
type contender struct {
	name string
	call func(context.Context) error
	// background runs while the contender is measured, until its context ends; nil runs nothing.
	background func(context.Context)

	// times and cpu are nanoseconds per call, one value for each round; cpu is 0 where the system does not report it.
	times  []float64
	cpu    []float64
	allocs []float64
}

// Section returns the section about supervision. It measures both ways in turns, and the facade's also with watchers and a
// reader of the status, and with an audit.
func Section() row.Section {
	return row.Section{
		Name: "supervision",
		Does: "what a call costs through the facade beside one straight to a session, on a server in this program that does nothing",
		Run: func(ctx context.Context, o row.Options) (report row.Report, err error) {
			bare, err := OpenSession(ctx)
			if err != nil {
				return report, err
			}
			defer bare.Close(context.WithoutCancel(ctx))
			whole, err := OpenFacade(ctx, supervisor.Config{})
			if err != nil {
				return report, err
			}
			defer whole.Close()
			audited, end, err := openAudited(ctx)
			if err != nil {
				return report, err
			}
			defer end()
			var text, samples strings.Builder
			for _, callers := range []int{1, 64, 1000} {
				all := []*contender{
					{name: "bare session", call: bare.Call},
					{name: "facade", call: whole.Call},
					{name: fmt.Sprintf("facade, %d watchers, status read", watchers), call: whole.Call, background: whole.watchAll},
					{name: "facade, audited to a file", call: audited.Call},
				}
				if err := measureRounds(ctx, all, callers, o, &samples); err != nil {
					return report, err
				}
				o.Progress("supervision: %d callers", callers)
				fmt.Fprintf(&text, "%d callers\n%s\n", callers, tableOf(all))
				report.Rows = append(report.Rows, resultRows(all, callers)...)
			}
			report.Text, report.Samples = strings.TrimRight(text.String(), "\n"), samples.String()
			return report, nil
		},
	}
}

// resultRows returns the rows of one number of callers. Supervision's own time is processor time where the system reports it:
// on a busy machine two contenders that take turns differ by more than a microsecond on the clock.
func resultRows(all []*contender, callers int) []row.Row {
	who := fmt.Sprintf("%d callers", callers)
	if callers == 1 {
		who = "one caller"
	}
	bare, whole, watched := all[0], all[1], all[2]
	own := row.Row{Case: "supervision's own time, " + who, Unit: "µs", Value: medianDifference(whole.times, bare.times) / 1000}
	if _, hasCPU := row.CPU(); hasCPU {
		own.Case, own.Value = "supervision's own processor time, "+who, medianDifference(whole.cpu, bare.cpu)/1000
	}
	out := []row.Row{own, {Case: "a call with watchers, " + who, Unit: "× without", Value: median(watched.times) / median(whole.times)}}
	audited := row.Row{Case: "the audit of a call, " + who, Unit: "µs", Value: medianDifference(all[3].times, whole.times) / 1000}
	if _, hasCPU := row.CPU(); hasCPU {
		audited.Case, audited.Value = "the audit's processor time of a call, "+who, medianDifference(all[3].cpu, whole.cpu)/1000
	}
	out = append(out, audited)
	// With more callers the processors are busy, and the difference of two times is mostly the wait for one.
	if callers == 1 {
		out[0].Target = 1
		out = append(out, row.Row{Case: "supervision's own allocations", Unit: "allocations", Target: 3,
			Value: math.Round(10*medianDifference(whole.allocs, bare.allocs)) / 10}) // the runtime allocates now and then, so tenths are noise
	}
	return out
}

// openAudited starts a facade that records every call in a file. end closes it and removes the file.
func openAudited(ctx context.Context) (w *Facade, end func(), err error) {
	dir, err := os.MkdirTemp("", "mcpvisor-bench")
	if err != nil {
		return nil, nil, err
	}
	w, err = OpenFacade(ctx, supervisor.Config{Audit: &audit.File{Path: filepath.Join(dir, "audit.jsonl")}})
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	return w, func() {
		w.Close()
		os.RemoveAll(dir)
	}, nil
}

// medianDifference returns the median of the differences within each round, at least 0.
func medianDifference(one, other []float64) float64 {
	diff := make([]float64, len(one))
	for i := range one {
		diff[i] = one[i] - other[i]
	}
	return max(median(diff), 0)
}

// median returns the middle value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// tableOf renders the medians of the contenders.
func tableOf(all []*contender) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "a call", "processor time", "allocations"})
	for _, c := range all {
		t.AppendRow(table.Row{c.name, time.Duration(median(c.times)).Round(10 * time.Nanosecond),
			time.Duration(median(c.cpu)).Round(10 * time.Nanosecond), fmt.Sprintf("%.1f", median(c.allocs))})
	}
	return t.Render()
}

// measureRounds measures the contenders in turns; each round begins with another one.
func measureRounds(ctx context.Context, all []*contender, callers int, o row.Options, samples *strings.Builder) error {
	for round := range o.Rounds {
		for i := range all {
			c := all[(i+round)%len(all)]
			if err := c.runCallers(ctx, callers, o.For); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			last := len(c.times) - 1
			fmt.Fprintf(samples, "BenchmarkSupervision/callers=%d/%s 1 %.0f ns/op %.1f allocs/op\n",
				callers, strings.ReplaceAll(c.name, " ", "-"), c.times[last], c.allocs[last])
		}
	}
	return nil
}

// runCallers calls from several goroutines for the time long, and records the cost of one call.
func (c *contender) runCallers(ctx context.Context, callers int, long time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	var wg, background sync.WaitGroup
	defer background.Wait()
	defer stop()
	if c.background != nil {
		background.Go(func() { c.background(ctx) })
	}
	// Every turn begins with a clean heap, so that the garbage of one contender is not collected at the cost of the next.
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	worked, _ := row.CPU()
	begin := time.Now()
	deadline := begin.Add(long)
	done, failed := make([]int, callers), make([]error, callers)
	for n := range callers {
		wg.Go(func() {
			// Each caller makes one call at least: with 1,000 callers some would otherwise not begin before the deadline.
			for done[n] == 0 || time.Now().Before(deadline) {
				if failed[n] = c.call(ctx); failed[n] != nil {
					return
				}
				done[n]++
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	workedAfter, _ := row.CPU()
	runtime.ReadMemStats(&after)
	calls := 0
	for n := range callers {
		if failed[n] != nil {
			return failed[n]
		}
		calls += done[n]
	}
	c.times = append(c.times, float64(took)/float64(calls))
	c.cpu = append(c.cpu, float64(workedAfter-worked)/float64(calls))
	c.allocs = append(c.allocs, float64(after.Mallocs-before.Mallocs)/float64(calls))
	return nil
}

// watchAll follows all events with several watchers, and reads the status every 10 ms, like a page that shows it.
func (w *Facade) watchAll(ctx context.Context) {
	var wg sync.WaitGroup
	for range watchers {
		watcher := w.Manager.Watch(0)
		wg.Go(func() {
			defer watcher.Close()
			// The watcher only reads.
			for range watcher.Events(ctx) {
			}
		})
	}
	wg.Go(func() {
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				_ = w.Manager.Status()
			case <-ctx.Done():
				return
			}
		}
	})
	wg.Wait()
}
