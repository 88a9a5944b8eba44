// Command run plants each known bug, one after the other, and prints which invariant found it. It exits with 1 if a bug was
// not found, or not by an invariant that explains it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
)

func main() {
	only := flag.String("only", "", "only bugs whose name contains this `word`")
	seeds := flag.Int("seeds", 300, "how many seeds are tried for each")
	limit := flag.Duration("limit", 5*time.Minute, "how long one hunt may take")
	shrink := flag.Duration("shrink", 20*time.Second, "how long of that a scenario that was found may be made smaller")
	show := flag.Bool("scenario", false, "print the scenarios that were found")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	missed, err := run(ctx, *only, planted.Bounds{Seeds: *seeds, Limit: *limit, Shrink: *shrink}, *show)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(2)
	case missed > 0:
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, most planted.Bounds, show bool) (missed int, err error) {
	root, err := arch.Root()
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "mcpvisor-planted-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := table.NewWriter()
	t.AppendHeader(table.Row{"bug", "should be found by", "found by", "seeds", "shrunk to"})
	for _, b := range planted.Bugs {
		if !strings.Contains(b.Name, only) {
			continue
		}
		p, err := b.Hunt(ctx, root, dir, most)
		if err != nil {
			return missed, err
		}
		found := strings.Join(p.Violated, " ")
		if p.Crash != "" {
			found = "crash: " + strings.SplitN(p.Crash, "\n", 2)[0]
		}
		if !b.Found(p) {
			missed++
			found = "NOT FOUND " + found
		}
		t.AppendRow(table.Row{b.Name, strings.Join(b.Finds, " or "), found, p.Tried, p.After})
		fmt.Fprintf(os.Stderr, "%s: %s after %d seeds: %s\n", b.Name, found, p.Tried, p.Why)
		if show {
			fmt.Fprintln(os.Stderr, p.Scenario)
		}
	}
	fmt.Println(t.Render())
	return missed, nil
}
