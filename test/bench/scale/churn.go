package scale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// Growth is the increase of what a process holds over a number of operations, with the same servers.
type Growth struct {
	// Operations counts those between the measurements.
	Operations int
	// Bytes counts heap and stacks, Objects those of the heap. Descriptors is 0 where they cannot be counted.
	Bytes, Objects, Goroutines, Descriptors int
}

// PerOperation returns the bytes that one operation has left behind.
func (g Growth) PerOperation() float64 { return float64(g.Bytes) / float64(g.Operations) }

// Churn makes the changes of many days in quick succession: servers come under new and old names, are replaced, reconnected,
// disabled, listed again, announce changed tools, are called and go; watchers come and go. It keeps at most churnNames servers
// at a time. It is not safe for concurrent use.
type Churn struct {
	m     *supervisor.Manager
	rng   *rand.Rand
	kinds []string
	web   *Web
	// serial numbers the new names, present are the names of the current servers.
	serial   int
	present  []string
	watchers []*supervisor.Watcher
}

// churnNames and churnWatchers bound the servers and watchers at a time.
const (
	churnNames    = 24
	churnWatchers = 8
)

// NewChurn makes a Churn that begins without servers. kinds are the kinds of servers that it adds; web may be nil if none of
// them is over HTTP.
func NewChurn(m *supervisor.Manager, seed uint64, web *Web, kinds ...string) *Churn {
	return &Churn{m: m, rng: rand.New(rand.NewPCG(seed, 0)), kinds: kinds, web: web} //nolint:gosec // no secret
}

