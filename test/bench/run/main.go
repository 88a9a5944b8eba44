// Command run measures tool calls of mcpvisor beside other clients, on the same servers and in one run, and prints a table of
// ratios. What it measured stands in -out in the form that benchstat reads.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/test/bench/compare"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

func main() {
	if servers.Main(os.Args[1:]) || compare.Main(os.Args[1:]) {
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 5, "how often each client is measured")
	long := flag.Duration("for", 200*time.Millisecond, "how long each time")
	servers := flag.String("servers", "stdio,stdio-good,http,https-sse,sdk", "which servers")
	sizes := flag.String("sizes", "100,65536", "bytes of the echoed text")
	callers := flag.String("callers", "1,64,1000", "how many call at once")
	out := flag.String("out", "", "also write every sample to this `file`, for benchstat")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "mcpvisor-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w, err := compare.NewWorld(dir)
	if err != nil {
		return err
	}
	defer w.Close()
	cases, err := casesOf(*servers, *sizes, *callers)
	if err != nil {
		return err
	}
	var samples strings.Builder
	t := table.NewWriter()
	t.AppendHeader(table.Row{"server", "bytes", "callers", "mcp-go", "mcpvisor", "floor", "go-sdk", "allocs", "mcp-go's", "B/call", "mcp-go's"})
	for _, c := range cases {
		r, err := compare.Measure(ctx, c, func(ctx context.Context, client string) (*compare.Connected, error) {
			return w.Open(ctx, c, client)
		}, compare.Options{Rounds: *rounds, For: *long})
		if err != nil {
			return fmt.Errorf("%s, %d bytes, %d callers: %w", c.Server, c.Size, c.Callers, err)
		}
		base, own := r.Median("mcp-go"), r.Median("mcpvisor")
		t.AppendRow(table.Row{c.Server, c.Size, c.Callers, base.Time.Round(10 * time.Nanosecond), ratio(r, "mcpvisor"),
			ratio(r, "floor"), ratio(r, "go-sdk"), fmt.Sprintf("%.0f", own.Allocs), fmt.Sprintf("%.0f", base.Allocs),
			fmt.Sprintf("%.0f", own.Bytes), fmt.Sprintf("%.0f", base.Bytes)})
		fmt.Fprintf(os.Stderr, "%s, %d bytes, %d callers: %s\n", c.Server, c.Size, c.Callers, ratio(r, "mcpvisor"))
		write(&samples, r)
	}
	fmt.Println("Time of a call: mcp-go's client as measured, the others as a ratio to it. Medians; below 1 is faster.")
	fmt.Println(t.Render())
	if *out == "" {
		return nil
	}
	return os.WriteFile(*out, []byte(samples.String()), 0o600)
}

func ratio(r compare.Result, client string) string {
	if v := r.Ratio(client); v > 0 {
		return fmt.Sprintf("%.2f", v)
	}
	return "–"
}

func write(b *strings.Builder, r compare.Result) {
	for _, client := range compare.Clients {
		for _, s := range r.Samples[client] {
			fmt.Fprintf(b, "BenchmarkCall/%s/bytes=%d/callers=%d/%s %d %d ns/op %.0f B/op %.0f allocs/op\n",
				r.Server, r.Size, r.Callers, client, s.Calls, s.Time.Nanoseconds(), s.Bytes, s.Allocs)
		}
	}
}

func casesOf(servers, sizes, callers string) ([]compare.Case, error) {
	var out []compare.Case
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
