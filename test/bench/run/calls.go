package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/bench/compare"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// callsSection returns the section about one tool call of each client on the same server. It defines flags.
func callsSection() row.Section {
	servers := flag.String("servers", "stdio,stdio-good,http,https-sse,sdk", "calls: which servers")
	sizes := flag.String("sizes", "100,65536", "calls: bytes of the echoed text")
	callers := flag.String("callers", "1,64,1000", "calls: how many call at once")
	return row.Section{
		Name: "calls",
		Does: "time of a call, a map in and text out; mcp-go's client as measured, the others as a ratio to it: medians, below 1 is\n" +
			"faster. raw: bytes in and out; default: no era configured",
		Run: func(ctx context.Context, o row.Options) (row.Report, error) {
			cases, err := casesOf(*servers, *sizes, *callers)
			if err != nil {
				return row.Report{}, err
			}
			w, err := compare.NewServerSet(o.Dir)
			if err != nil {
				return row.Report{}, err
			}
			defer w.Close()
			return measureCases(ctx, o, w, cases)
		},
	}
}

// measureCases measures each case and collects the table, the rows and the samples.
func measureCases(ctx context.Context, o row.Options, w *compare.ServerSet, cases []compare.Case) (row.Report, error) {
	var report row.Report
	var samples strings.Builder
	var omitted []string
	t := table.NewWriter()
	t.AppendHeader(table.Row{"server", "bytes", "callers", "mcp-go", "text", "default", "raw", "floor", "go-sdk", "cpu text", "default", "raw", "allocs", "mcp-go's", "B/call", "mcp-go's"})
	for _, c := range cases {
		r, err := compare.Measure(ctx, c, func(ctx context.Context, client string) (*compare.ConnectedClient, error) {
			return w.Open(ctx, c, client)
		}, compare.Options{Rounds: o.Rounds, For: o.For})
		if err != nil {
			return report, fmt.Errorf("%s, %d bytes, %d callers: %w", c.Server, c.Size, c.Callers, err)
		}
		for _, client := range slices.Sorted(maps.Keys(r.Failed)) {
			omitted = append(omitted, fmt.Sprintf("%s with %d bytes and %d callers is without %s, which failed: %s", c.Server, c.Size,
				c.Callers, client, messages.Line(r.Failed[client].Error(), 300)))
		}
		// The times of one case are compared with mcp-go's of the same case, which were measured in the same rounds.
		base, own := r.Median("mcp-go"), r.Median("text")
		t.AppendRow(table.Row{c.Server, c.Size, c.Callers, base.Time.Round(10 * time.Nanosecond),
			ratioText(r, "text"), ratioText(r, "default"), ratioText(r, "raw"), ratioText(r, "floor"), ratioText(r, "go-sdk"),
			cpuRatio(r, "text"), cpuRatio(r, "default"), cpuRatio(r, "raw"), fmt.Sprintf("%.0f", own.Allocs), fmt.Sprintf("%.0f", base.Allocs),
			fmt.Sprintf("%.0f", own.Bytes), fmt.Sprintf("%.0f", base.Bytes)})
		o.Progress("calls: %s, %d bytes, %d callers: %s", c.Server, c.Size, c.Callers, ratioText(r, "text"))
		writeSamples(&samples, r)
		report.Rows = append(report.Rows, targetRows(c, r)...)
	}
	report.Text, report.Samples = strings.Join(append([]string{t.Render()}, omitted...), "\n"), samples.String()
	return report, nil
}

// targetRows returns the rows of a case: ratios to mcp-go's client, and for large answers the ratio of the processor time to
// mcpvisor's own raw calls. A client that failed has no row.
func targetRows(c compare.Case, r compare.Result) (out []row.Row) {
	name := fmt.Sprintf("%s, %d bytes, %d callers", c.Server, c.Size, c.Callers)
	for _, client := range []string{"text", "default"} {
		if v := r.Ratio(client); v > 0 {
			out = append(out, row.Row{
				Case: "call, " + client + ": " + name, Unit: "× mcp-go", Value: v, Floor: r.Ratio("floor"), Target: targetRatio(c, client),
			})
		}
	}
	if own, raw := r.Median("text").CPU, r.Median("raw").CPU; own > 0 && raw > 0 && c.Server == "stdio" && c.Size > 1000 {
		out = append(out, row.Row{
			Case: "processor time, text: " + name, Unit: "× raw", Value: float64(own) / float64(raw), Target: 1.3,
		})
	}
	return out
}

// targetRatio returns the target of a case as a ratio to mcp-go's client: 1 where nothing more is promised.
func targetRatio(c compare.Case, client string) float64 {
	small, one := c.Size <= 1000, c.Callers == 1
	switch {
	case c.Server == "stdio" && small && one:
		return 0.40
	case c.Server == "stdio" && small:
		return 0.28
	case c.Server == "stdio":
		return 0.20
	case client == "default":
		return 1
	case c.Server == "stdio-good" && small:
		return 0.90
	case c.Server == "http" && small && one:
		return 0.85
	case c.Server == "http" && small:
		return 0.80
	case c.Server == "https-sse":
		return 0.80
	case c.Server == "sdk" && small && one:
		return 0.85
	case c.Server == "sdk" && small:
		return 0.60
	}
	return 1
}

// cpuRatio writes the processor time of this process per call, as a ratio to mcp-go's client.
func cpuRatio(r compare.Result, client string) string {
	if base, own := r.Median("mcp-go").CPU, r.Median(client).CPU; base > 0 && own > 0 {
		return fmt.Sprintf("%.2f", float64(own)/float64(base))
	}
	return "–"
}

// ratioText writes the time per call as a ratio to mcp-go's client, a dash if one is missing.
func ratioText(r compare.Result, client string) string {
	if v := r.Ratio(client); v > 0 {
		return fmt.Sprintf("%.2f", v)
	}
	return "–"
}

// writeSamples writes the samples in the form that benchstat reads.
func writeSamples(b *strings.Builder, r compare.Result) {
	for _, client := range compare.Clients {
		for _, s := range r.Samples[client] {
			fmt.Fprintf(b, "BenchmarkCall/%s/bytes=%d/callers=%d/%s %d %d ns/op %.0f B/op %.0f allocs/op\n",
				r.Server, r.Size, r.Callers, client, s.Calls, s.Time.Nanoseconds(), s.Bytes, s.Allocs)
		}
	}
}

// casesOf returns every combination of servers, sizes and callers.
func casesOf(servers, sizes, callers string) ([]compare.Case, error) {
	var out []compare.Case
	// The names of servers are checked when they are opened; a wrong number is an error here.
	for server := range strings.SplitSeq(servers, ",") {
		for size := range strings.SplitSeq(sizes, ",") {
			for n := range strings.SplitSeq(callers, ",") {
				c := compare.Case{Server: server}
				var err error
				if c.Size, err = strconv.Atoi(size); err != nil {
					return nil, fmt.Errorf("-sizes: %w", err)
				}
				if c.Callers, err = strconv.Atoi(n); err != nil {
					return nil, fmt.Errorf("-callers: %w", err)
				}
				out = append(out, c)
			}
		}
	}
	return out, nil
}
