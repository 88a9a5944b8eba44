// Package compare measures one tool call of several clients on the same server, in one process and one run: mcpvisor's
// facade in three ways, mcp-go's client, the official SDK's client, and the floor (writing the bytes of a request and reading
// those of the answer, which no client can beat).
//
// A call is what an agent does: it passes a Go map and reads the text of the answer. "text" is mcpvisor so, in the era of the
// other clients (2025-11-25); "default" is mcpvisor as it is configured without a word about the era, so that it speaks what
// the server prefers; "raw" passes and takes bytes, as a gateway does, and spares what the other clients cannot.
//
// Machines are noisy, so the clients take turns: each round measures every client of a case for a short time, in an order that
// changes, and what is told is the median over the rounds, as a ratio to mcp-go's client in the same run.
package compare

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/test/bench/row"
)

// Case is what is called.
type Case struct {
	// Server is "stdio" (near-zero cost), "stdio-good" (a server that decodes), "http", "https-sse" or "sdk".
	Server string
	// Size is the length of the text that is echoed.
	Size int
	// Callers are how many call at once.
	Callers int
}

// Clients are who is measured, mcpvisor first.
var Clients = []string{"text", "default", "raw", "mcp-go", "go-sdk", "floor"}

// ConnectedClient is a client that is connected: Call makes one call of echo and checks nothing but the error. It is called from
// many goroutines, each with its own number from 0.
type ConnectedClient struct {
	Call  func(ctx context.Context, caller int) error
	Close func()
}

// Sample is one measurement, per call.
type Sample struct {
	Calls int
	Time  time.Duration
	// CPU is the processor time of this process, 0 on systems that do not tell it.
	CPU    time.Duration
	Allocs float64
	Bytes  float64
}

// Options are how long is measured.
type Options struct {
	// Rounds is how often each client is measured, 5. For is how long each time, 200 ms.
	Rounds int
	For    time.Duration
}

// Result is the samples of one case by client. A client that is missing cannot do the case, or failed in it.
type Result struct {
	Case
	Samples map[string][]Sample
	// Failed says why a client was left out that can do the case: it ran out of descriptors or ports, for one. It has no
	// samples then.
	Failed map[string]error
}

// Measure connects each client in turn and measures it, round by round. A client that fails is left out from then on;
// mcpvisor's failure is Measure's.
func Measure(ctx context.Context, c Case, open func(ctx context.Context, client string) (*ConnectedClient, error), o Options) (Result, error) {
	r := Result{Case: c, Samples: map[string][]Sample{}, Failed: map[string]error{}}
	if o.Rounds <= 0 {
		o.Rounds = 5
	}
	if o.For <= 0 {
		o.For = 200 * time.Millisecond
	}
	connected := map[string]*ConnectedClient{}
	defer func() {
		for _, client := range connected {
			client.Close()
		}
	}()
	without := func(name string, err error) error {
		if client := connected[name]; client != nil {
			client.Close()
		}
		delete(connected, name)
		delete(r.Samples, name)
		if name == Clients[0] || ctx.Err() != nil {
			return err
		}
		r.Failed[name] = err
		return nil
	}
	for _, name := range Clients {
		client, err := open(ctx, name)
		if err == nil && client != nil {
			connected[name] = client
			_, err = measureClient(ctx, client, c.Callers, o.For/4) // warm
		}
		if err != nil {
			if err := without(name, err); err != nil {
				return r, err
			}
		}
	}
	for round := range o.Rounds {
		for i := range Clients {
			name := Clients[(i+round)%len(Clients)]
			client := connected[name]
			if client == nil {
				continue
			}
			s, err := measureClient(ctx, client, c.Callers, o.For)
			if err != nil {
				if err := without(name, err); err != nil {
					return r, err
				}
				continue
			}
			r.Samples[name] = append(r.Samples[name], s)
		}
	}
	return r, nil
}

// measureClient calls for about so long and gives the cost of one call.
func measureClient(ctx context.Context, c *ConnectedClient, callers int, long time.Duration) (Sample, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	worked, _ := row.CPU()
	start := time.Now()
	deadline := start.Add(long)
	var calls atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			done := 0
			for failed.Load() == nil && (done == 0 || time.Now().Before(deadline)) {
				if err := c.Call(ctx, n); err != nil {
					failed.CompareAndSwap(nil, &err)
					break
				}
				done++
			}
			calls.Add(int64(done))
		})
	}
	wg.Wait()
	took := time.Since(start)
	if now, ok := row.CPU(); ok {
		worked = now - worked
	}
	runtime.ReadMemStats(&after)
	if err := failed.Load(); err != nil {
		return Sample{}, *err
	}
	n := float64(calls.Load())
	return Sample{
		Calls: int(calls.Load()), Time: time.Duration(float64(took) / n), CPU: time.Duration(float64(worked) / n),
		Allocs: float64(after.Mallocs-before.Mallocs) / n, Bytes: float64(after.TotalAlloc-before.TotalAlloc) / n,
	}, nil
}

// Median is the median of each figure by itself; the zero Sample if the client is missing.
func (r Result) Median(client string) Sample {
	all := r.Samples[client]
	if len(all) == 0 {
		return Sample{}
	}
	middle := func(figure func(Sample) float64) float64 {
		values := make([]float64, len(all))
		for i, s := range all {
			values[i] = figure(s)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return Sample{
		Calls:  int(middle(func(s Sample) float64 { return float64(s.Calls) })),
		Time:   time.Duration(middle(func(s Sample) float64 { return float64(s.Time) })),
		CPU:    time.Duration(middle(func(s Sample) float64 { return float64(s.CPU) })),
		Allocs: middle(func(s Sample) float64 { return s.Allocs }),
		Bytes:  middle(func(s Sample) float64 { return s.Bytes }),
	}
}

// Ratio is the median time of a client divided by mcp-go's; 0 if one of them is missing.
func (r Result) Ratio(client string) float64 {
	base, own := r.Median("mcp-go").Time, r.Median(client).Time
	if base == 0 || own == 0 {
		return 0
	}
	return float64(own) / float64(base)
}