// Run makes n operations. It ignores errors of the manager, because a call may meet the removal of its server.
func (c *Churn) Run(ctx context.Context, n int) error {
	for range n {
		if err := c.runOperation(ctx); err != nil && !errors.As(err, new(*supervisor.Error)) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// randomSpec returns a spec of a random kind.
func (c *Churn) randomSpec() supervisor.Spec {
	kind := c.kinds[c.rng.IntN(len(c.kinds))]
	var spec supervisor.Spec
	for _, spec = range serverSpecs(kind, 1, c.web) {
		// The denied tools make most replacements differ from the spec before.
		spec.DeniedTools = []string{fmt.Sprint("never-", c.rng.IntN(1000))}
	}
	return spec
}

// runOperation makes one random operation: adding a server, or something with one that exists.
func (c *Churn) runOperation(ctx context.Context) error {
	if len(c.present) == 0 || len(c.present) < churnNames && c.rng.IntN(3) == 0 {
		c.serial++
		// An old name meets what the manager may have kept of it; a new one shows what it keeps of names that never come back.
		name := fmt.Sprintf("new-%d", c.serial)
		if c.rng.IntN(2) == 0 {
			name = fmt.Sprintf("old-%d", c.rng.IntN(churnNames))
		}
		c.forgetName(name)
		c.present = append(c.present, name)
		return c.m.Connect(ctx, name, c.randomSpec())
	}
	name := c.present[c.rng.IntN(len(c.present))]
	switch c.rng.IntN(9) {
	case 0, 1:
		c.forgetName(name)
		return c.m.Remove(ctx, name)
	case 2:
		return c.m.Connect(ctx, name, c.randomSpec())
	case 3:
		return c.m.Reconnect(ctx, name)
	case 4:
		if err := c.m.Toggle(ctx, name, false); err != nil {
			return err
		}
		return c.m.Toggle(ctx, name, true)
	case 5:
		return c.m.Refresh(ctx, name)
	case 6:
		if len(c.watchers) == churnWatchers {
			c.watchers[0].Close()
			c.watchers = c.watchers[1:]
		}
		c.watchers = append(c.watchers, c.m.Watch(16))
		c.m.Status()
		return nil
	}
	_, err := c.m.CallServerTool(ctx, name, "x", map[string]any{"change": c.rng.IntN(4) == 0})
	return err
}

// forgetName takes a name out of the present ones.
func (c *Churn) forgetName(name string) {
	kept := c.present[:0]
	for _, n := range c.present {
		if n != name {
			kept = append(kept, n)
		}
	}
	c.present = kept
}

// RemoveAll removes every server and every watcher, and returns what the process holds then.
func (c *Churn) RemoveAll(ctx context.Context) (Growth, error) {
	for _, w := range c.watchers {
		w.Close()
	}
	c.watchers, c.present = nil, nil
	if _, err := c.m.SetServers(ctx, nil); err != nil {
		return Growth{}, err
	}
	// SetServers has answered; the actors of the servers may still be ending.
	for len(c.m.Servers()) > 0 {
		if err := ctx.Err(); err != nil {
			return Growth{}, err
		}
		runtime.Gosched()
	}
	m := measureMemory()
	return Growth{Bytes: int(m.HeapAlloc + m.StackInuse), Objects: int(m.HeapObjects), Goroutines: m.goroutines, Descriptors: countDescriptors()}, nil
}

// countDescriptors counts the open descriptors, 0 where the system does not show them.
func countDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// MeasureChurn runs warm operations, and then n more in churnParts. It measures what the process holds after each part, and
// returns what the n operations have left behind: the median growth between any two measurements (the Theil–Sen slope).
// Connections that were closed last, stacks of waiting goroutines and the spare room of maps come and go by 100 KB and more
// between measurements; a leak grows between all of them.
func MeasureChurn(ctx context.Context, seed uint64, warm, n int, web *Web, kinds ...string) (g Growth, err error) {
	m, err := supervisor.Start(ctx, supervisor.Config{System: usedActorSystem(),
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"tiny": Tiny}})
	if err != nil {
		return g, err
	}
	defer closeWithin(m, &err)
	c := NewChurn(m, seed, web, kinds...)
	held := make([]Growth, 0, churnParts+1)
	for part := range churnParts + 1 {
		if part > 0 {
			warm = n / churnParts
		}
		if err := c.Run(ctx, warm); err != nil {
			return g, err
		}
		growth, err := c.RemoveAll(ctx)
		if err != nil {
			return g, err
		}
		held = append(held, growth)
	}
	// The median slope ignores single jumps, which the mean would not.
	grown := func(figure func(Growth) int) int {
		var slopes []float64
		for i, before := range held {
			for j, after := range held[i+1:] {
				slopes = append(slopes, float64(figure(after)-figure(before))/float64(j+1))
			}
		}
		slices.Sort(slopes)
		return int(slopes[len(slopes)/2] * churnParts)
	}
	return Growth{
		Operations:  n,
		Bytes:       grown(func(g Growth) int { return g.Bytes }),
		Objects:     grown(func(g Growth) int { return g.Objects }),
		Goroutines:  grown(func(g Growth) int { return g.Goroutines }),
		Descriptors: grown(func(g Growth) int { return g.Descriptors }),
	}, nil
}

// churnParts is the number of measurements after the first.
const churnParts = 6

// usedActorSystem returns an actor system whose table of names is warm. protoactor keeps names in 32,768 maps, and a map keeps
// the 288 bytes that its first name needed: a manager grows by that with every added server until each map was used, by 9 MB in
// all. That is no leak of servers, so the maps are used before the measurement.
func usedActorSystem() *actor.ActorSystem {
	system := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	for i := range 400_000 {
		if pid, ok := system.ProcessRegistry.Add(system.DeadLetter, fmt.Sprint("server-", -i)); ok {
			system.ProcessRegistry.Remove(pid)
		}
	}
	return system
}

// ChurnSection returns the section about churn.
func ChurnSection() row.Section {
	return row.Section{
		Name: "churn",
		Does: "what so many operations leave behind: servers come, are replaced, reconnected, listed, called and go, watchers too",
		Run: func(ctx context.Context, o row.Options) (report row.Report, err error) {
			web, err := NewWeb()
			if err != nil {
				return report, err
			}
			defer web.Close()
			t := table.NewWriter()
			t.AppendHeader(table.Row{"servers", "operations", "bytes an operation", "goroutines", "descriptors"})
			for _, c := range []struct {
				n     int
				kinds []string
			}{{40_000, []string{"in process"}}, {24_000, []string{"http", "http with a stream"}}, {3_600, []string{"stdio"}}} {
				what := strings.Join(c.kinds, ", ")
				o.Progress("churn: %s", what)
				g, err := MeasureChurn(ctx, 1, c.n/churnParts, c.n, web, c.kinds...)
				if err != nil {
					return report, err
				}
				t.AppendRow(table.Row{what, c.n, fmt.Sprintf("%.1f", g.PerOperation()), g.Goroutines, g.Descriptors})
				report.Rows = append(report.Rows, row.Row{Case: "left behind by an operation, " + what, Unit: "bytes",
					Value: max(g.PerOperation(), 0), Target: churnBound})
			}
			report.Text = t.Render()
			return report, nil
		},
	}
}

// churnBound is the number of bytes that an operation may leave behind, less than anything that is kept for each operation.
const churnBound = 16
