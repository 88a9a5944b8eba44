// Command run measures the cost of mcpvisor beside other clients, on the same servers and in one run. It prints a table for
// each section and, at the end, every row that has a target with its verdict. With -out it writes single measurements to a file
// in the form that benchstat reads.
//
//	go run ./test/bench/run                      # everything
//	go run ./test/bench/run -only calls          # one section
//	go run ./test/bench/run -only calls -servers stdio -callers 64
//
// Compare only what one run printed: machines differ, and the same machine differs from hour to hour.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/bench/command"
	"github.com/mcpvisor/mcpvisor/test/bench/compare"
	"github.com/mcpvisor/mcpvisor/test/bench/edge"
	"github.com/mcpvisor/mcpvisor/test/bench/flood"
	"github.com/mcpvisor/mcpvisor/test/bench/lists"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
	"github.com/mcpvisor/mcpvisor/test/bench/scale"
	"github.com/mcpvisor/mcpvisor/test/bench/supervision"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

func main() {
	if servers.Main(os.Args[1:]) || compare.Main(os.Args[1:]) || scale.Main(os.Args[1:]) || lists.Main(os.Args[1:]) ||
		flood.Main(os.Args[1:]) {
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// sections returns the sections in the order in which they are measured. Some define flags, so that it is called before
// flag.Parse.
func sections() []row.Section {
	return slices.Concat(
		[]row.Section{callsSection(), supervision.Section()},
		lists.Sections(),
		[]row.Section{flood.Section()},
		scale.Sections(),
		edge.Sections(),
		[]row.Section{command.Section()},
	)
}

// run measures the wanted sections and prints their reports. The first error ends it, because ratios of an incomplete run
// mislead.
func run() error {
	all := sections()
	rounds := flag.Int("rounds", 5, "how often each contender is measured")
	long := flag.Duration("for", 200*time.Millisecond, "how long each time")
	only := flag.String("only", "", "only the sections whose name matches this `regexp`: "+sectionNames(all))
	out := flag.String("out", "", "also write every sample to this `file`, for benchstat")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "mcpvisor-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o := row.Options{Rounds: *rounds, For: *long, Dir: dir, Progress: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}}
	var rows []row.Row
	var samples strings.Builder
	measured := 0
	for _, s := range all {
		if !wanted.MatchString(s.Name) {
			continue
		}
		measured++
		report, err := s.Run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		fmt.Printf("%s: %s\n%s\n\n", s.Name, s.Does, report.Text)
		rows = append(rows, report.Rows...)
		samples.WriteString(report.Samples)
	}
	if measured == 0 {
		return fmt.Errorf("no section is called like %q; there are %s", *only, sectionNames(all))
	}
	fmt.Printf("Targets. A row holds as well within %g times the floor of the same run.\n%s\n", row.Slack, row.Table(rows))
	if *out == "" {
		return nil
	}
	return os.WriteFile(*out, []byte(samples.String()), 0o600)
}

// sectionNames returns the names of the sections, for help texts.
func sectionNames(all []row.Section) string {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
