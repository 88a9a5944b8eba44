package lists

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// target is the largest ratio of the time until mcpvisor has registered a list to the time in which mcp-go's client lists it.
const target = 0.35

// Sections returns the sections of this package. It defines flags, so that it must be called before flag.Parse.
func Sections() []row.Section {
	tools := flag.Int("list-tools", 5000, "lists: how many tools there are")
	pages := flag.String("list-pages", "0,1000,100", "lists: how many tools stand on a page, 0 for all")
	servers := flag.String("list-servers", "stdio,http,sdk", "lists: which servers")
	return []row.Section{{
		Name: "lists",
		Does: "time of a list of tools until it can be used; mcp-go's client as measured, the others as a ratio to it: medians, " +
			"below 1 is faster. mcpvisor's tools are registered then",
		Run: func(ctx context.Context, o row.Options) (row.Report, error) {
			return runSection(ctx, o, *tools, *pages, *servers)
		},
	}}
}

// runSection measures every combination of server and page size.
func runSection(ctx context.Context, o row.Options, tools int, pages, servers string) (row.Report, error) {
	var report row.Report
	var samples strings.Builder
	t := table.NewWriter()
	t.AppendHeader(table.Row{"server", "tools", "page", "", "mcp-go", "mcpvisor", "unchanged", "floor", "go-sdk", "allocs", "mcp-go's", "MB", "mcp-go's"})
	for server := range strings.SplitSeq(servers, ",") {
		for page := range strings.SplitSeq(pages, ",") {
			size, err := strconv.Atoi(page)
			if err != nil {
				return report, fmt.Errorf("-list-pages: %w", err)
			}
			c := Case{Server: server, Tools: tools, Page: size}
			r, err := measureCase(ctx, c, o.Rounds)
			if err != nil {
				return report, fmt.Errorf("%s: %w", c, err)
			}
			for _, part := range []struct {
				what    string
				samples map[string][]Sample
			}{{"again", r.Repeats}, {"connect", r.Connect}} {
				base, own := Median(part.samples["mcp-go"]), Median(part.samples["mcpvisor"])
				t.AppendRow(table.Row{c.Server, c.Tools, page, part.what, base.Time.Round(10 * time.Microsecond),
					ratioText(part.samples, "mcpvisor"), ratioText(part.samples, "unchanged"), ratioText(part.samples, "floor"), ratioText(part.samples, "go-sdk"),
					fmt.Sprintf("%.0f", own.Allocs), fmt.Sprintf("%.0f", base.Allocs),
					fmt.Sprintf("%.1f", own.Bytes/1e6), fmt.Sprintf("%.1f", base.Bytes/1e6)})
				writeSamples(&samples, c, part.what, part.samples)
			}
			report.Rows = append(report.Rows, row.Row{
				Case: "list: " + c.String(), Unit: "× mcp-go",
				Value: Ratio(r.Repeats, "mcpvisor"), Floor: Ratio(r.Repeats, "floor"), Target: target,
			})
			o.Progress("lists: %s: %s", c, ratioText(r.Repeats, "mcpvisor"))
		}
	}
	report.Text, report.Samples = t.Render(), samples.String()
	return report, nil
}

// measureCase measures one case with servers of its own.
func measureCase(ctx context.Context, c Case, rounds int) (Result, error) {
	w, err := NewServerSet(c)
	if err != nil {
		return Result{}, err
	}
	defer w.Close()
	return Measure(ctx, c, w.Open, rounds)
}

// ratioText writes the ratio of a contender, a dash if it is missing.
func ratioText(samples map[string][]Sample, who string) string {
	if v := Ratio(samples, who); v > 0 {
		return fmt.Sprintf("%.2f", v)
	}
	return "–"
}

// writeSamples writes the samples in the form that benchstat reads.
func writeSamples(b *strings.Builder, c Case, what string, samples map[string][]Sample) {
	for _, who := range Contenders {
		for _, s := range samples[who] {
			fmt.Fprintf(b, "BenchmarkList/%s/tools=%d/page=%d/%s/%s 1 %d ns/op %.0f B/op %.0f allocs/op\n",
				c.Server, c.Tools, c.Page, what, who, s.Time.Nanoseconds(), s.Bytes, s.Allocs)
		}
	}
}
