// Package compare measures one tool call of several clients on the same server, in one process and one run: mcpvisor's facade
// in three ways, mcp-go's client, the official SDK's client, and the floor, which only writes the bytes of a request and reads
// those of the answer, and which no client can beat.
//
// A call is what an agent makes: it passes a Go map and reads the text of the answer. "text" is mcpvisor used like that, in the
// era of the other clients (2025-11-25); "default" is mcpvisor without a configured era, so that it speaks what the server
// prefers; "raw" passes and takes bytes, as a gateway does, and saves work that the other clients cannot save.
//
// Machines are noisy, so the clients take turns: each round measures every client of a case for a short time, in an order that
// changes, and the result is the median over the rounds, as a ratio to mcp-go's client in the same run.
//
// # How it fits
//
//	ServerSet ──> Open(client) ──> ConnectedClient ──> Measure ──> Result ──> rows of command run
//
// servers.go runs the servers, those over a network in a process of their own; clients.go connects each client in its usual way;
// floor.go is the client that does nothing. [Measure] knows none of them, so that its tests give it clients of their own.
//
// Guarantees: every answer is checked, and a client that fails is left out with its error and does not spoil the others. Only the
// failure of mcpvisor ends a case.
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

// Case describes what is called.
type Case struct {
	// Server is "stdio" (near-zero cost), "stdio-good" (a server that decodes), "http", "https-sse" or "sdk".
	Server string
	// Size is the length of the echoed text in bytes.
	Size int
	// Callers is the number of goroutines that call at once.
	Callers int
}

// Clients are the measured clients; mcpvisor comes first, and its failure ends a case.
var Clients = []string{"text", "default", "raw", "mcp-go", "go-sdk", "floor"}

// ConnectedClient is a client that is connected. Call makes one call of echo and checks the answer; many goroutines call it,
// each with its own number from 0.
type ConnectedClient struct {
	Call  func(ctx context.Context, caller int) error
	Close func()
}

// Sample holds the measurements of one turn, per call.
type Sample struct {
	Calls int
	Time  time.Duration
	// CPU is the processor time of this process, 0 on systems that do not report it.
	CPU    time.Duration
	Allocs float64
	Bytes  float64
}

// Options say how long to measure.
type Options struct {
	// Rounds is the number of turns of each client (0 means 5), For the duration of a turn (0 means 200 ms).
	Rounds int
	For    time.Duration
}

// Result holds the samples of one case by client. A client that is missing cannot do the case, or failed in it.
type Result struct {
	Case
	Samples map[string][]Sample
	// Failed says why a client was left out although it can do the case, for instance because it ran out of descriptors or
	// ports. It then has no samples.
	Failed map[string]error
}

// Measure connects each client in turn and measures all of them round by round. A client that fails is left out from then on;
// if mcpvisor fails, Measure returns its error.
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
	// without closes a client that failed and drops its samples, so that no median is made of a part of the rounds.
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
			// A quarter of a turn warms the client up.
			_, err = measureClient(ctx, client, c.Callers, o.For/4)
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

// measureClient calls from callers goroutines for about the time long, and returns the cost of one call. Each caller makes at
// least one call.
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

// Median returns the median of each measurement by itself, the zero Sample if the client is missing.
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

// Ratio returns the median time of a client divided by mcp-go's, 0 if one of them is missing.
func (r Result) Ratio(client string) float64 {
	base, own := r.Median("mcp-go").Time, r.Median(client).Time
	if base == 0 || own == 0 {
		return 0
	}
	return float64(own) / float64(base)
}
