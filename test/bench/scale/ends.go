package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// deathCalls is the number of calls under way when the child is killed.
const deathCalls = 64

// MeasureDeaths kills the child of a server times times, with deathCalls calls under way, and returns how long after each
// SIGKILL the last call had its outcome.
func MeasureDeaths(ctx context.Context, times int) (took []time.Duration, err error) {
	command, args := servers.Command("good")
	m, err := startManager(ctx, map[string]supervisor.Spec{"s": {Command: command, Args: args}})
	if err != nil {
		return nil, err
	}
	defer closeWithin(m, &err)
	if err := awaitConnected(ctx, m); err != nil {
		return nil, err
	}
	for range times {
		d, err := measureDeath(ctx, m)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
		// Without the command the manager would wait for the time of its next attempt.
		if err := m.Reconnect(ctx, "s"); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// measureDeath makes the calls, kills the child, and waits for the calls. Each must end with an unknown outcome.
func measureDeath(ctx context.Context, m *supervisor.Manager) (time.Duration, error) {
	// ended has room for every call, so that none waits to report.
	ended := make(chan error, deathCalls)
	var wg sync.WaitGroup
	for range deathCalls {
		wg.Go(func() {
			if _, err := m.CallTool(ctx, "mcp__s__sleep", map[string]any{"for": "60s"}); !errors.Is(err, supervisor.ErrOutcomeUnknown) {
				ended <- fmt.Errorf("a call whose server was killed ended with %w", err)
			}
		})
	}
	var pid int
	// The child must have all calls before it is killed.
	for {
		st, err := m.ServerStatus("s")
		if err != nil {
			return 0, err
		}
		if pid = st.PID; st.InFlight == deathCalls {
			break
		}
		time.Sleep(time.Millisecond)
	}
	// A call counts as under way before the child has read it.
	time.Sleep(20 * time.Millisecond)
	child, err := os.FindProcess(pid)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := child.Kill(); err != nil {
		return 0, err
	}
	wg.Wait()
	took := time.Since(began)
	select {
	case err := <-ended:
		return 0, err
	default:
		return took, nil
	}
}

// Ends returns the section about what a person notices: how soon calls end with their server, and what a call costs.
func Ends() row.Section {
	return row.Section{
		Name: "ends",
		Does: fmt.Sprintf("from the SIGKILL of a child until the last of its %d calls has its outcome; one call of a stdio server", deathCalls),
		Run: func(ctx context.Context, o row.Options) (report row.Report, err error) {
			o.Progress("ends: a child is killed")
			deaths, err := MeasureDeaths(ctx, 3*o.Rounds)
			if err != nil {
				return report, err
			}
			o.Progress("ends: one call")
			calls, err := measureCalls(ctx, 200*o.Rounds)
			if err != nil {
				return report, err
			}
			t := table.NewWriter()
			t.AppendHeader(table.Row{"what", "times", "median", "at most"})
			var samples strings.Builder
			for _, r := range []struct {
				what, name string
				took       []time.Duration
			}{{"calls end after their server's death", "EndOfCallsAfterDeath", deaths}, {"one call, the server's share included", "OneCall", calls}} {
				t.AppendRow(table.Row{r.what, len(r.took), median(r.took).Round(time.Microsecond),
					slices.Max(r.took).Round(time.Microsecond)})
				report.Rows = append(report.Rows, row.Row{Case: r.what, Unit: "ms",
					Value: float64(median(r.took).Microseconds()) / 1000, Target: 50})
				writeSamples(&samples, r.name, r.took)
			}
			report.Text, report.Samples = t.Render(), samples.String()
			return report, nil
		},
	}
}

// measureCalls returns the times of single calls, one after the other.
func measureCalls(ctx context.Context, n int) (took []time.Duration, err error) {
	m, err := startManager(ctx, serverSpecs("stdio", 1, nil))
	if err != nil {
		return nil, err
	}
	defer closeWithin(m, &err)
	if err := awaitConnected(ctx, m); err != nil {
		return nil, err
	}
	for range n {
		began := time.Now()
		if _, err := m.CallServerTool(ctx, "s00000", "echo", map[string]any{"text": "x"}); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
