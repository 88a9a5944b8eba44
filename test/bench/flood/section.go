package flood

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// floodCases are the kinds of floods: how the flooding server is reached, and what it floods with.
var floodCases = [][2]string{
	{"stdio", "computing"},
	{"stdio", "progress"}, {"stdio", "logs"}, {"stdio", "changes"}, {"stdio", "answers"}, {"stdio", "requests"}, {"stdio", "pings"}, {"stdio", "stderr"},
	{"http", "progress"}, {"http", "logs"}, {"http", "answers"}, {"http", "requests"},
	{"sdk", "progress"}, {"sdk", "logs"}, {"sdk", "answers"}, {"sdk", "requests"},
}

// Section returns the section about floods: it measures a healthy child's calls alone and beside each flood.
func Section() row.Section {
	return row.Section{
		Name: "flood",
		Does: "what a healthy server's calls (100 B, one caller) take, quiet and beside a server that floods",
		Run: func(ctx context.Context, o row.Options) (report row.Report, err error) {
			t := table.NewWriter()
			t.AppendHeader(table.Row{"beside", "p50", "p99", "quiet p50", "quiet p99"})
			for _, n := range floodCases {
				o.Progress("flood: %s over %s", n[1], n[0])
				quiet, flooded, err := measureCalls(ctx, n[0], n[1], max(time.Second, time.Duration(o.Rounds)*o.For))
				if err != nil {
					return report, fmt.Errorf("%s over %s: %w", n[1], n[0], err)
				}
				name := n[1] + ", " + n[0]
				// Three times the quiet time and 5 ms: beside any busy process the kernel takes the processor away now and then.
				r := row.Row{Case: "p99 of a healthy call beside " + name, Unit: "ms", Value: milliseconds(percentile(flooded, 99)), Target: 3*milliseconds(percentile(quiet, 99)) + 5}
				if n[1] == "computing" {
					// The kernel decides how much a busy process costs, so there is no target.
					r.Target = 0
				}
				report.Rows = append(report.Rows, r)
				t.AppendRow(table.Row{name, percentile(flooded, 50), percentile(flooded, 99), percentile(quiet, 50), percentile(quiet, 99)})
			}
			report.Text = t.Render()
			return report, nil
		},
	}
}

// milliseconds converts a duration for a row.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percentile returns a percentile of sorted times, rounded to microseconds.
func percentile(times []time.Duration, percent int) time.Duration {
	return times[min(len(times)*percent/100, len(times)-1)].Round(time.Microsecond)
}

// measureCalls calls a healthy server for the time long without the flood, and as long beside it. Both results are sorted.
func measureCalls(ctx context.Context, transport, kind string, long time.Duration) (quiet, flooded []time.Duration, err error) {
	command, args := servers.Command("good")
	m, err := supervisor.Start(ctx, supervisor.Config{
		Servers:   map[string]supervisor.Spec{"healthy": {Command: command, Args: args}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"flood": floodInProcess(kind)},
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		// The times are measured already.
		_ = m.Close(end)
	}()
	if err := m.Settled(ctx); err != nil {
		return nil, nil, err
	}
	// The first calls warm the machine up.
	if _, err := callTimes(ctx, m, long/4); err != nil {
		return nil, nil, err
	}
	if quiet, err = callTimes(ctx, m, long); err != nil {
		return nil, nil, err
	}
	// The flood begins when its server is connected, and lasts as long as the healthy calls.
	spec, end, err := floodServer(transport, kind)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	if err := m.Connect(ctx, "flood", spec); err != nil {
		return nil, nil, err
	}
	flooded, err = callTimes(ctx, m, long)
	return quiet, flooded, err
}

// floodServer returns the spec of a server that floods, and a function that ends its process, if it needs one.
func floodServer(transport, kind string) (spec supervisor.Spec, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return spec, nil, err
	}
	switch transport {
	case "sdk":
		return supervisor.Spec{Type: messages.SDK}, func() {}, nil
	case "stdio":
		return supervisor.Spec{Command: self, Args: []string{marker, "stdio", kind}}, func() {}, nil
	}
	c, err := servers.StartChild(marker, "http", kind)
	if err != nil {
		return spec, nil, err
	}
	return supervisor.Spec{URL: c.Line}, c.Close, nil
}

// callTimes returns the times of calls to the healthy server, one after the other, sorted.
func callTimes(ctx context.Context, m *supervisor.Manager, long time.Duration) ([]time.Duration, error) {
	args := json.RawMessage(`{"text":"` + strings.Repeat("x", 80) + `"}`)
	var times []time.Duration
	for end := time.Now().Add(long); time.Now().Before(end); {
		began := time.Now()
		if _, err := m.CallServerTool(ctx, "healthy", "echo", args); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times, nil
}
