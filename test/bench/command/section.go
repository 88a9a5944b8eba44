// Package command measures the cost of starting mcpvisor, beside a Go program that only prints: every linked package runs its
// initialisers before main, even for a command as small as "mcpvisor version".
//
//	go run ./test/bench/run -only command
//
// How it fits: its section builds both programs, starts them in turns, and gives rows to command run. The difference is the cost of
// what mcpvisor links; the time that the system needs for any process is in both.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// starts is the number of starts of each program. A start takes milliseconds, so that many are affordable.
const starts = 60

// prints is the source of the program that mcpvisor is compared with.
const prints = `package main

import "os"

func main() { os.Stdout.WriteString("mcpvisor 0\n") }
`

// Section returns the section about the start of the command.
func Section() row.Section {
	return row.Section{
		Name: "command",
		Does: "mcpvisor version, beside a Go program that only prints",
		Run:  measure,
	}
}

// start holds the measurements of one run of a program: the time on the clock and the processor time.
type start struct {
	clock, processor time.Duration
}

// measure builds both programs and starts them in turns.
func measure(ctx context.Context, o row.Options) (row.Report, error) {
	o.Progress("command: building mcpvisor and a program that prints")
	ours, other, err := buildBoth(ctx, o.Dir)
	if err != nil {
		return row.Report{}, err
	}
	o.Progress("command: %d starts of each", starts)
	var all [2][]start
	for i := range starts + 1 {
		// The programs take turns, and each is the first of the two equally often, so that neither profits from a warm machine.
		for _, k := range []int{i % 2, 1 - i%2} {
			s, err := runOnce(ctx, [][]string{{ours, "version"}, {other}}[k])
			if err != nil {
				return row.Report{}, err
			}
			// The first starts read the programs from the disk, and do not count.
			if i > 0 {
				all[k] = append(all[k], s)
			}
		}
	}
	return reportOf(all[0], all[1]), nil
}

// reportOf compares the medians of both programs.
func reportOf(ours, other []start) row.Report {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"start of", "time", "processor time"})
	var report row.Report
	medians := func(starts []start) (clock, processor time.Duration) {
		return medianOf(starts, func(s start) time.Duration { return s.clock }), medianOf(starts, func(s start) time.Duration { return s.processor })
	}
	clock, processor := medians(ours)
	otherClock, otherProcessor := medians(other)
	t.AppendRow(table.Row{"mcpvisor version", clock.Round(10 * time.Microsecond), processor.Round(10 * time.Microsecond)})
	t.AppendRow(table.Row{"a Go program that prints", otherClock.Round(10 * time.Microsecond), otherProcessor.Round(10 * time.Microsecond)})
	report.Rows = []row.Row{
		{Case: "mcpvisor version: time", Value: float64(clock) / float64(otherClock), Unit: "× a Go program that prints"},
		{Case: "mcpvisor version: processor time", Value: float64(processor) / float64(otherProcessor), Unit: "× a Go program that prints"},
	}
	t.AppendFooter(table.Row{"÷", fmt.Sprintf("%.1f", report.Rows[0].Value), fmt.Sprintf("%.1f", report.Rows[1].Value)})
	report.Text = fmt.Sprintf("medians of %d starts in turns\n%s\n", len(ours), t.Render())
	var samples strings.Builder
	for k, starts := range [][]start{ours, other} {
		for _, s := range starts {
			fmt.Fprintf(&samples, "BenchmarkCommand/%s 1 %d ns/op %d cpu-ns/op\n", []string{"mcpvisor", "prints"}[k], s.clock.Nanoseconds(), s.processor.Nanoseconds())
		}
	}
	report.Samples = samples.String()
	return report
}

// medianOf returns the median of one of the measurements, at least 1 ns, so that it can be a divisor.
func medianOf(starts []start, value func(start) time.Duration) time.Duration {
	all := make([]time.Duration, len(starts))
	for i, s := range starts {
		all[i] = value(s)
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 1 // no start was measured
	}
	return max(all[len(all)/2], 1)
}

// buildBoth builds the two programs with the same flags, in the section's folder.
func buildBoth(ctx context.Context, dir string) (ours, other string, err error) {
	source := filepath.Join(dir, "prints.go")
	if err := os.WriteFile(source, []byte(prints), 0o600); err != nil {
		return "", "", err
	}
	ours, other = filepath.Join(dir, "mcpvisor"), filepath.Join(dir, "prints")
	for program, what := range map[string]string{ours: "github.com/mcpvisor/mcpvisor/cmd/mcpvisor", other: source} {
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, what).CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("go build %s: %w: %s", what, err, out)
		}
	}
	return ours, other, nil
}

// runOnce runs a program, which must print something.
func runOnce(ctx context.Context, argv []string) (start, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	if err == nil && len(out) == 0 {
		err = errors.New("it prints nothing")
	}
	if err != nil {
		return start{}, fmt.Errorf("%s: %w", filepath.Base(argv[0]), err)
	}
	return start{took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}
